package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTune checks that zipper tune writes a table that a job accepts, whatever its content, and
// that a malformed table is refused before anything starts.
func TestTune(t *testing.T) {
	b := New(t)
	b.Limit *= 4 // 24 jobs
	file := filepath.Join(t.TempDir(), "clusters.tuning")
	r := b.OK(b.Run(nil, nil, b.Zipper, "tune", "--cluster", "a=2", "--cluster", "b=1", "--on", "localdepth", "--rounds", "6",
		"--reps", "2", "--output", file))
	if !strings.Contains(r.Stderr, "localdepth ") || !strings.Contains(r.Stderr, " of its time") {
		t.Errorf("it does not say what it has found:\n%v", r)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "# Made by zipper tune on ") ||
		!strings.Contains(string(text), "\nlocaldepth=") || !strings.Contains(string(text), "\nsegment=65536\n") {
		t.Fatalf("%v: %s", err, text)
	}
	ring := b.Compile(OpenMPI, "test/programs/c/coll_basic.c")
	b.OK(b.Run(nil, nil, b.Zipper, "run", "--cluster", "a=2", "--cluster", "b=1", "--tuning", file, "--", ring))
	if err := os.WriteFile(file, []byte("leader=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = b.Run(nil, nil, b.Zipper, "run", "--cluster", "a=2", "--cluster", "b=1", "--tuning", file, "--", ring)
	if r.Status != 2 || !strings.Contains(r.Stderr, "no such setting of collectives") {
		t.Errorf("want a usage error: %v", r)
	}
}
