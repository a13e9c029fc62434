package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConformanceTable fails when docs/conformance.md is not what the generator makes of the libraries just built.
func TestConformanceTable(t *testing.T) {
	b := New(t)
	made := b.OK(b.Run(nil, nil, filepath.Join(b.Root, "build/gen"), "-table", "build/openmpi/functions.tsv", "build/mpich/functions.tsv"))
	kept, err := os.ReadFile(filepath.Join(b.Root, "docs/conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != made.Stdout {
		b.Same(Result{Command: "docs/conformance.md", Stdout: string(kept)}, made, nil)
		t.Error("docs/conformance.md is out of date: go generate ./cgo/mpi/gen")
	}
}
