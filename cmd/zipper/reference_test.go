package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/internal/docpart"
)

//go:generate env ZIPPER_GENERATE=1 go test -count=1 -run ^TestReference$ . ./internal/jobcmd

// TestReference checks that docs/reference/commands.md has all commands with their options.
func TestReference(t *testing.T) {
	var b strings.Builder
	write(t, &b, newApp().Commands, "zipper")
	docpart.Test(t, "../../docs/reference/commands.md", b.String())
}

// value matches the name that a usage gives to an option's value.
var value = regexp.MustCompile("`([^`]*)`")

func write(t *testing.T, b *strings.Builder, commands []*cli.Command, parent string) {
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		name := parent + " " + c.Name
		fmt.Fprintf(b, "## %s\n%s.\n\n```\n%s", name, sentence(c.Usage), name)
		if len(c.VisibleFlags()) > 0 {
			b.WriteString(" [options]")
		}
		if c.ArgsUsage != "" {
			b.WriteString(" " + c.ArgsUsage)
		}
		if len(c.Subcommands) > 0 {
			b.WriteString(" COMMAND")
		}
		if c.Description != "" {
			b.WriteString("\n\n" + strings.TrimSpace(c.Description))
		}
		b.WriteString("\n```\n\n")
		options(t, b, c.VisibleFlags())
		write(t, b, c.Subcommands, name)
	}
}

// options writes a table of options.
func options(t *testing.T, b *strings.Builder, flags []cli.Flag) {
	if len(flags) == 0 {
		return
	}
	b.WriteString("| option | default | variable | |\n|---|---|---|---|\n")
	for _, flag := range flags {
		f, ok := flag.(cli.DocGenerationFlag)
		if !ok {
			t.Fatalf("%v says nothing of itself", flag.Names())
		}
		var names []string
		for _, n := range flag.Names() {
			if len(n) > 1 {
				n = "-" + n
			}
			names = append(names, "`-"+n+"`")
		}
		usage, what := f.GetUsage(), ""
		if m := value.FindStringSubmatch(usage); m != nil {
			usage, what = strings.Replace(usage, m[0], m[1], 1), m[1]
			if strings.ContainsAny(what, "=[|") { // too long for this column, and in the text as well
				what = ""
			}
		}
		if what != "" {
			names[0] = strings.TrimSuffix(names[0], "`") + " " + what + "`"
		}
		byDefault := strings.Trim(f.GetDefaultText(), `"`)
		if _, is := flag.(*cli.BoolFlag); is && byDefault == "false" {
			byDefault = ""
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", strings.Join(names, ", "), docpart.Cell(byDefault),
			strings.Join(f.GetEnvVars(), ", "), docpart.Cell(usage))
	}
	b.WriteByte('\n')
}

// sentence capitalizes the first letter.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
