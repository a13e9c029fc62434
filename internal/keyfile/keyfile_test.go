package keyfile

import (
	"crypto/ed25519"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

// TestOpen checks that all processes that start at once get the same key, and that no other user
// can read it.
func TestOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state", "host_key")
	keys, made := make([]ed25519.PrivateKey, 20), 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			k, is, err := Open(name)
			mu.Lock()
			defer mu.Unlock()
			if keys[i] = k; is {
				made++
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if !k.Equal(keys[0]) {
			t.Fatal("different keys")
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if left, _ := filepath.Glob(name + ".*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	public := name + ".pub"
	if err := WritePublic(public, keys[0].Public().(ed25519.PublicKey)); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{name, public} {
		if k, err := Public(f); err != nil || !k.Equal(keys[0].Public()) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := Private(public); err == nil || !strings.Contains(err.Error(), "others on this host") {
		t.Errorf("a public key as a private one: %v", err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(name); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others read: %v", err)
	}
}

// TestOpenSSL checks that the files can be exchanged with openssl.
func TestOpenSSL(t *testing.T) {
	optional.Program(t, "openssl")
	dir := t.TempDir()
	name, public := filepath.Join(dir, "k"), filepath.Join(dir, "p")
	for _, args := range [][]string{{"genpkey", "-algorithm", "ed25519", "-out", name},
		{"pkey", "-in", name, "-pubout", "-out", public}} {
		if out, err := exec.Command("openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Private(name)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := Public(public); err != nil || !p.Equal(k.Public()) {
		t.Error(err)
	}
	rsa := filepath.Join(dir, "r")
	if out, err := exec.Command("openssl", "genpkey", "-algorithm", "x25519", "-out",
		rsa).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	os.Chmod(rsa, 0o600)
	if _, err := Private(rsa); err == nil || !strings.Contains(err.Error(), "want an Ed25519") {
		t.Errorf("a key of another kind: %v", err)
	}
}

// FuzzKey checks that no input crashes the parser, and that an accepted input is a key.
func FuzzKey(f *testing.F) {
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := Public(name); err == nil && len(k) != ed25519.PublicKeySize {
			t.Errorf("%x", k)
		}
		if k, err := Private(name); err == nil && len(k) != ed25519.PrivateKeySize {
			t.Errorf("%x", k)
		}
	})
}
