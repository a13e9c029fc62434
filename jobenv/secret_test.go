package jobenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	for _, c := range []struct {
		text    string
		mode    os.FileMode
		problem string
	}{{" hush\n", 0o600, ""}, {"hush", 0o640, ""}, {"hush", 0o644, "chmod o-r " + name}, {" \n", 0o600, "empty"}} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSecret(name)
		switch {
		case c.problem == "" && (err != nil || s != "hush"):
			t.Errorf("%q, %v: %q, %v", c.text, c.mode, s, err)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%q, %v: got %v, want an error with %q", c.text, c.mode, err, c.problem)
		}
	}
}
