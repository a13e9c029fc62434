package main

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestTemplates checks the beginning of issue templates, because code hosts ignore malformed ones.
func TestTemplates(t *testing.T) {
	pages, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	head := regexp.MustCompile(`^---\nname: .+\nabout: .+\n---\n\S`)
	for _, page := range pages {
		if !head.MatchString(read(t, page)) {
			t.Errorf("%s does not begin with ---, name:, about:, --- in lines of their own", page)
		}
	}
}
