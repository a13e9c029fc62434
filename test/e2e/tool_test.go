package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTool checks that a profiling tool, preloaded or linked into the program, sees the calls of a
// zipped run as it sees those of a native one, and that its own calls reach all ranks.
func TestTool(t *testing.T) {
	overSplits(t, "", []split{twoOne, mpichPair}, func(b *Bed, s split) {
		t := b.T
		mpi := s.clusters[0].MPI
		const program = "test/programs/c/p2p_modes.c"
		tool := b.Compile(mpi, "test/programs/c/tool.c", "-shared", "-fPIC")
		bare := b.Compile(mpi, program)
		linked := b.Compile(mpi, program, filepath.Join(b.Root, "test/programs/c/tool.c"))
		for how, argv := range map[string][]string{"preloaded": {"env", "LD_PRELOAD=" + tool, bare},
			"linked": {linked}} {
			native := b.OK(b.Native(mpi, s.ranks(), argv...))
			if !strings.Contains(native.Stdout, "tool: ") || strings.Contains(native.Stdout, " 0 sends") {
				t.Fatalf("the tool counts nothing natively:\n%v", native)
			}
			j := Job{Clusters: s.clusters}
			if how == "preloaded" {
				// as in a user's environment; zipper run itself is no MPI program
				j.Env, argv = []string{"LD_PRELOAD=" + tool}, argv[2:]
			}
			b.Same(native, b.OK(b.Zipped(j, argv...)), nil)
		}
	})
}
