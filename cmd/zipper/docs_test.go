package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var (
	// commandLine matches a command line in a text: up to the end of the line or of the code, or to
	// a character that belongs to the shell.
	commandLine = regexp.MustCompile("(?m)(?:^|[^-/A-Za-z.])(?:bin/)?zipper ((?:[a-z]+ )+--[^`#|…\n]*)")
	anyFlag     = regexp.MustCompile(`(?:^|[^-A-Za-z])--([a-z][a-z-]+)`)
)

// TestDocumentedFlags checks that every flag in the documentation exists; in a command line of
// zipper it must be a flag of that command.
func TestDocumentedFlags(t *testing.T) {
	others := []string{ // of scripts, launchers and other programs
		"isolated", "long", "demo", "arch", "suppressions", "bind-to", "allow-run-as-root", "oversubscribe", "mca", "map-by", "hostfile", "rankfile",
		"distribution", "now", "bind",
		"partition", "no-requeue", "ntasks", "het-group", "gres", "nodelist", "start", "test-only", "requeue", "reservation", "qos", "licenses", // Slurm's, and its plug-in's
		"sizes", "powers", "last", "seconds", "others", // scripts/bench's
		"zipper-cluster", "zipper-job-file", "zipper-forwarder"}
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/launch/*", "dist/*.*"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	app, lines := newApp(), 0
	known := append(others, flagsOf(app.Commands)...)
	for _, file := range files {
		if filepath.Base(file) == "commands.md" {
			continue // the flags generate this page
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, m := range anyFlag.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s: no command has a flag --%s", file, m[1])
			}
		}
		for _, m := range commandLine.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			lines++
			words := strings.Fields(m[1])
			var c *cli.Command
			for at := app.Commands; len(words) > 0 && !strings.HasPrefix(words[0], "-"); words = words[1:] {
				i := slices.IndexFunc(at, func(c *cli.Command) bool { return c.HasName(words[0]) })
				if i < 0 {
					break
				}
				c, at = at[i], at[i].Subcommands
			}
			if c == nil {
				t.Errorf("%s: no such command: zipper %s", file, m[1])
				continue
			}
			own := append(flagsOf([]*cli.Command{c}), map[bool][]string{true: {"mpi", "show"}}[c.SkipFlagParsing]...)
			for _, w := range words {
				if w == "--" {
					break
				}
				if f := anyFlag.FindStringSubmatch(w); f != nil && !slices.Contains(own, f[1]) {
					t.Errorf("%s: zipper %s has no flag --%s: %s", file, c.FullName(), f[1], m[0])
				}
			}
		}
	}
	if lines < 30 {
		t.Errorf("only %d command lines found: is the pattern still right?", lines)
	}
}

// flagsOf returns the names of the flags of commands and of their subcommands.
func flagsOf(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		for _, f := range c.Flags {
			names = append(names, f.Names()...)
		}
		names = append(names, flagsOf(c.Subcommands)...)
	}
	return append(names, "help", "version")
}
