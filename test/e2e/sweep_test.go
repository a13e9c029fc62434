package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/measure"
)

// measure builds bin/zipper-measure as scripts/bench does, and returns the path of its MPI program.
func (b *Bed) measure() (program string) {
	b.T.Helper()
	program = filepath.Join(b.T.TempDir(), "measure")
	sources, err := filepath.Glob(filepath.Join(b.Root, "bench/measure/mpi/*.c"))
	if err != nil {
		b.T.Fatal(err)
	}
	b.OK(b.Run(nil, nil, append([]string{"mpicc." + OpenMPI, "-O1", "-pthread", "-o", program}, sources...)...))
	b.OK(b.Run(nil, nil, "go", "build", "-o", "bin/zipper-measure", "./bench/measure/zipper-measure"))
	return program
}

// TestLabSweep runs scripts/bench sweep in its short form: every operation has its line, in every
// mode, and none fails.
func TestLabSweep(t *testing.T) {
	b := New(t)
	needsLab(t)
	b.Limit *= 4 // there are many operations, and the machine may be busy
	program := b.measure()
	listed := slices.DeleteFunc(strings.Fields(b.OK(b.Run(nil, nil, program, "list")).Stdout), func(name string) bool {
		return slices.Contains([]string{"stream", "both", "block"}, name) // of the plan longhaul
	})
	if n := len(measure.Operations()); n != len(listed) {
		t.Errorf("the program has %d operations, the command %d", len(listed), n)
	}
	dir := t.TempDir()
	r := b.OK(b.Run(nil, nil, "bin/zipper-measure", "sweep", "--program", program, "--quick", "--modes", "zipped,routed",
		"--out", dir))
	for _, o := range measure.Operations() {
		line := regexp.MustCompile(`\| ` + o.Name + ` +\| 1\+1 +\| zipped +\| [0-9]+ K?i?B +\| [0-9.e+]+ +\| [0-9.e+]+ +\| [0-9]`)
		if !line.MatchString(r.Stdout) {
			t.Errorf("no line for %s:\n%v", o.Name, r)
		}
	}
	b.OK(b.Run(nil, nil, "bin/zipper-measure", "sweep", "--program", program, "--quick", "--modes", "nat,routed", "--on",
		"latency|beside", "--ranks", "2+1", "--rate", "none", "--again", "1", "--out", dir))
	for name, want := range map[string]string{"sweep.csv": `\nlatency,2\+1,[0-9]+,nat,0,1,[0-9.]+,us,`, "sweep.json": `"again"`} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !regexp.MustCompile(want).Match(text) {
			t.Errorf("no %q in %s: %v", want, name, err)
		}
	}
}
