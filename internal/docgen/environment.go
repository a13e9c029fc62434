package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// inGo is what is for readers of the source.
var inGo = regexp.MustCompile(` \(Parse\w+\)`)

// withVariables are the files that declare variables of the environment.
var withVariables = []string{"internal/jobenv/jobenv.go", "internal/jobenv/origin.go", "launch/native/exec.go",
	"launch/native/rank.go", "launch/native/audit.go"}

// environment is a table of the constants that name variables of ours, with their comments.
func environment(root string) (string, error) {
	var b strings.Builder
	b.WriteString("| variable | |\n|---|---|\n")
	for _, file := range withVariables {
		groups, err := goNumbers(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		for _, g := range groups {
			for _, n := range g.numbers {
				if name, err := strconv.Unquote(n.value); err == nil && strings.HasPrefix(name, "ZIPPER_") {
					fmt.Fprintf(&b, "| `%s` | %s |\n", name, docpart.Cell(inGo.ReplaceAllString(strings.TrimPrefix(n.text, n.name+" "), "")))
				}
			}
		}
	}
	return b.String(), nil
}
