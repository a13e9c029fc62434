package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/launch/native"
)

// The MPI libraries.
const (
	OpenMPI = "openmpi"
	MPICH   = "mpich"
)

// Limit bounds every run; a run that takes longer is killed and fails its test. In the long tests,
// which do more, the limit is doubled, and under user emulation it is four times as long.
const Limit = 2 * time.Minute

// Cluster is one cluster of a job. Clusters of more than two ranks should use Open MPI, because
// MPICH's ranks never yield.
type Cluster struct {
	Name    string
	Ranks   int
	MPI     string
	Program string // Program is that of the cluster; empty: that of the job.
	// Dir is the working directory; empty: the repository's root.
	Dir string
}

// A returns cluster a of a usual test. B and C return the clusters b and c.
func A(ranks int, mpi string) Cluster { return Cluster{Name: "a", Ranks: ranks, MPI: mpi} }
func B(ranks int, mpi string) Cluster { return Cluster{Name: "b", Ranks: ranks, MPI: mpi} }
func C(ranks int, mpi string) Cluster { return Cluster{Name: "c", Ranks: ranks, MPI: mpi} }

// Bed is the environment of a test.
type Bed struct {
	T      *testing.T
	Root   string        // Root is the repository's.
	Zipper string        // bin/zipper
	Limit  time.Duration // Limit is that of every run.
}

// long reports whether the long tests are requested.
func long() bool { return os.Getenv("ZIPPER_LONG") != "" }

// wanted tells how these tests are requested.
var wanted = optional.Tests{Variable: "ZIPPER_E2E",
	Why: "end-to-end tests run with ZIPPER_E2E=1 after scripts/build (scripts/test does both)"}

// New skips the test unless end-to-end tests are requested.
func New(t *testing.T) *Bed {
	t.Helper()
	wanted.Skip(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &Bed{T: t, Root: root, Zipper: filepath.Join(root, "bin", "zipper"), Limit: Limit}
	if long() {
		b.Limit *= 2
	}
	if optional.Emulated() {
		b.Limit *= 4
	}
	for _, f := range []string{"bin/zipper", "lib/libmmpi-openmpi.so", "lib/libmmpi-mpich.so"} {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			t.Fatalf("%s is not there: run scripts/build", f)
		}
	}
	return b
}

// compiled maps an output path to a *compilation: every program is built once per test process.
var compiled sync.Map

type compilation struct {
	once sync.Once
	err  error
}

// Compile builds a program of the repository with the MPI's own compiler wrapper (mpicc, mpicxx or
// mpifort, by the source's suffix) and returns its path. Extra arguments go to the compiler.
func (b *Bed) Compile(mpi, source string, extra ...string) string {
	b.T.Helper()
	src := filepath.Join(b.Root, source)
	base := strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
	if len(extra) > 0 {
		base += strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.Join(extra, ""))
	}
	out := filepath.Join(b.Root, "build", "e2e", mpi, base)
	v, _ := compiled.LoadOrStore(out, &compilation{})
	c := v.(*compilation)
	c.once.Do(func() {
		compiler := map[string]string{".c": "mpicc", ".cc": "mpicxx", ".cpp": "mpicxx", ".f": "mpifort",
			".f90": "mpifort", ".F90": "mpifort", ".f08": "mpifort"}[filepath.Ext(source)]
		if compiler == "" {
			c.err = fmt.Errorf("no compiler for %s", source)
			return
		}
		if c.err = os.MkdirAll(filepath.Dir(out), 0o755); c.err != nil {
			return
		}
		made := fmt.Sprintf("%s.%d", out, os.Getpid()) // other tests may be running the program
		args := []string{"-O1", "-g", "-o", made, src}
		if strings.HasPrefix(compiler, "mpif") {
			args = append(args, "-J"+filepath.Dir(out))
		} else {
			args = append(args, "-Wall")
		}
		cmd := exec.Command(compiler+"."+mpi, append(append(args, extra...), "-lm")...)
		if msg, err := cmd.CombinedOutput(); err != nil {
			c.err = fmt.Errorf("%s: %w\n%s", cmd, err, msg)
			return
		}
		c.err = os.Rename(made, out)
	})
	if c.err != nil {
		b.T.Fatal(c.err)
	}
	return out
}

// Native runs a program under the native mpirun alone: the oracle.
func (b *Bed) Native(mpi string, ranks int, argv ...string) Result {
	b.T.Helper()
	return b.nativeBy(nil, mpi, ranks, argv...)
}

// nativeBy is Native with words before mpirun.
func (b *Bed) nativeBy(words []string, mpi string, ranks int, argv ...string) Result {
	b.T.Helper()
	var args []string
	if mpi == OpenMPI {
		args = append(args, "--oversubscribe", "--bind-to", "none")
		if os.Geteuid() == 0 {
			args = append(args, "--allow-run-as-root")
		}
	}
	args = append(append(args, "-n", fmt.Sprint(ranks)), argv...)
	env := []string{"OMPI_MCA_mpi_yield_when_idle=1"}
	// The same as in zipper run: other components for windows crash or fail if a process may not
	// read another one's memory (Open MPI 4), or if several threads make windows at once.
	osc := "^ucx"
	if strings.HasPrefix(version(OpenMPI), "4.") {
		osc = "^rdma,ucx"
	}
	env = append(env, "OMPI_MCA_osc="+osc)
	if mpi == MPICH && optional.Emulated() {
		// Under emulation UCX also uses TCP, over which MPI_Finalize hangs in many runs
		// (libmmpi's ucx.c).
		env = append(env, "UCX_TLS=sm,self")
	}
	p := b.Start(nil, env, append(append(slices.Clone(words), "mpirun."+mpi), args...)...)
	r := p.Wait()
	p.killLeftovers() // left-over processes would take the processors of the zipped run that follows
	return r
}

// version returns the version of the installed MPI library.
func version(mpi string) string { return versions[mpi]() }

var versions = map[string]func() string{
	OpenMPI: sync.OnceValue(func() string { return ask("mpirun.openmpi") }),
	MPICH:   sync.OnceValue(func() string { return ask("mpirun.mpich") }),
}

func ask(mpirun string) string {
	_, version := native.IdentifyMpirun(context.Background(), mpirun)
	return version
}

// Job describes a zipped run.
type Job struct {
	Clusters []Cluster
	// Stdin is the input of virtual rank 0; nil: none.
	Stdin []byte
	Flags []string // Flags are further flags for zipper run.
	Env   []string // Env is further environment for zipper run.
	// Timeout is that for joining; default 60s.
	Timeout string
}

// Zipped runs a program as one job over the clusters and checks that nothing is left of it. "{mpi}"
// in argv is replaced by each cluster's MPI library.
func (b *Bed) Zipped(j Job, argv ...string) Result {
	b.T.Helper()
	return b.zippedBy(nil, j, argv...)
}

// zippedBy is Zipped with words before zipper.
func (b *Bed) zippedBy(words []string, j Job, argv ...string) Result {
	b.T.Helper()
	args, id := b.runArgs(j)
	args = append(append(args, "--"), argv...)
	r := b.Run(j.Stdin, j.Env, append(slices.Clone(words), args...)...)
	b.NothingLeft(id)
	return r
}

// runArgs returns the command line of zipper run up to the program, and the job's id.
func (b *Bed) runArgs(j Job) (args []string, id string) {
	id = JobID(b.T)
	args = []string{b.Zipper, "run", "--job", id}
	for _, c := range j.Clusters {
		spec := fmt.Sprintf("%s=%d", c.Name, c.Ranks)
		if c.MPI != "" {
			spec += ",mpi=" + c.MPI
		}
		if c.Program != "" {
			spec += ",program=" + c.Program
		}
		if c.Dir != "" {
			spec += ",dir=" + c.Dir
		}
		args = append(args, "--cluster", spec)
	}
	if j.Timeout != "" {
		args = append(args, "--timeout", j.Timeout)
	}
	return append(args, j.Flags...), id
}

var jobs struct {
	sync.Mutex
	n int
}

// JobID returns a job id that no other test has.
func JobID(t *testing.T) string {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.n++
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("e2e-%d-%d-%s", os.Getpid(), jobs.n, name)
}

// SecretOf returns a secret that is long enough, a different one for each word.
func SecretOf(word string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(word))) }

// Forwarder is a forwarder that runs as a process of its own.
type Forwarder struct {
	*Proc
	Addr string
}

// StartForwarder starts a forwarder on a free port of the loopback interface.
func (b *Bed) StartForwarder(flags ...string) *Forwarder {
	b.T.Helper()
	return b.StartForwarderAt("127.0.0.1:0", flags...)
}

// waitForwarder is the longest time until a forwarder listens.
const waitForwarder = 20 * time.Second

// StartForwarderAt starts a forwarder at an address of the loopback interface.
func (b *Bed) StartForwarderAt(addr string, flags ...string) *Forwarder {
	b.T.Helper()
	p := b.Serve(nil, append([]string{b.Zipper, "forwarder", "--listen", addr, "--log", "info"},
		flags...)...)
	f := &Forwarder{Proc: p}
	b.WaitFor(waitForwarder, "the forwarder to listen", func() bool {
		_, after, ok := strings.Cut(p.Stderr(), `listening`)
		if !ok {
			return false
		}
		i := strings.Index(after, "127.0.0.1:")
		if i < 0 {
			return false
		}
		f.Addr, _, _ = strings.Cut(after[i:], `"`)
		return f.Addr != ""
	})
	return f
}
