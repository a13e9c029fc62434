package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// section is the numbers of one file, in groups that share an explanation.
type section struct {
	file   string
	groups []group
}

type group struct {
	text    string
	numbers []number
}

// number is one constant, or several that are declared in one line.
type number struct{ name, value, text string }

// tuning is a table of the numbers in all files named limits.go and limits.h: names and values as
// they are written, and the comments as they stand.
func tuning(root string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"build", "bin", "lib"},
				rel) || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		s := section{file: filepath.ToSlash(rel)}
		switch d.Name() {
		case "limits.go":
			s.groups, err = goNumbers(path)
		case "limits.h":
			s.groups, err = cNumbers(path)
		default:
			return nil
		}
		s.write(&b)
		return err
	})
	return b.String(), err
}

func (s *section) write(b *strings.Builder) {
	if len(s.groups) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n", s.file)
	for _, g := range s.groups {
		b.WriteByte('\n')
		if g.text != "" {
			fmt.Fprintf(b, "%s\n\n", g.text)
		}
		b.WriteString("| name | value | |\n|---|---|---|\n")
		for _, n := range g.numbers {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", n.name, cell(n.value), strings.ReplaceAll(n.text, "|", "\\|"))
		}
	}
	b.WriteByte('\n')
}

// cell is a value as code, or nothing.
func cell(value string) string {
	if value == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(value, "|", "\\|") + "`"
}

// oneLine puts the lines of a comment behind one another.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
