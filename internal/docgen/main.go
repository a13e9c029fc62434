// Command docgen writes the parts of docs/reference that are made from code. Run by go generate
// (make generate); a test checks that they are up to date.
package main

//go:generate go run . ../..

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/leidenzipper/zipper/internal/arch"
	"github.com/leidenzipper/zipper/internal/docpart"
)

// documents has a function for each file with a generated part. It makes that part from the tree
// below root.
var documents = map[string]func(root string) (string, error){
	"import-rules.md": func(string) (string, error) { return arch.Overview(), nil },
	"environment.md":  environment,
	"job-file.md":     jobFile,
}

// folder is the folder of all these documents.
const folder = "docs/reference"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docgen ROOT")
		os.Exit(2)
	}
	for name, part := range documents {
		made, err := part(os.Args[1])
		if err == nil {
			err = docpart.Write(filepath.Join(os.Args[1], folder, name), made)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "docgen:", err)
			os.Exit(1)
		}
	}
}
