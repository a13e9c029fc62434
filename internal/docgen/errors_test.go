package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestErrorTexts checks that each message of docs/reference/errors.md, except for its "…", is in
// the source.
func TestErrorTexts(t *testing.T) {
	var source strings.Builder
	for _, file := range tree(t) {
		switch filepath.Ext(file) {
		case ".go", ".c":
			if !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/test/") {
				source.WriteString(read(t, file))
			}
		}
	}
	// Literals that are split over several lines are one text.
	text := regexp.MustCompile(`"\s*\+?\s*"`).ReplaceAllString(source.String(), "")
	messages := 0
	page, _, _ := strings.Cut(read(t, "../../docs/reference/errors.md"), "## Errors that programs get")
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[1:], " | ")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			for part := range strings.SplitSeq(m[1], "…") {
				if part = strings.TrimSpace(part); part == "" || strings.HasPrefix(part, "--") {
					continue
				}
				messages++
				if !strings.Contains(text, part) {
					t.Errorf("no source has the message %q", part)
				}
			}
		}
	}
	if messages < 40 {
		t.Errorf("only %d messages: is the form still right?", messages)
	}
}
