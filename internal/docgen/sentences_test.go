package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// words is the maximum number of words in a sentence, up to its next full stop, colon or semicolon,
// because longer ones have to be read twice.
const words = 40

var (
	aside     = regexp.MustCompile(`(?m)^\s*(?:\||#).*$`) // tables and headings
	paragraph = regexp.MustCompile(`\n\s*\n|\n\s*(?:[-*]|\d+\.)\s`)
	stop      = regexp.MustCompile(`[.?!:;](?:\s|$)`)
)

// commentKind has the patterns for the comments of a language: whole matches a comment, mark its
// marks, and laidOut its lines with a layout, such as commands and columns. The latter two are no
// text.
type commentKind struct{ whole, mark, laidOut *regexp.Regexp }

// kinds has the patterns for each result of proseOf.
var kinds = map[*regexp.Regexp]commentKind{
	slashes: {regexp.MustCompile(`(?m)(?:^[ \t]*//.*\n)+`), regexp.MustCompile(`(?m)^[ \t]*// ?`),
		regexp.MustCompile(`(?m)^[ \t]*//(?:\t|go:).*$`)},
	stars: {regexp.MustCompile(`(?s)/\*.*?\*/`), regexp.MustCompile(`(?m)^[ \t]*(?:/\*+|\*+/|\*) ?|\*+/|[ \t]*\\$`),
		regexp.MustCompile(`(?m)^[ \t]*\* {2,}.*$`)},
	hashes: {regexp.MustCompile(`(?m)(?:^[ \t]*#(?: .*)?\n)+`), regexp.MustCompile(`(?m)^[ \t]*# ?`),
		regexp.MustCompile(`(?m)^[ \t]*# {2,}.*$|^.*\S {2,}\S.*$`)},
}

// textsOf returns the parts of a file with sentences: a document without code and generated parts,
// or each comment of another file.
func textsOf(t *testing.T, file string) (texts []string) {
	text := read(t, file)
	if filepath.Ext(file) == ".md" {
		text = fence.ReplaceAllString(text, "")
		for { // generated parts have other rules
			before, rest, ok := strings.Cut(text, docpart.Begin)
			_, after, ok2 := strings.Cut(rest, docpart.End)
			if text = before + after; !ok || !ok2 {
				return []string{aside.ReplaceAllString(text, "")}
			}
		}
	}
	kind, ok := kinds[proseOf(file, text)]
	if !ok {
		return nil
	}
	for _, c := range kind.whole.FindAllString(text, -1) {
		texts = append(texts, kind.mark.ReplaceAllString(kind.laidOut.ReplaceAllString(c, ""), ""))
	}
	return texts
}

// sentencesOf cuts a text into its sentences, each on one line.
func sentencesOf(text string) (all []string) {
	for _, p := range paragraph.Split(inCode.ReplaceAllString(text, "x"), -1) {
		for _, s := range stop.Split(p, -1) {
			if s = strings.Join(strings.Fields(s), " "); s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

// TestSentences checks the length of sentences in documents, and in comments in Go, C, scripts and
// settings.
func TestSentences(t *testing.T) {
	found := map[string]int{}
	for _, file := range tree(t) {
		for _, text := range textsOf(t, file) {
			for _, s := range sentencesOf(text) {
				found[filepath.Ext(file)]++
				if n := len(strings.Fields(s)); n > words {
					t.Errorf("%s: a sentence of %d words; at most %d: %s", file, n, words, s)
				}
			}
		}
	}
	for ext, least := range map[string]int{".md": 2000, ".go": 5000, ".c": 1000, ".h": 300, "": 100} {
		if found[ext] < least {
			t.Errorf("only %d sentences in files *%s: are the patterns still right?", found[ext], ext)
		}
	}
}

// TestTextsOfComments checks that marks and lines with a layout are removed.
func TestTextsOfComments(t *testing.T) {
	for _, c := range []struct {
		kind       *regexp.Regexp
		text, want string
	}{
		{slashes, "x()\n\t// One\n\t// two.\n\t//\tcode\n", "One two"},
		{stars, "int x; /* One\n * two. */\n", "One two"},
		{stars, "  /* One\n   * two.\n   *\n   *   a  b\n   */\n", "One two"},
		{hashes, "#!/bin/sh\n# One\n# two.\n#\n#   a  b\nx # y\n", "One two"},
	} {
		kind := kinds[c.kind]
		var got []string
		for _, w := range kind.whole.FindAllString(c.text, -1) {
			got = append(got, sentencesOf(kind.mark.ReplaceAllString(kind.laidOut.ReplaceAllString(w, ""), ""))...)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q has the sentences %q; want %q", c.text, got, c.want)
		}
	}
}
