package jobenv

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodSecret = "00112233445566778899aabbccddeeff"

// emptyEnvironment is an environment without variables.
func emptyEnvironment(string) string { return "" }

func TestReadSecret(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	for _, c := range []struct {
		text    string
		mode    os.FileMode
		problem string
	}{{" " + goodSecret + "\n", 0o600, ""}, {goodSecret, 0o400, ""}, {" \n", 0o600, "empty"},
		{"hush", 0o600, "want 128"},
		{"correct horse battery staple and then some more", 0o600, "--passphrase"},
		{goodSecret, 0o640, "chmod 600 " + name}, {goodSecret, 0o644, "chmod 600 " + name},
		{goodSecret, 0o602, "chmod 600 " + name}} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSecret(name, emptyEnvironment)
		switch {
		case c.problem == "" && (err != nil || s != goodSecret):
			t.Errorf("%q, %v: %q, %v", c.text, c.mode, s, err)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%q, %v: got %v, want an error with %q", c.text, c.mode, err, c.problem)
		}
	}
}

// TestCheckSecret checks that random secrets are accepted in every usual form, and human words are
// not.
func TestCheckSecret(t *testing.T) {
	for range 1000 {
		b := make([]byte, 24)
		_, _ = rand.Read(b) // it never fails
		for _, s := range []string{hex.EncodeToString(b[:16]), strings.ToUpper(hex.EncodeToString(b[:16])),
			rand.Text() + "7",
			base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b)} {
			if err := CheckSecret(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	for _, s := range []string{"s", "s3cret", "0123456789012345", strings.Repeat("a", 100), strings.Repeat("a1", 50),
		"correcthorsebatterystaple", "thequickbrownfoxjumpsoverthelazydog", "31415926535897932384626433832795",
		"00112233445566778899aabbccddee"} {
		if CheckSecret(s) == nil {
			t.Errorf("%q is taken for a secret of %.0f bits", s, secretBits(s))
		}
	}
}

// TestWeakSecretInEnvironment checks that a weak secret is an error also in the environment.
func TestWeakSecretInEnvironment(t *testing.T) {
	vars := map[string]string{VarJob: "j", VarSecret: "s3cret", VarCluster: "a", VarLayout: "a=1"}
	get := func(k string) string { return vars[k] }
	if _, err := From(get); err == nil || !strings.Contains(err.Error(), "zipper secret") {
		t.Errorf("a secret of six letters: %v", err)
	}
	vars[VarSecret] = goodSecret
	if _, err := From(get); err != nil {
		t.Error(err)
	}
}
