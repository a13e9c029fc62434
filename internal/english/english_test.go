package english

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestClauses has sentences of the tree as it was, and good ones.
func TestClauses(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"Who has met all does not miss an answer.", 1},
		{"It may have been lost; who sent it may have left.", 1},
		{"Reconnected: what comes may have come before.", 1},
		{"A link need not be who loses patience first.", 1},
		{"Who may import whom: see the table.", 1},
		{"Memory is what is kept of what came in.", 2},
		{"It frees the block and what hangs on it.", 1},
		{"Otherwise, what is left is dropped.", 1},
		{"Whoever waits is woken, whatever comes.", 2},
		{"The rank waits (what it sent may be lost).", 1},
		{"It is only what the rank asked for.", 1},

		{"A rank that waits is woken.", 0},
		{"Those who read it know the rank, who sent it.", 0},
		{"The error says who is missing, and what to do.", 0},
		{"It looks at what the peer sent.", 0},
		{"What is left, and who waits for it?", 0},
		{"What to open: a port.", 0},
		{"It reads what the peer sent.", 0},
		{"It closes the link, whatever the order.", 0},
		{"The word `who` and \"what is\" are quoted.", 0},
	} {
		if got := clauses(split(passage{{1, c.text}})); len(got) != c.want {
			t.Errorf("%q: %d findings, want %d: %v", c.text, len(got), c.want, got)
		}
	}
}

// TestFields has comments of struct fields that are complete, and ones that are not.
func TestFields(t *testing.T) {
	for text, want := range map[string]int{
		"of those that wait, the first":         1,
		"it has had another link":               1,
		"and the rest":                          1,
		"the same of bytes":                     1,
		"the first rank of the job,":            1,
		"the first rank of the job, and":        1,
		"; bytes":                               1,
		"as above":                              1,
		"the first rank of the job":             0,
		"whether the link is lost":              0,
		"Rank is the rank in MPI_COMM_WORLD.":   0,
		"in bytes":                              0,
		"the peers by rank; nil if not started": 0,
	} {
		if got := field(split(passage{{1, text}})); len(got) != want {
			t.Errorf("%q: %v, want %d findings", text, got, want)
		}
	}
}

// TestDocs has doc comments of a function, wait, that begin with its name and a verb, and others.
func TestDocs(t *testing.T) {
	for text, want := range map[string]int{
		"Returns the time of a round.":     1,
		"Wait for a round.":                1,
		"wait of a round.":                 1,
		"wait":                             1,
		"One round at most.":               1,
		"wait blocks until a round ends.":  0,
		"wait reports whether it is over.": 0,
		"":                                 0,
	} {
		if got := doc("wait", split(passage{{1, text}})); len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", text, len(got), want, got)
		}
	}
}

// TestPhrases has words with a plain equivalent.
func TestPhrases(t *testing.T) {
	for _, c := range []struct {
		text    string
		literal bool
		want    int
	}{
		{"It mends the link, and begins anew. Besides, it waits.", false, 3},
		{"no forwarder: there is none", true, 1},
		{"The parent, or nil if there is none.", false, 0},
		{"The rank waits for that one.", false, 1},
		{"It goes to that one before the others.", false, 1},
		{"It says that one rank is missing.", false, 0},
		{"It fixes the link beside the others.", false, 0},
	} {
		if got := phrases(split(passage{{1, c.text}}), c.literal); len(got) != c.want {
			t.Errorf("%q: %d findings, want %d: %v", c.text, len(got), c.want, got)
		}
	}
}

// TestSubject has subjects of commits.
func TestSubject(t *testing.T) {
	for subject, want := range map[string]string{
		"forwarder: reject a second Bye from a stale connection": "",
		"Merge branch 'h-x'":                       "",
		"reject a second Bye":                      "package",
		"engine: who has met all misses no answer": "clause",
		"docs: " + strings.Repeat("x", 67):         "73 characters",
		"docs: " + strings.Repeat("é", 66):         "",
	} {
		if got := Subject(subject); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
	}
}

// TestFiles checks where Check finds text in files of each kind, and where it finds none.
func TestFiles(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []string // line and rule of each finding
	}{
		{"a.go", `// Package a is what a is.
package a

//nolint:x // who says so
// Code:
//
//	what comes
type t struct {
	// Of is the number of bytes.
	Of  int
	far int // of bytes
	// The peer,
	b int
}

// A comment without the name.
func (t) f() {}

// g: what it does.
func g() {}

// h returns nothing.
func h() {}

// Who reads it.
func ExampleT() {}

/* One,
and what is two. */
func TestWhy() { said := "there is none"; _ = said } // what comes
`, []string{"1 clause", "11 name", "11 field", "12 field", "16 doc", "19 clause", "19 doc", "25 clause", "28 doc",
			"29 clause", "30 name", "30 name", "30 word", "30 clause"}},
		{"made.go", "// Code generated by x. DO NOT EDIT.\n\npackage a\n\n// Who waits.\n", nil},
		{"c.go", "package a\n\n/*\n// Who waits.\n*/\nimport \"C\"\n", nil},
		{"a.c", `/* What comes. */
char *s = "/* What comes. */"; // what comes
struct s {
  int a; /* of bytes */
  union {
    int b[2]; /* and
               * more */
  } u;
};
int f(void) { int a; /* of bytes */ }
`, []string{"1 clause", "2 clause", "4 field", "6 field"}},
		{"a.sh", "#!/bin/sh\n# Who waits.\nx # who waits\n#   who  waits\n", []string{"2 clause"}},
		{"Makefile", "# Who waits.\n", []string{"1 clause"}},
		{"a.txt", "# Who waits.\n", nil},
		{"a.md", "# Who waits\n- Who waits.\n\n| who | what |\n```\nWho waits.\n```\n`x` waits\nfor what comes.\n",
			[]string{"2 clause", "9 clause"}},
		{"CHANGELOG.md", "## Unreleased\n- Who waits.\n## 0.1.0\n- Who waits.\n", []string{"2 clause"}},
		{"docs/decisions/0001-x.md", "Who waits.\n", nil},
	} {
		found, err := Check(c.name, []byte(c.src))
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprint(f.Line, " ", f.Rule))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q; %v", c.name, got, c.want, found)
		}
	}
	if _, err := Check("a.go", []byte("pack")); err == nil {
		t.Error("no error from a file that is no Go")
	}
}
