package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// step is a block of commands, or a file, of a page of instructions.
type step struct{ where, kind, text string }

// steps returns the fenced blocks of a page, each with the node that the paragraph before it names.
func steps(page string) (all []step) {
	block := regexp.MustCompile("(?m)^ *(?:On (\\w+):\\n *)?```(\\w*)\\n([^`]*?)^ *```$")
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		lines := strings.Split(strings.TrimRight(m[3], "\n"), "\n")
		indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
		for i, line := range lines {
			lines[i] = line[min(indent, len(line)):]
		}
		all = append(all, step{m[1], m[2], strings.Join(lines, "\n")})
	}
	return all
}

// TestLabHowTo follows docs/tutorial/3-two-sites.md from top to bottom, between two sites with a
// firewall. Only the parts that differ between the lab and a reader's sites are replaced: the
// remote shell, and the program.
func TestLabHowTo(t *testing.T) {
	l := twoSites(t, "--delay", "20ms", "--open", "gB:7475")
	b := l.b
	page, err := os.ReadFile(filepath.Join(b.Root, "docs/tutorial/3-two-sites.md"))
	if err != nil {
		t.Fatal(err)
	}
	const source = "test/programs/c/random.c"
	prog := b.Compile(OpenMPI, source)
	b.Compile(MPICH, source)
	native := b.OK(b.Native(OpenMPI, 4, prog, "3", "60"))
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	file := filepath.Join(t.TempDir(), "job.yaml")
	on := func(s step, line string) []string {
		line = strings.ReplaceAll(strings.ReplaceAll(line, "job.yaml", file), "/home/me/{mpi}/prog", path+" 3 60")
		words := []string{"bash", "-c", "PATH=" + filepath.Dir(b.Zipper) + ":$PATH; exec " + line}
		if s.where != "" {
			words = append([]string{"scripts/lab", "on", s.where}, words...)
		}
		return words
	}
	did := map[string]int{}
	for _, s := range steps(string(page)) {
		if s.kind == "yaml" {
			text := "rsh: " + b.Root + "/scripts/lab-rsh\n" + s.text + "\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for line := range strings.SplitSeq(s.text, "\n") {
			words := strings.Fields(line)
			verb := words[0]
			if verb == "zipper" {
				verb += " " + words[1]
			}
			did[verb]++
			if verb == "zipper forwarder" {
				f := b.Start(nil, l.env, on(s, line)...)
				b.WaitFor(20*time.Second, "the forwarder on "+s.where, func() bool { return strings.Contains(f.Stderr(), "listening") })
				continue
			}
			r := b.OK(b.Run(nil, l.env, on(s, line)...))
			switch verb {
			case "zipper run":
				b.Same(native, r, nil)
			case "zipper doctor":
				want := "a job of all clusters gathers over them"
				if s.where != "" {
					want = s.where + " reaches it"
				}
				if !strings.Contains(r.Stdout, want) {
					t.Errorf("no %q:\n%v", want, r)
				}
			case "zipper status":
				if !strings.Contains(r.Stdout, "ended well") {
					t.Errorf("no job is shown:\n%v", r)
				}
			}
		}
	}
	for verb, n := range map[string]int{"sysctl": 4, "zipper forwarder": 2, "zipper doctor": 2, "zipper run": 1, "zipper status": 1} {
		if did[verb] != n {
			t.Errorf("%s: %d times, want %d", verb, did[verb], n)
		}
	}
}
