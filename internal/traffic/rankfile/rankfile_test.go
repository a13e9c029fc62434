package rankfile

import (
	"slices"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	places := []Place{{"a1", "a"}, {"b1", "b"}, {"z1", "a"}, {"b1", "b"}, {"a1", "a"}}
	var b strings.Builder
	if err := Write(&b, places); err != nil {
		t.Fatal(err)
	}
	again, err := Read(strings.NewReader(b.String()))
	if err != nil || !slices.Equal(again, places) {
		t.Fatalf("%v, %v, of\n%s", again, err, b.String())
	}
	hosts := Hosts(places, "a")
	for want, write := range map[string]func(*strings.Builder) error{
		"a1\nz1\na1\n": func(b *strings.Builder) error { return WriteHosts(b, hosts) },
		"rank 0=a1 slot=0\nrank 1=z1 slot=0\nrank 2=a1 slot=1\n": func(b *strings.Builder) error { return WriteOpenMPI(b, hosts) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil || b.String() != want {
			t.Errorf("%v, %q, want %q", err, b.String(), want)
		}
	}
}

func TestRead(t *testing.T) {
	if p, err := Read(strings.NewReader("# a comment\n1 b1 # why\n\n0 a1 a\n")); err != nil ||
		!slices.Equal(p, []Place{{"a1", "a"}, {"b1", ""}}) {
		t.Errorf("%v, %v", p, err)
	}
	for text, want := range map[string]string{
		"0 a1\n0 a2\n":       "line 2: rank 0 is placed twice",
		"0\n":                "line 1: want RANK HOST CLUSTER",
		"0 a b c\n":          "line 1: want",
		"x a1\n":             "line 1: \"x\" is not a rank",
		"-1 a1\n":            "is not a rank",
		"0 a1\n2 a1\n":       "not rank 1",
		"1000000000000 a1\n": "not rank 0",
	} {
		if p, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, p, err, want)
		}
	}
}
