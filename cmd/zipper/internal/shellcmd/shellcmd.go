// Package shellcmd has the commands that describe the others to shells and man.
package shellcmd

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

//go:embed completion.bash
var bash string

//go:embed completion.zsh
var zsh string

// Completion returns the command that prints a shell's script to complete zipper's commands and
// options.
func Completion() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell's completion of zipper's commands and options",
		ArgsUsage: "bash|zsh|fish",
		Description: `bash: source <(zipper completion bash)
zsh:  zipper completion zsh > "${fpath[1]}/_zipper"
fish: zipper completion fish > ~/.config/fish/completions/zipper.fish`,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return clikit.Usage(errors.New("completion takes the name of a shell: bash, zsh or fish"))
			}
			switch shell := c.Args().First(); shell {
			case "bash":
				return printed(c, bash, nil)
			case "zsh":
				return printed(c, zsh, nil)
			case "fish":
				text, err := c.App.ToFishCompletion()
				return printed(c, text, err)
			default:
				return clikit.Usage(fmt.Errorf("no completion for %q: bash, zsh or fish", shell))
			}
		},
	}
}

// Man returns the command that prints the manual page, for packagers.
func Man() *cli.Command {
	return &cli.Command{
		Name:   "man",
		Usage:  "print the manual page",
		Hidden: true,
		Action: func(c *cli.Context) error {
			text, err := c.App.ToManWithSection(1)
			return printed(c, text, err)
		},
	}
}

func printed(c *cli.Context, text string, err error) error {
	if err == nil {
		_, err = fmt.Fprint(c.App.Writer, text)
	}
	return err
}
