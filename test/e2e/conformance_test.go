package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUnsupported checks that the calls which the conformance table lists as errors are errors at
// every rank.
func TestUnsupported(t *testing.T) {
	for _, s := range []split{twoOne, mixed, mpichPair} {
		t.Run(s.name, func(t *testing.T) {
			b := New(t)
			// Clusters on one host share its file system: without the user's declaration files are
			// refused too.
			j := Job{Clusters: s.clusters, Env: []string{"ZIPPER_SHARED_FS="}}
			r := b.OK(b.Zipped(j, compileFor(b, s.clusters, "c/unsupported.c")))
			if got, want := strings.Count(r.Stdout, " is refused\n"), 2*(10+2)*s.ranks(); got != want {
				t.Errorf("%d refusals, want %d:\n%v", got, want, r)
			}
		})
	}
}

// TestConformanceTable checks that docs/reference/conformance.md is the generator's output for the
// libraries just built.
func TestConformanceTable(t *testing.T) {
	if o, m := version(OpenMPI), version(MPICH); !strings.HasPrefix(o, "4.1.") || !strings.HasPrefix(m, "4.0.") {
		t.Skipf("the table is of the functions of Open MPI 4.1 and MPICH 4.0, here are %s and %s", o, m)
	}
	b := New(t)
	made := b.OK(b.Run(nil, nil, filepath.Join(b.Root, "build/gen"), "-table", "build/openmpi/functions.tsv",
		"build/mpich/functions.tsv", b.mpi5()))
	kept, err := os.ReadFile(filepath.Join(b.Root, "docs/reference/conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != made.Stdout {
		t.Errorf("docs/reference/conformance.md is out of date: go generate ./cgo/libmmpi/gen\n%s",
			firstDifference(lines(string(kept), nil), lines(made.Stdout, nil)))
	}
}

// mpi5 makes the list of MPI 5.0's functions and their effects, and returns its path.
func (b *Bed) mpi5() string {
	b.T.Helper()
	prototypes, err := os.ReadFile(filepath.Join(b.Root, "cgo/libmmpi/gen/mpi5.txt"))
	if err != nil {
		b.T.Fatal(err)
	}
	dir := filepath.Join(b.T.TempDir(), "abi") // the name of the column
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.T.Fatal(err)
	}
	const policy = "cgo/libmmpi/policy/"
	b.OK(b.Run(prototypes, nil, filepath.Join(b.Root, "build/gen"), "-out", dir, policy+"shim.txt", policy+"comms.txt",
		policy+"windows.txt"))
	return filepath.Join(dir, "functions.tsv")
}

// TestABIConformance checks that the conformance table's functions of MPI 5.0 are those from which
// the library for the standard ABI was made: all functions of MPI 4.0, 4.1 and 5.0 that the
// libraries' own headers have.
func TestABIConformance(t *testing.T) {
	b := newABI(t)
	read := func(file string) []string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return lines(string(text), nil)
	}
	listed := read(b.mpi5())
	if built := read(filepath.Join(b.Root, "build/abi/functions.tsv")); !slices.Equal(listed, built) {
		t.Errorf("cgo/libmmpi/gen/mpi5.txt is not the header's: %s", firstDifference(built, listed))
	}
	table, err := os.ReadFile(filepath.Join(b.Root, "docs/reference/conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mpi := range []string{OpenMPI, MPICH} {
		for _, line := range read(filepath.Join(b.Root, "build", mpi, "functions.tsv")) {
			name, _, _ := strings.Cut(line, "\t")
			if strings.HasPrefix(name, "MPI_") && !strings.Contains(string(table), "| "+name+" |") &&
				!strings.Contains(string(table), "`"+name+"`") {
				t.Errorf("docs/reference/conformance.md lacks %s, which %s has", name, version(mpi))
			}
		}
	}
}
