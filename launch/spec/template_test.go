package spec

import (
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestWordsInBracesAreTheClusters checks that the library, the architecture and the name of a
// cluster replace their words in its program, and the architecture in the path of its zipper.
func TestWordsInBracesAreTheClusters(t *testing.T) {
	arch := wire.Architecture()
	c := Cluster{Name: "a", MPI: MPICH, Program: []string{"./prog.{mpi}.{arch}", "{cluster}", "{other}"},
		Zipper: "/opt/{arch}/bin/zipper"}
	c.Expand()
	if want := []string{"./prog.mpich." + arch, "a", "{other}"}; !slices.Equal(c.Program, want) {
		t.Errorf("%q, want %q", c.Program, want)
	}
	if want := "/opt/" + arch + "/bin/zipper"; c.ZipperPath() != want {
		t.Errorf("%s, want %s", c.ZipperPath(), want)
	}
}
