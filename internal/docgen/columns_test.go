package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the longest line of prose, in documents and in comments that stand alone. gofmt and
// clang-format reflow no prose.
const columns = 100

var (
	// Lines that cannot be broken, or are no prose: tables, headings, and what is one long word.
	unbroken = regexp.MustCompile(`^\s*(\||#|<)|^\s*([-*>] )?\S+$|\]\([^)\s]{50,}\)|https?://`)
	// In comments: columns, commands, and what the code behind it in the line takes.
	layout = regexp.MustCompile(`^\s*//\t|\S {2,}\S|\s*\\$`)
	// Comments that machines read, and generated ones.
	directive = regexp.MustCompile(`^\s*//(go:|export |nolint|line )|#cgo|DO NOT EDIT`)
	prose     = map[string]*regexp.Regexp{
		".go": regexp.MustCompile(`^\s*//`),
		".c":  regexp.MustCompile(`^\s*(/\*|\* )`),
		".h":  regexp.MustCompile(`^\s*(/\*|\* )`),
	}
)

// TestColumns: prose fits into the columns, in documents (but for code, tables, addresses and what
// programs write) and in comments.
func TestColumns(t *testing.T) {
	for _, file := range tree(t) {
		ext := filepath.Ext(file)
		if ext != ".md" && prose[ext] == nil || strings.HasSuffix(file, "reference/conformance.md") {
			continue
		}
		code, made := false, false
		for i, line := range strings.Split(read(t, file), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			made = made && line+"\n" != end || line+"\n" == begin
			width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			switch {
			case made, width <= columns, code && ext == ".md", unbroken.MatchString(line):
			case ext == ".md",
				prose[ext].MatchString(line) && !directive.MatchString(line) && !layout.MatchString(line):
				t.Errorf("%s:%d: %d columns; prose has at most %d", file, i+1, width, columns)
			}
		}
	}
}
