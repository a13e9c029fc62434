package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/launch/spec"
)

// sharedObject makes a shared object with a name, which needs others and defines a function.
func sharedObject(t *testing.T, cc, out, soname, function string, needed ...string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "f.c")
	if err := os.WriteFile(source, []byte("void "+function+"(void) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-soname," + soname, "-o", out, source},
		needed...)
	if msg, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
}

// TestEachClusterFindsItsABILibrary checks that a program of the standard ABI belongs to no
// library, and that each cluster finds its own.
func TestEachClusterFindsItsABILibrary(t *testing.T) {
	cc := optional.Program(t, "cc")
	dir := t.TempDir()
	for m, function := range map[spec.MPI]string{spec.OpenMPI: "ompi_convert", spec.MPICH: "MPIR_Err"} {
		if err := os.Mkdir(filepath.Join(dir, string(m)), 0o700); err != nil {
			t.Fatal(err)
		}
		lib := filepath.Join(dir, string(m), abiName)
		sharedObject(t, cc, lib, abiName, function)
		if got := ofABI(lib); got != m {
			t.Errorf("%s is taken to be of %q", lib, got)
		}
	}
	program := filepath.Join(dir, "prog")
	sharedObject(t, cc, program, "prog", "f", filepath.Join(dir, "mpich", abiName))
	p, err := InspectProgram(program, dir)
	if err != nil || !p.ABI || p.MPI != "" || p.MMPI {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, m := range []spec.MPI{spec.OpenMPI, spec.MPICH} {
		if err := p.Match(m, "a"); err != nil {
			t.Error(err)
		}
		if _, err := p.Shim(m); err == nil || !strings.Contains(err.Error(), "libmmpi-abi.so") {
			t.Errorf("no libmmpi-abi.so is next to the test: %v", err)
		}
		// A library that the user has put first is left alone.
		if lib, err := FindABI(m, filepath.Join(dir, string(m))); lib != "" || err != nil {
			t.Errorf("got %q, %v", lib, err)
		}
	}
	// It is found beside its launcher, although the other library's comes first in the user's
	// directories.
	prefix := t.TempDir()
	for _, d := range []string{"bin", "lib"} {
		if err := os.Mkdir(filepath.Join(prefix, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(prefix, "bin", "mpirun.mpich"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(prefix, "lib", abiName)
	sharedObject(t, cc, own, abiName, "MPIR_Err")
	t.Setenv("PATH", filepath.Join(prefix, "bin"))
	if lib, err := FindABI(spec.MPICH, filepath.Join(dir, "openmpi")); lib != own || err != nil {
		t.Errorf("got %q, %v, want %s", lib, err, own)
	}
}

// TestABILibraryComesLast checks that it comes after the tools and the shim, so that those define
// the functions that the program calls.
func TestABILibraryComesLast(t *testing.T) {
	for old, want := range map[string]string{"": "/l", "/s:/t": "/s:/t:/l", "/l:/s": "/s:/l"} {
		if got := preloadLast("/l", old); got != want {
			t.Errorf("%q: got %q, want %q", old, got, want)
		}
	}
}
