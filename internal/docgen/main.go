// Command docgen writes the parts of documents that are made from code: the import rules in
// ARCHITECTURE.md, the numbers in docs/reference/tuning.md. Run by go generate (make generate); a
// test checks that they are up to date.
package main

//go:generate go run . ../..

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leidenzipper/zipper/internal/arch"
)

// documents are the files that have a made part, and what makes it from the tree below root.
var documents = map[string]func(root string) (string, error){
	"ARCHITECTURE.md":          func(string) (string, error) { return arch.Overview(), nil },
	"docs/reference/tuning.md": tuning,
}

// The made part stands between these lines.
const (
	begin = "<!-- Made by go generate: what is written here is lost. -->\n"
	end   = "<!-- Here ends what go generate makes. -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docgen ROOT")
		os.Exit(2)
	}
	for name := range documents {
		path := filepath.Join(os.Args[1], name)
		_, want, err := document(os.Args[1], name)
		if err == nil {
			err = os.WriteFile(path, []byte(want), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "docgen:", err)
			os.Exit(1)
		}
	}
}

// document is a document's text as it is, and as it should be.
func document(root, name string) (is, want string, err error) {
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", "", err
	}
	made, err := documents[name](root)
	if err != nil {
		return "", "", err
	}
	is = string(b)
	before, rest, ok := strings.Cut(is, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", "", fmt.Errorf("%s lacks the lines between which the made part stands", name)
	}
	return is, before + begin + "\n" + made + "\n" + end + after, nil
}
