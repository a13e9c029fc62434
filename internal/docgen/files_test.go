package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inDocument = regexp.MustCompile("`((?:[a-z0-9_]+/)*[a-z0-9_]+\\.(?:go|c|h))`")
	comment    = regexp.MustCompile(`(?s)(?:^|[^:"'\x60\w])(//[^\n]*|/\*.*?\*/)`)
	inText     = regexp.MustCompile(`(?:^|[^\w./"<*-])((?:[a-z0-9_]+/)*[a-z0-9_]+\.(?:go|c|h)|docs/[\w/-]+\.md)\b`)
)

// notOurs lists files of other projects, files that a build makes, and examples of names.
var notOurs = []string{"mpi.h", "natives.h", "wrap.c", "thing_test.c", "cgo/libmmpi/test/unit/thing_test.c",
	"rxe_comp.c", "rxe_req.c", "linux/netfilter/nf_tables.h", "net/ipv4/tcp.c"}

// TestNamedFiles checks that every source file that a document or a comment names is in the tree,
// with or without its folders, and so is every page of docs that a comment names.
func TestNamedFiles(t *testing.T) {
	all := tree(t)
	documents, comments := 0, 0
	for _, file := range all {
		var found [][]string
		switch filepath.Ext(file) {
		case ".md":
			found = inDocument.FindAllStringSubmatch(read(t, file), -1)
			documents += len(found)
		case ".go", ".c", ".h":
			for _, c := range comment.FindAllStringSubmatch(read(t, file), -1) {
				found = append(found, inText.FindAllStringSubmatch(c[1], -1)...)
			}
			comments += len(found)
		}
		for _, m := range found {
			if !slices.Contains(notOurs, m[1]) &&
				!slices.ContainsFunc(all, func(f string) bool { return strings.HasSuffix(f, "/"+m[1]) }) {
				t.Errorf("%s names %s, which is not in the tree", strings.TrimPrefix(file, "../../"), m[1])
			}
		}
	}
	if documents < 100 || comments < 100 {
		t.Errorf("only %d names of files in documents and %d in comments: are the patterns still right?", documents,
			comments)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tree returns the files of the project, without those of builds, of tests' data and of git.
func tree(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if name := d.Name(); strings.HasPrefix(name, ".") && name != ".." || name == "build" || name == "testdata" ||
				path == "../../bin" || path == "../../lib" {
				return fs.SkipDir
			}
			return nil
		}
		files = append(files, filepath.ToSlash(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
