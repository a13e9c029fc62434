package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/sweep"
)

// scripts/bench sweep in its short form: every operation has its line, in every mode, and none
// fails.
func TestLabSweep(t *testing.T) {
	b := New(t)
	if os.Geteuid() != 0 {
		t.Skip("the isolated lab needs root")
	}
	b.Limit *= 4 // a busy machine: there are many operations
	program := b.Compile(OpenMPI, "bench/sweep/mpi/sweep.c")
	listed := strings.Fields(b.OK(b.Run(nil, nil, program, "list")).Stdout)
	if n := len(sweep.Operations()); n != len(listed) {
		t.Errorf("the program has %d operations, the command %d", len(listed), n)
	}
	b.OK(b.Run(nil, nil, "go", "build", "-o", "bin/zipper-sweep", "./bench/sweep/zipper-sweep"))
	dir := t.TempDir()
	r := b.OK(b.Run(nil, nil, "bin/zipper-sweep", "--program", program, "--quick", "--modes", "zipped,routed",
		"--out", dir))
	for _, o := range sweep.Operations() {
		line := regexp.MustCompile(`\| ` + o.Name + ` +\| 1\+1 +\| zipped +\| [0-9]+ K?i?B +\| [0-9.e+]+ +\| [0-9.e+]+ +\| [0-9]`)
		if !line.MatchString(r.Stdout) {
			t.Errorf("no line for %s:\n%v", o.Name, r)
		}
	}
	b.OK(b.Run(nil, nil, "bin/zipper-sweep", "--program", program, "--quick", "--modes", "nat,routed", "--on",
		"latency|beside", "--ranks", "2+1", "--rate", "none", "--again", "1", "--out", dir))
	for name, want := range map[string]string{"sweep.csv": `\nlatency,2\+1,[0-9]+,nat,0,1,`, "sweep.json": `"again"`} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !regexp.MustCompile(want).Match(text) {
			t.Errorf("no %q in %s: %v", want, name, err)
		}
	}
}
