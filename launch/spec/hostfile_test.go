package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Both forms of a host file are read: Open MPI's with slots=N, MPICH's with :N.
func TestReadHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	for text, want := range map[string][]HostLine{
		"a1\na2\n":                            {{Name: "a1"}, {Name: "a2"}},
		"# head\n\n a1 slots=2 max_slots=4\n": {{"a1", "2"}},
		"a1:3 # the fast one\na2:x":           {{"a1", "3"}, {"a2", "x"}},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadHosts(file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	if err := os.WriteFile(file, []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, word := range map[string]string{file: "names no host", filepath.Join(file, "none"): "host file: "} {
		if _, err := FirstHost(name); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v; want an error with %q", name, err, word)
		}
	}
}
