// Package optional is for test packages whose tests run only if they are asked for, by a variable
// of the environment.
package optional

import (
	"fmt"
	"os"
	"testing"
)

// Tests says by which variable tests are asked for, and why they are not run without.
type Tests struct{ Variable, Why string }

// Skip skips a test that nobody has asked for.
func (o Tests) Skip(t testing.TB) {
	t.Helper()
	if os.Getenv(o.Variable) == "" {
		t.Skip(o.Why)
	}
}

// nothing is what the testing package says of a selection without tests. Of a package that passes
// go test shows neither what it prints nor what it skips, but it looks for this sentence, and shows
// "[no tests to run]".
const nothing = "testing: warning: no tests to run"

// Main is such a package's TestMain: it says that the tests have been skipped.
func (o Tests) Main(m *testing.M) {
	status := m.Run()
	if status == 0 && os.Getenv(o.Variable) == "" {
		fmt.Printf("all skipped: %s\n%s\n", o.Why, nothing)
	}
	os.Exit(status)
}
