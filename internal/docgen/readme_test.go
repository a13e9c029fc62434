package main

import (
	"strings"
	"testing"
)

// questions are what a newcomer finds answered in the README.
var questions = []string{"Can my two clusters use it?", "What do I install where?", "What port do I open?",
	"How fast is it?", "What does it not do?"}

// longestReadme is how many lines it has at most: some two screens, and what is looked up.
const longestReadme = 145

// TestReadme: each question has its answer and the section that says more, before anything else,
// and the README stays short.
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
