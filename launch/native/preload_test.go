package native

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolsComeBeforeTheShim checks that libraries that wrap MPI come before the shim, and an MPI
// library and all others after it, each in the user's order.
func TestToolsComeBeforeTheShim(t *testing.T) {
	dir := t.TempDir()
	library := func(name, source string) string {
		path := filepath.Join(dir, name)
		cmd := exec.Command("gcc", "-shared", "-fPIC", "-o", path, "-x", "c", "-")
		cmd.Stdin = strings.NewReader(source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	tool := library("tool.so", "int PMPI_Send(void); int MPI_Send(void) { return PMPI_Send(); }")
	fortran := library("fortran.so", "void pmpi_send_(void); void mpi_send_(void) { pmpi_send_(); }")
	mpi := library("mpi.so", "int PMPI_Send(void) { return 0; } int MPI_Send(void) { return PMPI_Send(); }")
	user := library("user.so", "int MPI_Send(void); int f(void) { return MPI_Send(); }")
	const shim = "/lib/libmmpi-openmpi.so"
	for old, want := range map[string]string{
		"":                           shim,
		tool:                         tool + ":" + shim,
		tool + ":" + fortran:         tool + ":" + fortran + ":" + shim,
		mpi + ":" + tool:             tool + ":" + shim + ":" + mpi,
		user + " " + tool:            tool + ":" + shim + ":" + user,
		"libm.so.6:" + shim:          shim + ":libm.so.6",
		"/nowhere.so:::" + user + "": shim + ":/nowhere.so:" + user,
	} {
		if got := preload(shim, old); got != want {
			t.Errorf("%q gives %q, want %q", old, got, want)
		}
	}
}

func TestPreloadFirst(t *testing.T) {
	const lib = "/lib/libmmpi-unmaps.so"
	for old, want := range map[string]string{
		"":                         lib,
		"/a.so /b.so":              lib + ":/a.so:/b.so",
		"/a.so:" + lib + ":/b.so":  lib + ":/a.so:/b.so",
		"libmmpi-unmaps.so:/a.so:": lib + ":/a.so",
	} {
		if got := preloadFirst(lib, old); got != want {
			t.Errorf("%q gives %q, want %q", old, got, want)
		}
	}
}

// TestSanitizerComesFirst checks that a sanitizer's library is first, whether the program names it,
// the user has preloaded it, or both.
func TestSanitizerComesFirst(t *testing.T) {
	for _, c := range []struct{ first, old, want string }{
		{"libasan.so.8", "", "libasan.so.8:/s/libmmpi-openmpi.so"},
		{"libasan.so.8", "/x/libasan.so.8", "/x/libasan.so.8:/s/libmmpi-openmpi.so"},
		{"", "/a.so /x/libtsan.so.2", "/x/libtsan.so.2:/s/libmmpi-openmpi.so:/a.so"},
		{"libasan.so.8", "libasan.so.8:/s/libmmpi-openmpi.so", "libasan.so.8:/s/libmmpi-openmpi.so"},
	} {
		var first []string
		if c.first != "" {
			first = append(first, c.first)
		}
		if got := preload("/s/libmmpi-openmpi.so", c.old, first...); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.first, c.old, got, c.want)
		}
	}
	if got, want := preloadFirst("/s/libmmpi-unmaps.so", "libasan.so.8:/a.so"),
		"libasan.so.8:/s/libmmpi-unmaps.so:/a.so"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
