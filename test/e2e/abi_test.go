package e2e

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/spec"
)

// abiSplits has both orders of the libraries, because the cluster of rank 0 does more work.
var abiSplits = []split{
	{"2+1", []Cluster{A(2, OpenMPI), B(1, MPICH)}},
	{"2+1 reverse", []Cluster{A(2, MPICH), B(1, OpenMPI)}},
}

// newABI skips the test if no MPI library has MPI 5's standard ABI, unless ZIPPER_ABI requires that
// the libraries have it (scripts/test abi).
func newABI(t *testing.T) *Bed {
	t.Helper()
	b := New(t)
	for _, f := range []string{"lib/libmmpi-abi.so", "build/mpicc-abi"} {
		if _, err := os.Stat(filepath.Join(b.Root, f)); err != nil {
			if os.Getenv("ZIPPER_ABI") != "" {
				t.Fatalf("no %s: no MPI library here has MPI 5's standard ABI", f)
			}
			t.Skipf("no %s: no MPI library here has MPI 5's standard ABI (scripts/test-on sid abi)", f)
		}
	}
	return b
}

// nativeABI runs a program of the standard ABI on one library alone, whose libmpi_abi.so.1 is found
// first.
func (b *Bed) nativeABI(mpi string, ranks int, argv ...string) Result {
	b.T.Helper()
	lib, err := native.FindABI(spec.MPI(mpi), "")
	if err != nil {
		b.T.Fatal(err)
	}
	dir := b.T.TempDir()
	if err := os.Symlink(lib, filepath.Join(dir, "libmpi_abi.so.1")); err != nil {
		b.T.Fatal(err)
	}
	return b.Native(mpi, ranks, append([]string{"env", "LD_LIBRARY_PATH=" + dir}, argv...)...)
}

// askABI returns witnesses of a program's behaviour on each library alone.
func (b *Bed) askABI(ranks int, argv ...string) *witnesses {
	return &witnesses{mpis: []string{OpenMPI, MPICH}, ask: func(mpi string) Result {
		return b.nativeABI(mpi, ranks, append([]string{"timeout", nativeLimit}, argv...)...)
	}}
}

// TestABIPrograms compares every program in C and C++, built once for MPI 5's standard ABI, over
// clusters of two MPI libraries with its native runs.
func TestABIPrograms(t *testing.T) {
	b := newABI(t)
	for _, p := range programs {
		compiler := map[string]string{".c": "build/mpicc-abi", ".cc": "build/mpicxx-abi"}[filepath.Ext(p.file)]
		// TestABIFortran covers Fortran; the others are in the long tests
		if compiler == "" || len(p.splits) == 0 {
			continue
		}
		t.Run(p.title(), func(t *testing.T) {
			b := *b
			b.T = t
			argv := append([]string{b.compileABI(compiler, p.file, p.flags...)}, p.args...)
			o := b.askABI(abiSplits[0].ranks(), argv...)
			for _, s := range asked(abiSplits) {
				t.Run(s.name, func(t *testing.T) {
					b := b
					b.T = t
					b.compare(o, Job{Clusters: s.clusters}, argv...)
				})
			}
		})
	}
}

// compileABI builds a program for the standard ABI and returns its path.
func (b *Bed) compileABI(compiler, file string, flags ...string) string {
	b.T.Helper()
	out := filepath.Join(b.Root, "build", "e2e", "abi", strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		b.T.Fatal(err)
	}
	args := append([]string{"-O1", "-g", "-Wall", "-pthread", "-o", out, filepath.Join(b.Root, "test/programs", file)},
		flags...)
	cmd := exec.Command(filepath.Join(b.Root, compiler), append(args, "-lm")...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		b.T.Fatalf("%s: %v\n%s", cmd, err, msg)
	}
	return out
}

// TestABILostCluster checks that the survivors of a lost cluster go on in programs that are built
// once for MPI 5's standard ABI, which has numbers of its own for the classes of errors.
func TestABILostCluster(t *testing.T) {
	b := newABI(t)
	for _, run := range []string{"lost_shrink", "lost_shrinking", "lost_pending", "lost_peer", "lost_nonblocking",
		"lost_phase allreduce", "lost_phase alltoallw", "lost_phase create_group", "lost_phase fence",
		"lost_phase persistent_barrier"} {
		t.Run(run, func(t *testing.T) {
			b := *b
			b.T = t
			words := strings.Fields(run)
			path := b.compileABI("build/mpicc-abi", "c/"+words[0]+".c")
			b.survives(b.loseBuilt(losingMixed, path, append([]string{losingMixed.victims()}, words[1:]...)...), "ok")
		})
	}
}

// TestABIFortran checks that the libraries' files of the standard ABI have no Fortran functions, so
// that a Fortran program does not link natively. If a library gets them this test fails, and the
// Fortran programs must be added to TestABIPrograms.
func TestABIFortran(t *testing.T) {
	b := newABI(t)
	out := filepath.Join(t.TempDir(), "f77")
	for _, mpi := range []string{OpenMPI, MPICH} {
		lib, err := native.FindABI(spec.MPI(mpi), "")
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.Open(lib)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.DynamicSymbols()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			if strings.EqualFold(s.Name, "mpi_init_") && s.Section != elf.SHN_UNDEF {
				t.Errorf("%s has %s: run the programs in Fortran, too", lib, s.Name)
			}
		}
		include := "-I/usr/lib/x86_64-linux-gnu/openmpi/include"
		r := b.Run(nil, nil, "gfortran", "-fallow-argument-mismatch", "-w", include, "-o", out,
			"test/programs/fortran/f77.f", lib)
		if r.Status == 0 {
			t.Errorf("a Fortran program links with %s: run it, too", lib)
		} else if !strings.Contains(r.Stderr, "undefined reference to `mpi_init_'") {
			t.Errorf("want a linker's error about mpi_init_:\n%v", r)
		}
	}
	b.Fails(b.Run(nil, nil, b.Zipper, "fc", "--mpi", "abi", "-o", out, "test/programs/fortran/f77.f"), 1, "has a Fortran library")
}

// TestABIPython runs a Python program that opens libmpi_abi.so.1, with the same file and the same
// interpreter in both clusters.
func TestABIPython(t *testing.T) {
	b := newABI(t)
	argv := []string{python3, filepath.Join(b.Root, "test/programs/python/opened.py"), "libmpi_abi.so.1"}
	o := b.askABI(abiSplits[0].ranks(), argv...)
	for _, s := range abiSplits {
		t.Run(s.name, func(t *testing.T) {
			b := *b
			b.T = t
			b.compare(o, Job{Clusters: s.clusters}, argv...)
		})
	}
}

// TestABIExample checks that the README of examples/abi is correct.
func TestABIExample(t *testing.T) { newABI(t).follow("examples/abi/README.md") }

// oneBinary returns the README's example "One binary".
func (b *Bed) oneBinary() string {
	b.T.Helper()
	text, err := os.ReadFile(filepath.Join(b.Root, "README.md"))
	if err != nil {
		b.T.Fatal(err)
	}
	found := regexp.MustCompile("(?s)### One binary\n.*?\n```\n(.*?)```").FindSubmatch(text)
	if found == nil {
		b.T.Fatal(`no example below "One binary"`)
	}
	return string(found[1])
}

// TestReadmeOneBinary checks that the README has that example, also where it cannot be run.
func TestReadmeOneBinary(t *testing.T) { New(t).oneBinary() }

// TestABIReadme runs the README's example "One binary" as it is printed there.
func TestABIReadme(t *testing.T) {
	b := newABI(t)
	example := b.oneBinary()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Dir(b.Zipper), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(b.Root, "examples/cg/cg.c"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "prog.c"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.OK(b.Run(nil, nil, "sh", "-euc", `cd "$1"; eval "$2"`, "sh", dir, example))
	for _, want := range []string{"standard ABI", "verified"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q:\n%v", want, r)
		}
	}
	// A program that is linked with MMPI runs natively too.
	for _, mpi := range []string{OpenMPI, MPICH} {
		if r := b.OK(b.nativeABI(mpi, 2, filepath.Join(dir, "prog"))); !strings.Contains(r.Stdout, "verified") {
			t.Errorf("natively on %s:\n%v", mpi, r)
		}
	}
}
