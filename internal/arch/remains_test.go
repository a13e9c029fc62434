package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoMergeRemains looks for conflict markers of a merge. No compiler finds them in a document or
// a script.
func TestNoMergeRemains(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "bin", "lib", "build":
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for i, line := range bytes.Split(text, []byte("\n")) {
			for _, mark := range []string{strings.Repeat("<", 7) + " ", strings.Repeat(">", 7) + " "} {
				if bytes.HasPrefix(line, []byte(mark)) {
					t.Errorf("%s:%d: %s", path, i+1, line)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("only %d files", files)
	}
}
