package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnsupported runs a program that checks that what the conformance table calls an error is one,
// at every rank.
func TestUnsupported(t *testing.T) {
	for _, s := range some {
		t.Run(s.name, func(t *testing.T) {
			b := New(t)
			r := b.OK(b.Zipped(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/unsupported.c")))
			if got, want := strings.Count(r.Stdout, " is refused\n"), 2*5*s.ranks(); got != want {
				t.Errorf("%d refusals, want %d:\n%v", got, want, r)
			}
		})
	}
}

// TestConformanceTable fails when docs/conformance.md is not what the generator makes of the
// libraries just built.
func TestConformanceTable(t *testing.T) {
	if o, m := version(OpenMPI), version(MPICH); !strings.HasPrefix(o, "4.1.") || !strings.HasPrefix(m, "4.0.") {
		t.Skipf("the table is of the functions of Open MPI 4.1 and MPICH 4.0, here are %s and %s", o, m)
	}
	b := New(t)
	made := b.OK(b.Run(nil, nil, filepath.Join(b.Root, "build/gen"), "-table", "build/openmpi/functions.tsv",
		"build/mpich/functions.tsv"))
	kept, err := os.ReadFile(filepath.Join(b.Root, "docs/conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != made.Stdout {
		t.Errorf("docs/conformance.md is out of date: go generate ./cgo/libmmpi/gen\n%s",
			firstDifference(lines(string(kept), nil), lines(made.Stdout, nil)))
	}
}
