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

// goNumbers reads the constants, variables and fields of structs that a Go file declares outside of
// functions.
func goNumbers(path string) ([]group, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []group
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok == token.IMPORT {
			continue
		}
		g := group{text: oneLine(decl.Doc.Text())}
		for _, spec := range decl.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				n := number{name: names(s.Names), text: comments(s.Doc, s.Comment)}
				var values []string
				for _, v := range s.Values {
					values = append(values, source(set, v))
				}
				n.value = strings.Join(values, ", ")
				if !decl.Lparen.IsValid() { // the declaration's comment is the number's
					n.text = strings.TrimSpace(g.text + " " + n.text)
					g.text = ""
				}
				g.numbers = append(g.numbers, n)
			case *ast.TypeSpec:
				fields, ok := s.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range fields.Fields.List {
					g.numbers = append(g.numbers, number{name: s.Name.Name + "." + names(field.Names),
						text: comments(field.Doc, field.Comment)})
				}
			}
		}
		switch last := len(all) - 1; {
		case len(g.numbers) == 0:
		case g.text == "" && last >= 0 && !decl.Lparen.IsValid() && single(all[last]):
			all[last].numbers = append(all[last].numbers, g.numbers...) // several of one constant each are one table
		default:
			all = append(all, g)
		}
	}
	return all, nil
}

// single tells whether a group is of constants that were declared one by one.
func single(g group) bool { return g.text == "" }

func names(list []*ast.Ident) string {
	var all []string
	for _, n := range list {
		all = append(all, n.Name)
	}
	return strings.Join(all, ", ")
}

// comments are that above a declaration and that behind it.
func comments(above, behind *ast.CommentGroup) string {
	return oneLine(above.Text() + " " + behind.Text())
}

// source is an expression as gofmt writes it, in one line.
func source(set *token.FileSet, e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, e); err != nil {
		return err.Error()
	}
	return oneLine(b.String())
}
