package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compilePlain builds a program that the compiler does not link to MPI.
func (b *Bed) compilePlain(file string, flags ...string) string {
	b.T.Helper()
	out := filepath.Join(b.T.TempDir(), strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	args := append([]string{"-O1", "-Wall", "-o", out, filepath.Join(b.Root, "test/programs", file)}, flags...)
	if msg, err := exec.Command("cc", append(args, "-ldl")...).CombinedOutput(); err != nil {
		b.T.Fatalf("%v\n%s", err, msg)
	}
	return out
}

// libraryOf returns the path of an MPI library, as its compiler links programs to it.
func (b *Bed) libraryOf(mpi string) string {
	b.T.Helper()
	path := b.Compile(mpi, "test/programs/c/pairs.c")
	r := b.OK(b.Run(nil, nil, "ldd", path))
	for line := range strings.Lines(r.Stdout) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if ok && (strings.HasPrefix(name, "libmpi.so.") || strings.HasPrefix(name, "libmpich.so.")) {
			return strings.Fields(rest)[0]
		}
	}
	b.T.Fatalf("no MPI library:\n%v", r)
	return ""
}

// TestLibraryOpenedByDlopen runs programs that reach an MPI library by dlopen and dlsym, where
// preloading has no effect, as bindings of interpreters do.
func TestLibraryOpenedByDlopen(t *testing.T) {
	for _, s := range byLength([]split{mpichPair, mixed}, []split{oneOne, mpichPair, mixed}) {
		overSplits(t, "", []split{s}, func(b *Bed, s split) {
			path := b.compilePlain("c/opened.c")
			// the development link, which may be that of either library
			mpi, library := s.clusters[0].MPI, "libmpi.so"
			if s.clusters[1].MPI == mpi {
				library = b.libraryOf(mpi)
			}
			for _, how := range [][]string{{path}, {path, "deepbind"}, {path, "global"},
				{path, "sampled"}, {path, "deepbind", "sampled"}, {python3, "opened.py"}} {
				argv := []string{how[0], library}
				if how[0] == python3 {
					argv = []string{how[0], filepath.Join(b.Root, "test/programs/python/opened.py"), library}
				} else {
					argv = append(argv, how[1:]...)
				}
				zipped := b.OK(b.Zipped(Job{Clusters: s.clusters}, argv...))
				for i, word := range argv {
					if word == library {
						argv[i] = b.libraryOf(mpi)
					}
				}
				b.Same(b.OK(b.Native(mpi, s.ranks(), argv...)), zipped, nil)
			}
		})
	}
}

// TestWrongMPILibraryIsRefused has programs load an MPI library that their cluster does not run: it
// is refused by name, however it is loaded.
func TestWrongMPILibraryIsRefused(t *testing.T) {
	b := New(t)
	const advice = "mpi=mpich"
	job := Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}
	mpich := b.libraryOf(MPICH)
	b.Fails(b.Zipped(job, b.compilePlain("c/opened.c"), mpich), 1, mpich, "Intel MPI", advice)
	// A program to which its own library is linked.
	dir := t.TempDir()
	part, source := filepath.Join(dir, "libpart.so"), filepath.Join(dir, "main.c")
	if err := os.WriteFile(source, []byte("int main(int c, char **v) { int mpi(int, char **); return mpi(c, v); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(b.Run(nil, nil, "mpicc.mpich", "-shared", "-fPIC", "-Dmain=mpi", "-o", part,
		filepath.Join(b.Root, "test/programs/c/deadlock.c"), "-lm"))
	program := filepath.Join(dir, "program")
	b.OK(b.Run(nil, nil, "cc", "-o", program, source, "-L"+dir, "-lpart", "-Wl,-rpath,"+dir,
		"-Wl,--allow-shlib-undefined"))
	b.Fails(b.Zipped(job, program), 127, "libpart.so", "libmpich.so.12", advice)
	// A program that is linked to the library itself is refused before anything is started.
	b.Fails(b.Zipped(job, b.Compile(MPICH, "test/programs/c/pairs.c")), 1, "libmpich.so.12", advice)
}
