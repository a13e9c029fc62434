package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	scheme  = regexp.MustCompile(`^[a-z]+:`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// TestLinks checks that every link of a document leads to a file or folder of the tree, and to an
// existing heading.
func TestLinks(t *testing.T) {
	links := 0
	for _, file := range documentsOf(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, file), ""), -1) {
			if scheme.MatchString(m[1]) {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			to := file
			if path != "" {
				to = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: a link leads nowhere: %s", file, m[1])
			} else if anchor != "" && !anchors(read(t, to))[anchor] {
				t.Errorf("%s: a link leads to no heading: %s", file, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links found: is the pattern still right?", links)
	}
}

// anchors returns the anchors of a document: its headings in lower case, with letters and digits
// only, and hyphens for blanks, as code hosts and the site make them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return all
}

// documentsOf returns the Markdown files of the tree.
func documentsOf(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, file := range tree(t) {
		if filepath.Ext(file) == ".md" {
			all = append(all, file)
		}
	}
	return all
}
