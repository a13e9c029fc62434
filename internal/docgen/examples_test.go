package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longestExample is the maximum number of lines of an example's README: ten of text, commands, and
// their output.
const longestExample = 25

// TestExamples checks that every folder of examples has a short README with commands and their
// output, and is in the list of examples. TestExampleFolders in test/e2e checks the output.
func TestExamples(t *testing.T) {
	const folder = "../../examples"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	list, folders := read(t, filepath.Join(folder, "README.md")), 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		folders++
		page := filepath.Join(folder, e.Name(), "README.md")
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(text), "\n"); n > longestExample {
			t.Errorf("%s has %d lines; at most %d", page, n, longestExample)
		}
		if n := strings.Count(string(text), "\n```"); n < 4 {
			t.Errorf("%s: no commands, or no output of them", page)
		}
		if !strings.Contains(list, "| ["+e.Name()+"]("+e.Name()+"/) |") {
			t.Errorf("examples/README.md does not list %s", e.Name())
		}
	}
	if folders < 10 {
		t.Errorf("only %d examples", folders)
	}
}
