package jobenv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var keyA, keyB = strings.Repeat("A", 42) + "E", strings.Repeat("B", 42) + "A"

// TestHostKeys checks that a key comes with the address, or from the file of known ones, and is
// passed on to the ranks.
func TestHostKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(file, []byte("# ours\nzip2:7475 "+keyB+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=1", VarKnown: file}
	get := func(k string) string { return vars[k] }
	for list, want := range map[string]string{
		"zip1:7475":                        "zip1:7475",
		"zip1:7475#" + keyA + ",zip2:7475": "zip1:7475#" + keyA + ",zip2:7475#" + keyB,
		"zip2":                             "zip2#" + keyB,
		"zip1=a+b#" + keyA:                 "a@zip1+b@zip1#" + keyA,
		"a@zip1:1+b@zip2:7475":             "a@zip1:1+b@zip2:7475#" + keyB,
	} {
		vars[VarForwarders] = list
		j, err := From(get)
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		if got := j.forwarderList(); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
		vars[VarForwarders], vars[VarKnown] = j.forwarderList(), filepath.Join(t.TempDir(), "none")
		again, err := From(get)
		if err != nil || again.forwarderList() != want {
			t.Errorf("%s: the rank has %s, %v", list, again.forwarderList(), err)
		}
		vars[VarKnown] = file
	}
	vars[VarHostKeys] = StrictKey
	for list, problem := range map[string]string{
		"zip1:7475#" + keyA: "", "zip2:7475": "", "zip3:7475": "zip3:7475 is not known", "zip1:7475#short": "host key",
		"zip1=a+b": "zip1 is not known",
	} {
		vars[VarForwarders] = list
		if _, err := From(get); (err == nil) != (problem == "") || err != nil &&
			!strings.Contains(err.Error(), problem) {
			t.Errorf("strict, %s: %v", list, err)
		}
	}
	vars[VarHostKeys], vars[VarForwarders] = "some", "zip2:7475"
	if _, err := From(get); err == nil || !strings.Contains(err.Error(), VarHostKeys) {
		t.Errorf("another word: %v", err)
	}
}

// TestAskHostKeys checks that the key from a forwarder is kept, and not asked for again.
func TestAskHostKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zipper", "known")
	asked := 0
	ask := func(a string) (string, error) {
		asked++
		if a != "zip1:7475" {
			return "", errors.New("not reached")
		}
		return keyA, nil
	}
	for range 2 {
		vars := map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=1",
			VarKnown:      file,
			VarForwarders: "zip1:7475", VarHostKeys: AcceptNew}
		j, err := From(func(k string) string { return vars[k] })
		if err == nil {
			err = j.AskHostKeys(AcceptNew, file, ask)
		}
		if err != nil || j.HostKeys["zip1:7475"] != keyA {
			t.Fatalf("%v, %v", j.HostKeys, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	j := Job{Forwarders: []string{"zip9:1"}}
	if err := j.AskHostKeys(AcceptNew, file, ask); err == nil {
		t.Error("a forwarder that is not reached")
	}
	if err := j.AskHostKeys(AnyKey, file, ask); err != nil || asked != 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// FuzzKnown checks that no file crashes the parser, and that an accepted file has addresses with
// keys.
func FuzzKnown(f *testing.F) {
	f.Add([]byte("# comment\nzip1:7475 " + keyA + "\n\n[::1]:1 " + keyB))
	f.Add([]byte("zip1 " + keyA + "\nzip1 " + keyB))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseKnown(b)
		if err != nil {
			return
		}
		for a, key := range k {
			if _, z, err := ParseZipper("x#" + key); err != nil || z.HostKey != key || strings.ContainsAny(a, " \n") {
				t.Errorf("%q: %q, %v", a, key, err)
			}
		}
	})
}

// FuzzZipper checks that a forwarder which is parsed is formatted to the same text.
func FuzzZipper(f *testing.F) {
	for _, s := range []string{"zip1", "zip1:1=a+b", "a@x:1+b@y#" + keyA, "verbs:h?connect=cm#" + keyB,
		"unix:/tmp/#x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		address, z, err := ParseZipper(s)
		if err != nil {
			return
		}
		text := z.String()
		if address != "" {
			text = withKey(address, z.HostKey)
		}
		again, y, err := ParseZipper(text)
		if err != nil || again != address || y.String() != z.String() {
			t.Errorf("%q is written as %q, which is %q, %v, %v", s, text, again, y, err)
		}
	})
}
