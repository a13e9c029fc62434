package optional

import (
	"os"
	"os/exec"
	"testing"
)

// NeedsVariable is the variable of the environment that scripts/test sets once it has installed
// what its stages need.
const NeedsVariable = "ZIPPER_NEEDS"

// Program returns the path of a program, by its name or path, that a test needs. Without it the
// test is skipped, or fails if NeedsVariable is set: then the list in scripts/prerequisites lacks
// its package.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv(NeedsVariable) != "" {
		t.Fatalf("%v: its package is missing in the lists of scripts/prerequisites", err)
	}
	t.Skipf("%v", err)
	return ""
}
