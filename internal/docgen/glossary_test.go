package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inCode    = regexp.MustCompile("`([^`]+)`")
	inComment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
)

// TestGlossary checks that every row of docs/reference/glossary.md ends with a file and names that
// the file contains.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| word |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			t.Errorf("%d cells, want 4: %s", len(cells), line)
			continue
		}
		var file string
		var has []byte
		names := 0
		for _, m := range inCode.FindAllStringSubmatch(cells[3], -1) {
			if strings.Contains(m[1], "/") {
				file = m[1]
				if has, err = os.ReadFile(filepath.Join("../..", file)); err != nil {
					t.Error(err)
				}
				has = inComment.ReplaceAll(has, nil)
				continue
			}
			names++
			if file == "" || !regexp.MustCompile(`\b`+regexp.QuoteMeta(m[1])+`\b`).Match(has) {
				t.Errorf("%s: %s has no %s", strings.TrimSpace(cells[0]), file, m[1])
			}
		}
		if file == "" || names == 0 {
			t.Errorf("no file, or no name in it: %s", line)
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows: is the form still right?", rows)
	}
}
