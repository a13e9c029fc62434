package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// words is the longest sentence, up to its next full stop, colon or semicolon: longer ones are read
// twice.
const words = 40

var (
	aside     = regexp.MustCompile(`(?m)^\s*(?:\||#).*$`) // tables and headings
	paragraph = regexp.MustCompile(`\n\s*\n|\n\s*(?:[-*]|\d+\.)\s`)
	stop      = regexp.MustCompile(`[.?!:;](?:\s|$)`)
	goComment = regexp.MustCompile(`(?m)(?:^[ \t]*//.*\n)+`)
	goMark    = regexp.MustCompile(`(?m)^[ \t]*//(?:\t.*|go:.*| ?)`)
)

// TestSentences: sentences of documents and of Go's comments can be read once.
func TestSentences(t *testing.T) {
	for _, file := range tree(t) {
		var texts []string
		switch filepath.Ext(file) {
		case ".md":
			text := fence.ReplaceAllString(read(t, file), "")
			for { // what is made from code has other rules
				before, rest, ok := strings.Cut(text, docpart.Begin)
				_, after, ok2 := strings.Cut(rest, docpart.End)
				if text = before + after; !ok || !ok2 {
					break
				}
			}
			texts = []string{text}
		case ".go":
			for _, c := range goComment.FindAllString(read(t, file), -1) {
				texts = append(texts, goMark.ReplaceAllString(c, ""))
			}
		}
		for _, text := range texts {
			for _, p := range paragraph.Split(inCode.ReplaceAllString(aside.ReplaceAllString(text, ""), "x"), -1) {
				for _, s := range stop.Split(p, -1) {
					if n := len(strings.Fields(s)); n > words {
						t.Errorf("%s: a sentence of %d words; at most %d: %s", file, n, words, strings.Join(strings.Fields(s), " "))
					}
				}
			}
		}
	}
}
