package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// formOf translates Go types of the job file's structures to the kinds of values in the document.
var formOf = map[string]string{
	"string": "text", "command": "words", "[]string": "list", "map[string]string": "map", "duration": "time",
	"count": "number", "MPI": "library", "[]fileZipper": "list, below", "[]fileCluster": "list, below",
	"Stage": "`in`, `out`: lists",
}

// jobFile returns a table for each structure of the job file: its keys, the kinds of their values,
// and the comments beside them.
func jobFile(root string) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "launch/spec/file.go"), nil,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	parts := map[string]*ast.StructType{}
	ast.Inspect(f, func(n ast.Node) bool {
		if t, ok := n.(*ast.TypeSpec); ok {
			if s, ok := t.Type.(*ast.StructType); ok {
				parts[t.Name.Name] = s
			}
		}
		return true
	})
	var b strings.Builder
	for _, p := range []struct{ title, name string }{
		{"The job", "file"}, {"Each of `clusters`", "fileCluster"}, {"Each of `zippers`", "fileZipper"},
	} {
		s := parts[p.name]
		if s == nil {
			return "", fmt.Errorf("launch/spec/file.go has no type %s", p.name)
		}
		fmt.Fprintf(&b, "## %s\n| key | what | |\n|---|---|---|\n", p.title)
		for _, field := range s.Fields.List {
			key := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("yaml")
			form, ok := formOf[typeName(field.Type)]
			text := comments(field.Doc, field.Comment)
			if key == "" || !ok || text == "" {
				return "", fmt.Errorf("launch/spec/file.go: %s.%s has no key, no comment, or a type that docgen does not know",
					p.name, names(field.Names))
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, form, docpart.Cell(text))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// typeName returns a type as it is written.
func typeName(e ast.Expr) string { return source(token.NewFileSet(), e) }
