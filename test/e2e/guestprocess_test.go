package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pairs are two clusters of one MPI library each, or of both.
var pairs = [][2]string{{OpenMPI, OpenMPI}, {MPICH, MPICH}, {OpenMPI, MPICH}}

// compilePair compiles a C program for both libraries and returns its path, with "{mpi}".
func (b *Bed) compilePair(file string, extra ...string) string {
	b.T.Helper()
	one := b.Compile(OpenMPI, "test/programs/c/"+file, extra...)
	b.Compile(MPICH, "test/programs/c/"+file, extra...)
	return filepath.Join(filepath.Dir(filepath.Dir(one)), "{mpi}", filepath.Base(one))
}

// TestOwnEnvironment checks that the job is found in the environment as the program has left it at
// MPI_Init.
func TestOwnEnvironment(t *testing.T) {
	b := New(t)
	program := b.compilePair("ownenviron.c")
	for _, how := range []string{"title", "own", "cleared", "emptied", "emptied-own", "emptied-odd"} {
		for _, p := range pairs {
			t.Run(how+" "+p[0]+" "+p[1], func(t *testing.T) {
				b := New(t)
				native := b.OK(b.Native(p[0], 2, strings.ReplaceAll(program, "{mpi}", p[0]), how))
				b.Same(native, b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, p[0]), B(1, p[1])}}, program, how)), nil)
			})
		}
	}
}

// TestVariablesForGo checks that variables which a user sets for Go programs of their own have no
// effect, and stay unchanged.
func TestVariablesForGo(t *testing.T) {
	b := New(t)
	program := b.compilePair("signals.c")
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}, "env", "GOMEMLIMIT=plenty", "GOGC=off",
		"GOMAXPROCS=64", "GODEBUG=gctrace=1,inittrace=1,asyncpreemptoff=0", program))
	if r.Stderr != "" {
		t.Error(r)
	}
}

// TestProcessMatchesNative checks that MPI_Init changes the same properties of the process as
// natively.
func TestProcessMatchesNative(t *testing.T) {
	b := New(t)
	program := b.compilePair("inherited.c")
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			clusters := []Cluster{A(1, mpi), B(1, mpi)}
			native := b.OK(b.Native(mpi, 2, strings.ReplaceAll(program, "{mpi}", mpi)))
			b.Same(native, b.OK(b.Zipped(Job{Clusters: clusters}, program)), nil)
			const killed = 128 + 13 // by SIGPIPE
			if r := b.Zipped(Job{Clusters: clusters}, program, "pipe"); r.Status != killed {
				t.Errorf("a write to a pipe without a reader: want status %d\n%v", killed, r)
			}
		})
	}
}

// engineThreads returns Z_ENGINE_THREADS.
func engineThreads(b *Bed) int {
	b.T.Helper()
	text, err := os.ReadFile(filepath.Join(b.Root, "cgo", "abi", "lib", "limits.h"))
	if err != nil {
		b.T.Fatal(err)
	}
	m := regexp.MustCompile(`Z_ENGINE_THREADS = (\d+)`).FindSubmatch(text)
	if m == nil {
		b.T.Fatal("no Z_ENGINE_THREADS")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// mostThreads returns the largest number of threads of a rank in the output of fewthreads.c.
func mostThreads(b *Bed, r Result) int {
	b.T.Helper()
	most := 0
	for _, m := range regexp.MustCompile(`(?m)^\d+: (\d+) threads$`).FindAllStringSubmatch(b.OK(r).Stdout, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
	}
	if most == 0 {
		b.T.Fatalf("no number of threads:\n%v", r)
	}
	return most
}

// TestThreadsOfARank checks that a rank has no more threads, beside its native ones, than
// documented.
func TestThreadsOfARank(t *testing.T) {
	b := New(t)
	program := b.compilePair("fewthreads.c", "-rdynamic")
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			native := mostThreads(b, b.Native(mpi, 2, strings.ReplaceAll(program, "{mpi}", mpi)))
			zipped := mostThreads(b, b.Zipped(Job{Clusters: []Cluster{A(1, mpi), B(1, mpi)}}, program))
			t.Logf("%d threads a rank, natively %d", zipped, native)
			if most := engineThreads(b); zipped > native+most {
				t.Errorf("%d threads a rank, natively %d: want at most %d more", zipped, native, most)
			}
		})
	}
}

// TestTooFewThreads checks that the error names the limit and the number of threads if a thread
// cannot be made: the first one, with which the runtime starts, or a later one.
func TestTooFewThreads(t *testing.T) {
	b := New(t)
	program := b.compilePair("fewthreads.c", "-rdynamic")
	for _, p := range pairs {
		for _, first := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s %s %d", p[0], p[1], first), func(t *testing.T) {
				b := New(t)
				r := b.Zipped(Job{Clusters: []Cluster{A(1, p[0]), B(1, p[1])}}, program, strconv.Itoa(first))
				want := regexp.MustCompile(fmt.Sprintf(
					`MMPI: thread %d of the engine cannot be made .* up to %d beside .*: raise the limit of .*\(ulimit -u, 0 now\)`,
					first, engineThreads(b)))
				if r.Status == 0 || !want.MatchString(r.Stderr) || strings.Contains(r.Stderr, "runtime") {
					t.Errorf("want %v\n%v", want, r)
				}
			})
		}
	}
}

// TestLongStacks checks that the engine's threads have stacks of their own size: with stacks as
// long as the program's they would not fit into the address space.
func TestLongStacks(t *testing.T) {
	b := New(t)
	program := b.compilePair("fewthreads.c", "-rdynamic")
	const limits = `ulimit -s 1048576 && ulimit -v 8388608 && exec "$0"`
	for _, p := range pairs {
		t.Run(p[0]+" "+p[1], func(t *testing.T) {
			b := New(t)
			b.OK(b.Native(p[0], 2, "bash", "-c", limits, strings.ReplaceAll(program, "{mpi}", p[0])))
			b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, p[0]), B(1, p[1])}}, "bash", "-c", limits, program))
		})
	}
}
