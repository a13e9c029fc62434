// Package optional is for test packages whose tests run only on request, by an environment
// variable.
package optional

import (
	"fmt"
	"os"
	"testing"
)

// Tests has the variable that requests the tests, and the reason why they do not run without it.
type Tests struct{ Variable, Why string }

// Skip skips a test that was not requested.
func (o Tests) Skip(t testing.TB) {
	t.Helper()
	if os.Getenv(o.Variable) == "" {
		t.Skip(o.Why)
	}
}

// nothing is the message of the testing package for a selection without tests. go test shows
// neither output nor skips of a package that passes, but it looks for this sentence, and shows "[no
// tests to run]".
const nothing = "testing: warning: no tests to run"

// Main is the TestMain of such a package. It reports that the tests were skipped.
func (o Tests) Main(m *testing.M) {
	status := m.Run()
	if status == 0 && os.Getenv(o.Variable) == "" {
		fmt.Printf("all skipped: %s\n%s\n", o.Why, nothing)
	}
	os.Exit(status)
}
