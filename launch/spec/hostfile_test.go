package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadHosts has both forms of a host file: Open MPI's with slots=N, MPICH's with :N.
func TestReadHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	for text, want := range map[string][]HostLine{
		"a1\na2\n":                            {{Name: "a1"}, {Name: "a2"}},
		"# head\n\n a1 slots=2 max_slots=4\n": {{"a1", "2", " max_slots=4"}},
		"a1:3 # the fast one\r\na2:1\r\n":     {{Name: "a1", Slots: "3"}, {Name: "a2", Slots: "1"}},
		"a[08-10,1]-ib:2\nb":                  {{"a08-ib", "2", ""}, {"a09-ib", "2", ""}, {"a10-ib", "2", ""}, {"a1-ib", "2", ""}, {Name: "b"}},
		"r[1-2]n[1-2]":                        {{Name: "r1n1"}, {Name: "r1n2"}, {Name: "r2n1"}, {Name: "r2n2"}},
		"fd01::1\nfe80::1%e0\n[fe80::2%e0]:4": {{Name: "fd01::1"}, {Name: "fe80::1%e0"}, {Name: "fe80::2%e0", Slots: "4"}},
		"10.0.0.1:2 ":                         {{Name: "10.0.0.1", Slots: "2"}},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadHosts(file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, word := range map[string]string{
		"a\nb:x":              `line 2: "x" slots: want a number from 1`,
		"b slots=0":           `"0" slots`,
		"a[1-":                "a [ without its ]",
		"a[4-1]":              `"4-1": want a number, or two`,
		"a[x]":                `"x": want a number`,
		"a]":                  "is not a host's name",
		"a[1-999999999]":      "more than",
		"a[1-99999]b[1-9999]": "more than",
		"[fe80::1]x":          "want [ADDRESS]",
	} {
		if _, err := ParseHosts(text); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v; want an error with %q", text, err, word)
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

// TestHostFileFitsTheLauncher checks that each launcher gets the form that it reads, whichever the
// user wrote.
func TestHostFileFitsTheLauncher(t *testing.T) {
	hosts, err := ParseHosts("a[1-2]:2 max_slots=4\nb\n")
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[MPI]string{
		OpenMPI: "a1 slots=2 max_slots=4\na2 slots=2 max_slots=4\nb\n",
		MPICH:   "a1:2\na2:2\nb\n",
	} {
		if got, err := HostFile(m, hosts); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", m, got, err, want)
		}
	}
	if text, err := HostFile(OpenMPI, []HostLine{{Name: "fd01::1", Slots: "1"}}); text != "fd01::1 slots=1\n" ||
		err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := HostFile(MPICH, []HostLine{{Name: "fd01::1"}}); err == nil ||
		!strings.Contains(err.Error(), "give the host's name") {
		t.Error(err)
	}
}
