package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct{ kind, text string }

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// page returns the blocks of a page that the tests run: commands (sh), each followed by the lines
// of their output (text), in which … stands for any text.
func (b *Bed) page(name string) []block {
	b.T.Helper()
	text, err := os.ReadFile(filepath.Join(b.Root, name))
	if err != nil {
		b.T.Fatal(err)
	}
	var blocks []block
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" || m[1] == "text" {
			blocks = append(blocks, block{m[1], m[2]})
		}
	}
	if len(blocks) == 0 {
		b.T.Fatalf("%s has no commands", name)
	}
	return blocks
}

// follow runs the commands of pages from top to bottom in one shell, in a folder with the project's
// files, and compares their output.
func (b *Bed) follow(pages ...string) {
	b.T.Helper()
	dir := b.T.TempDir()
	for _, name := range []string{"bin", "lib", "scripts", "examples", "dist"} {
		if err := os.Symlink(filepath.Join(b.Root, name), filepath.Join(dir, name)); err != nil {
			b.T.Fatal(err)
		}
	}
	var script strings.Builder
	var wanted []string
	for _, name := range pages {
		for _, bl := range b.page(name) {
			if bl.kind == "sh" {
				script.WriteString(bl.text)
				continue
			}
			wanted = append(wanted, strings.Split(strings.TrimSpace(bl.text), "\n")...)
		}
	}
	r := b.OK(b.Run(nil, nil, "sh", "-c", "exec 2>&1; set -eu; cd \"$1\"\n"+script.String(), "sh", dir))
	rest := r.Stdout
	for _, line := range wanted {
		pattern := "(?m)^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$"
		at := regexp.MustCompile(pattern).FindStringIndex(rest)
		if at == nil {
			b.T.Errorf("not printed, or not in this place: %s\n%v", line, r)
			continue
		}
		rest = rest[at[1]:]
	}
}

// TestTutorial checks that the commands of the first page have their output.
func TestTutorial(t *testing.T) {
	New(t).follow("docs/tutorial/1-one-machine.md")
}

// TestLabTutorial checks the same for the second page, which continues the first.
func TestLabTutorial(t *testing.T) {
	b := New(t)
	needsLab(t)
	t.Cleanup(func() { b.Run(nil, []string{"LAB=tutorial"}, "scripts/lab", "down") })
	b.follow("docs/tutorial/1-one-machine.md", "docs/tutorial/2-two-networks.md")
}

// elsewhere are examples that need more than others, with the tests that run them.
var elsewhere = map[string]string{"ring": "TestGoExample", "abi": "TestABIExample", "slurm": "TestPair of test/slurm"}

// TestExampleFolders checks that each example's README is correct.
func TestExampleFolders(t *testing.T) {
	b := New(t)
	pages, err := filepath.Glob(filepath.Join(b.Root, "examples/*/README.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("examples: %v, %v", pages, err)
	}
	for _, page := range pages {
		name := filepath.Base(filepath.Dir(page))
		t.Run(name, func(t *testing.T) {
			if by := elsewhere[name]; by != "" {
				t.Skip(by + " runs it")
			}
			b := *b
			b.T = t
			b.follow("examples/" + name + "/README.md")
		})
	}
}
