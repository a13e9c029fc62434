package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDesign checks that each page of docs/design, and the overview, has a figure before its first
// heading. A numbered walk follows, and each of its steps names a file of the tree (TestNamedFiles)
// or links to a page.
func TestDesign(t *testing.T) {
	pages, err := filepath.Glob("../../docs/design/*.md")
	if err != nil || len(pages) < 12 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	step := regexp.MustCompile(`(?m)^\d+\. `)
	for _, page := range append(pages, "../../ARCHITECTURE.md") {
		head, rest, _ := strings.Cut(read(t, page), "\n## ")
		if !strings.Contains(head, "\n```\n") && !strings.Contains(head, "\n![") {
			t.Errorf("%s: no figure before the first heading", page)
		}
		title, walk, _ := strings.Cut(rest, "\n")
		walk, _, _ = strings.Cut(walk, "\n## ")
		steps := step.Split(walk, -1)[1:]
		if title != "Walk" || len(steps) < 5 {
			t.Errorf("%s: the first heading is %q, with %d numbered steps; want a Walk of 5 or more", page, title, len(steps))
		}
		for i, s := range steps {
			if !inDocument.MatchString(s) && !strings.Contains(s, ".md)") {
				t.Errorf("%s: step %d of the walk names no file: %s", page, i+1, s)
			}
		}
	}
}
