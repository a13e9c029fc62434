package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"strings"
)

// constant is one declared constant or variable: its name, its value as written, and its comment.
type constant struct{ name, value, text string }

// constants returns the constants and variables that the Go file at path declares outside
// functions.
func constants(path string) ([]constant, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []constant
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			s, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			c := constant{name: names(s.Names), text: comments(s.Doc, s.Comment)}
			if !decl.Lparen.IsValid() { // without parentheses the parser gives the comment to the declaration
				c.text = oneLine(decl.Doc.Text() + " " + c.text)
			}
			var values []string
			for _, v := range s.Values {
				values = append(values, source(set, v))
			}
			c.value = strings.Join(values, ", ")
			all = append(all, c)
		}
	}
	return all, nil
}

func names(list []*ast.Ident) string {
	var all []string
	for _, n := range list {
		all = append(all, n.Name)
	}
	return strings.Join(all, ", ")
}

// comments joins the comment above a declaration and the comment behind it.
func comments(above, behind *ast.CommentGroup) string {
	return oneLine(above.Text() + " " + behind.Text())
}

// source returns an expression as gofmt writes it, on one line.
func source(set *token.FileSet, e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, e); err != nil {
		return err.Error()
	}
	return oneLine(b.String())
}

// oneLine joins the lines of a text by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
