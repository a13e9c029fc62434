package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parts are the headings that each decision has, in this order.
var parts = []string{"Context", "Decision", "Measurements", "Rejected alternatives", "Where it applies"}

// longest is the maximum number of lines of a decision, so that it keeps to the decisive facts.
const longest = 60

// TestDecisions checks that pages of docs/decisions are numbered without a gap and have all parts,
// and that the index has each with its title.
func TestDecisions(t *testing.T) {
	const folder = "../../docs/decisions"
	pages, err := filepath.Glob(folder + "/0*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	index := strings.Join(strings.Fields(read(t, folder+"/README.md")), " ")
	for i, page := range pages {
		name, text := filepath.Base(page), read(t, page)
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("%s: the number should be %s", name, want)
		}
		if n := strings.Count(text, "\n"); n > longest {
			t.Errorf("%s has %d lines; at most %d", name, n, longest)
		}
		var has []string
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1) {
			has = append(has, m[1])
		}
		if !slices.Equal(has, parts) {
			t.Errorf("%s has the parts %q; want %q", name, has, parts)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		entry := regexp.MustCompile(fmt.Sprintf(`%s \[([^\]]*)\]\(%s\)`, name[:4], regexp.QuoteMeta(name)))
		m := entry.FindStringSubmatch(index)
		if m == nil || !strings.EqualFold(m[1], title) {
			t.Errorf("README.md has no entry %s %q", name[:4], title)
		}
	}
}
