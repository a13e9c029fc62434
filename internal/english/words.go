package english

import (
	"maps"
	"regexp"
	"strings"
)

// word is a word of a passage.
type word struct {
	low  string // the word in lower case, without punctuation
	raw  string // the word as it is written
	line int    // its line in the file, from 1
	open bool   // a bracket stands before it
	end  byte   // the punctuation after it, one of ".?!:;,", or 0
}

var (
	quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”")
	link   = regexp.MustCompile(`\]\([^)]*\)`)
)

// split cuts a passage into words. Code and quotations count as one word each.
func split(p passage) []word {
	var words []word
	for _, l := range p {
		s := l.text
		if strings.ContainsAny(s, "`\"“") {
			s = quoted.ReplaceAllString(s, "_")
		}
		if strings.Contains(s, "](") {
			s = link.ReplaceAllString(s, "]")
		}
		for _, raw := range strings.Fields(s) {
			w := word{raw: raw, line: l.number}
			w.open = raw[0] == '('
			rest := strings.TrimLeft(raw, "([*'\"")
			rest = strings.TrimRight(rest, ")]*'\"")
			if n := len(rest); n > 0 && strings.IndexByte(".?!:;,", rest[n-1]) >= 0 {
				w.end = rest[n-1]
			}
			w.low = strings.ToLower(strings.TrimRight(rest, ".?!:;,)]*'\""))
			words = append(words, w)
		}
	}
	return words
}

// set makes a set of the words in s.
func set(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// union returns the words of both sets.
func union(a, b map[string]bool) map[string]bool {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// around returns the words at i with one before and five after them.
func around(words []word, i int) string {
	var s []string
	for _, w := range words[max(i-1, 0):min(i+6, len(words))] {
		s = append(s, w.raw)
	}
	return strings.Join(s, " ")
}
