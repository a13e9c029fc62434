package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

const asZipper = "ZIPPER_TEST_AS_ZIPPER"

func TestMain(m *testing.M) {
	if os.Getenv(asZipper) != "" {
		main()
	}
	os.Exit(m.Run())
}

// shell runs a script in which zipper is the command of this package, and returns its output.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	program := optional.Program(t, name)
	dir := t.TempDir()
	self := "#!/bin/sh\n" + asZipper + "=1 exec '" + os.Args[0] + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "zipper"), []byte(self), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	if ran, _ := os.ReadDir(dir); len(ran) != 1 && name != "fish" { // fish has files in its home
		t.Errorf("%s: something ran: %v", name, ran)
	}
	return string(out)
}

// completions are lines to complete and words that the answer must and must not have. None may run
// a program: touch would leave a file.
var completions = []struct{ line, want, not string }{
	{"zipper st", "status", "run"},
	{"zipper bench ", "osu", "status"},
	{"zipper run --cl", "--cluster", "--zipper"},
	{"zipper run --cluster a=1 --ou", "", "--cluster"},
	{"zipper forwarder --", "--listen", "--cluster"},
	{"zipper exec touch --", "--cluster", "--listen"},
	{"zipper run --cluster a=1 --cluster b=1 -- touch --r", "", "--rsh"},
}

func TestCompletion(t *testing.T) {
	for _, s := range []struct {
		shell, ask string // ask prints the completions of the words $@, the last one begun
		options    []string
	}{
		{"bash", `source <(zipper completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _zipper; printf '%s\n' "${COMPREPLY[@]}"`, []string{"--norc", "-c"}},
		{"zsh", `compdef() { : }; _files() { : }; _describe() { print -l -- ${(M)${(P)2%%:*}:#${words[CURRENT]}*} }
source =(zipper completion zsh)
words=("$@") CURRENT=$#; _zipper`, []string{"-f", "-c"}},
		{"fish", `zipper completion fish | source; complete -C "$argv" | cut -f1`, []string{"-N", "-c"}},
	} {
		t.Run(s.shell, func(t *testing.T) {
			for _, c := range completions {
				args := append(append([]string{}, s.options...), s.ask)
				if s.shell == "fish" {
					args = append(args, c.line)
				} else {
					args = append(append(args, s.shell), strings.Split(c.line, " ")...)
				}
				got := "\n" + shell(t, s.shell, args...) + "\n"
				if c.want != "" && !strings.Contains(got, "\n"+c.want+"\n") {
					t.Errorf("%q: no %s in %q", c.line, c.want, got)
				}
				if strings.Contains(got, "\n"+c.not+"\n") {
					t.Errorf("%q: %s in %q", c.line, c.not, got)
				}
			}
		})
	}
}

// TestManPageHasAllCommands checks that groff has no complaint, and that the page has the commands
// and their descriptions.
func TestManPageHasAllCommands(t *testing.T) {
	page := shell(t, "sh", "-c", "zipper man")
	for _, want := range []string{".TH zipper 1", "forwarder", "--cluster"} {
		if !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	optional.Program(t, "groff")
	if out := shell(t, "bash", "-c", "set -o pipefail; zipper man | groff -man -Tutf8 -ww -Wbreak 2>&1 >/dev/null"); out != "" {
		t.Errorf("groff: %s", out)
	}
}
