package main

import (
	"strings"
	"testing"
)

// questions lists the questions that the README answers for a newcomer.
var questions = []string{"Can my two clusters use it?", "What do I install where?", "What port do I open?",
	"How fast is it?", "What does it not do?"}

// longestReadme is the maximum number of lines of the README: some two screens, and tables.
const longestReadme = 145

// TestReadme checks that each question has its answer and a link to a section, before anything
// else, and that the README stays short.
func TestReadme(t *testing.T) {
	text := read(t, "../../README.md")
	if n := strings.Count(text, "\n"); n > longestReadme {
		t.Errorf("%d lines; at most %d", n, longestReadme)
	}
	head, _, _ := strings.Cut(text, "\n## ")
	for _, q := range questions {
		_, row, ok := strings.Cut(head, "\n| "+q+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if cells := strings.Split(row, " | "); !ok || len(cells) != 2 || !strings.Contains(cells[1], "](#") {
			t.Errorf("no answer, or no link to more: %s %s", q, row)
		}
	}
}
