package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// columns is the maximum length of a line of prose, in documents and in comments on lines of their
// own, because gofmt and clang-format do not reflow prose.
const columns = 100

var (
	// unbroken matches lines that cannot be broken or are no prose: tables, headings, one long
	// word.
	unbroken = regexp.MustCompile(`^\s*(\||#|<)|^\s*([-*>] )?\S+$|\]\([^)\s]{50,}\)|https?://`)
	// layout matches lines of comments with columns or commands, or with code behind the comment.
	layout = regexp.MustCompile(`^\s*//\t|\S {2,}\S|\s*\\$`)
	// directive matches comments that machines read, and generated ones.
	directive = regexp.MustCompile(`^\s*//(go:|export |nolint|line )|#cgo|DO NOT EDIT`)
	slashes   = regexp.MustCompile(`^\s*//`)
	stars     = regexp.MustCompile(`^\s*(/\*|\* )`)
	hashes    = regexp.MustCompile(`^\s*# `)
	prose     = map[string]*regexp.Regexp{".go": slashes, ".c": stars, ".h": stars, ".sh": hashes, ".yaml": hashes,
		".yml": hashes, ".conf": hashes, ".service": hashes, ".socket": hashes, ".py": hashes}
	// behind matches a comment behind code, and captures the code.
	behind = regexp.MustCompile(`^(.*\S)\s+// \S`)
)

// codeColumns is the maximum length of a line of code. A comment that exceeds it goes above the
// line.
const codeColumns = 120

// proseOf returns the pattern of comments in a file, or nil if the file has no comments.
func proseOf(file, text string) *regexp.Regexp {
	switch ext := filepath.Ext(file); {
	case ext != "":
		return prose[ext]
	case strings.HasPrefix(text, "#!"), filepath.Base(file) == "Makefile":
		return hashes
	}
	return nil
}

// TestColumns checks that prose fits into the columns, in documents (except code, tables, addresses
// and output of programs) and in comments of Go, C, shell, YAML and systemd.
func TestColumns(t *testing.T) {
	for _, file := range tree(t) {
		ext, text := filepath.Ext(file), read(t, file)
		comment := proseOf(file, text)
		if ext != ".md" && comment == nil || strings.HasSuffix(file, "reference/conformance.md") {
			continue
		}
		code, made := false, false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			made = made && line+"\n" != docpart.End || line+"\n" == docpart.Begin
			width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			switch {
			case made, width <= columns, code && ext == ".md", unbroken.MatchString(line):
			case ext == ".md",
				comment.MatchString(line) && !directive.MatchString(line) && !layout.MatchString(line):
				t.Errorf("%s:%d: %d columns; prose has at most %d", file, i+1, width, columns)
			case ext == ".go" && width > codeColumns:
				m := behind.FindStringSubmatch(line)
				if m != nil && !strings.Contains(line, "//nolint") && strings.Count(m[1], `"`)%2 == 0 &&
					utf8.RuneCountInString(strings.ReplaceAll(m[1], "\t", "    ")) <= codeColumns {
					t.Errorf("%s:%d: %d columns; the comment belongs above", file, i+1, width)
				}
			}
		}
	}
}
