// Package english finds forms of English in comments, documents, names and commit subjects that a
// systems engineer has to read twice. Its test reads the whole tree; CONTRIBUTING.md has the rules.
//
// The rules look at words, not at grammar, so that they are fast and their findings are easy to
// explain. They miss many bad sentences, and must report few good ones.
package english

import (
	"fmt"
	"strings"
)

// Rule names a kind of finding.
type Rule string

const (
	// Clause is a clause whose subject or object is "who", "what", "whoever" or "whatever" in place
	// of a noun: "who waits is woken" for "a rank that waits is woken".
	Clause Rule = "clause"
	// Field is a comment of a struct field that is not complete in itself, because it goes on from
	// the field before it or into the next one.
	Field Rule = "field"
	// Word is a word or phrase with a plain equivalent that the tree uses: "fix" for "mend".
	Word Rule = "word"
	// Doc is the doc comment of a function in Go that does not begin with its name and a verb.
	Doc Rule = "doc"
	// Name is an identifier or a test's name that does not say what it stands for.
	Name Rule = "name"
)

// Finding is one place that breaks a rule.
type Finding struct {
	Line int    // the line in the file, from 1
	Rule Rule   // the rule that the place breaks
	Text string // the words at the place, with those around them
}

// Check returns the findings in one file, in no particular order. The name decides how comments are
// found. Files of other kinds and generated Go files have none. An error means that the file cannot
// be parsed.
func Check(name string, src []byte) ([]Finding, error) {
	f, err := read(name, string(src))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var found []Finding
	for _, p := range f.prose {
		words := split(p)
		found = append(append(found, clauses(words)...), phrases(words, false)...)
	}
	for _, p := range f.texts {
		found = append(found, phrases(split(p), true)...)
	}
	for _, p := range f.fields {
		found = append(found, field(split(p))...)
	}
	for _, d := range f.docs {
		found = append(found, doc(d.function, split(d.text))...)
	}
	for _, n := range f.names {
		if hint := badNames[n.text]; hint != "" {
			found = append(found, Finding{n.number, Name, n.text + " (" + hint + ")"})
		}
	}
	return found, nil
}

// maxSubject is the longest subject of a commit, in characters.
const maxSubject = 72

// Subject returns what is wrong with the subject of a commit, or "" if nothing is.
func Subject(s string) string {
	if n := len([]rune(s)); n > maxSubject {
		return fmt.Sprintf("has %d characters, more than %d", n, maxSubject)
	}
	if strings.HasPrefix(s, "Merge ") || strings.HasPrefix(s, "Revert ") {
		return ""
	}
	pkg, what, ok := strings.Cut(s, ": ")
	if !ok || pkg == "" || what == "" {
		return "does not begin with a package and a colon"
	}
	if found := clauses(split(passage{{1, what}})); len(found) > 0 {
		return "has a clause without a noun: " + found[0].Text
	}
	return ""
}
