package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// guests are programs for which a library in their process must be a good guest
// (docs/design/guest.md). They run over each library and over both.
var guests = []program{
	{file: "c/coroutines.c"},
}

// TestGuests compares the programs of guests with their native runs.
func TestGuests(t *testing.T) {
	New(t)
	for _, p := range guests {
		t.Run(p.title(), func(t *testing.T) {
			overSplits(t, "", asked([]split{oneOne, mpichPair, mixedPair}), func(b *Bed, s split) {
				b.asNatively(Job{Clusters: s.clusters}, append([]string{compileFor(b, s.clusters, p.file, p.flags...)},
					p.args...)...)
			})
		})
	}
}

// TestClosedPlugin has a program close the plug-in that brought MPI, while the engine's threads
// run.
func TestClosedPlugin(t *testing.T) {
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		host, plugin := b.compilePlain("c/plugin_host.c"), compileFor(b, s.clusters, "c/plugin.c", "-shared", "-fPIC")
		native := b.OK(b.Native(OpenMPI, s.ranks(), host, strings.ReplaceAll(plugin, "{mpi}", OpenMPI)))
		b.Same(native, b.OK(b.Zipped(Job{Clusters: s.clusters}, host, plugin)), nil)
	})
}

// TestRelativeLibraryPath starts a linked program whose libraries are found by a relative path, and
// which changes its working directory before MPI_Init.
func TestRelativeLibraryPath(t *testing.T) {
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		var path string
		for _, c := range s.clusters {
			path = strings.ReplaceAll(b.Compile(c.MPI, "test/programs/c/elsewhere.c", "-L"+filepath.Join(b.Root, "lib"),
				"-Wl,--no-as-needed", "-lmmpi-"+c.MPI), c.MPI, "{mpi}")
		}
		b.OK(b.Zipped(Job{Clusters: s.clusters, Env: []string{"LD_LIBRARY_PATH=lib"}}, path))
	})
}
