package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// inGo matches the part of a comment that only readers of the source need.
var inGo = regexp.MustCompile(` \(Parse\w+\)`)

// withVariables lists the files that declare environment variables.
var withVariables = []string{"internal/jobenv/jobenv.go", "internal/jobenv/origin.go", "launch/native/exec.go",
	"launch/native/rank.go", "launch/native/audit.go"}

// environment returns a table of the constants that name ZIPPER_ variables, with their comments.
func environment(root string) (string, error) {
	var b strings.Builder
	b.WriteString("| variable | |\n|---|---|\n")
	for _, file := range withVariables {
		all, err := constants(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		for _, c := range all {
			if name, err := strconv.Unquote(c.value); err == nil && strings.HasPrefix(name, "ZIPPER_") {
				text := inGo.ReplaceAllString(strings.TrimPrefix(c.text, c.name+" "), "")
				fmt.Fprintf(&b, "| `%s` | %s |\n", name, docpart.Cell(text))
			}
		}
	}
	return b.String(), nil
}
