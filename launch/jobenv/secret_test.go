package jobenv

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadSecret(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	for _, c := range []struct {
		text    string
		mode    os.FileMode
		exposed bool
		bad     bool
	}{{" hush\n", 0o600, false, false}, {"hush", 0o640, false, false}, {"hush", 0o644, true, false}, {" \n", 0o600, false, true}} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		s, exposed, err := ReadSecret(name)
		if (err != nil) != c.bad || !c.bad && (s != "hush" || exposed != c.exposed) {
			t.Errorf("%q, %v: %q, %v, %v", c.text, c.mode, s, exposed, err)
		}
	}
}
