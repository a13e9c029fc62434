package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBenchWrongUse checks that impossible requests are reported before any measurement, in one
// line, with the status for wrong use.
func TestBenchWrongUse(t *testing.T) {
	b := New(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"npb --cluster a=2 --cluster b=1 cg S", "CG runs on a power of two of ranks (1, 2, 4, 8 …), not on 3"},
		{"npb bt S", "there are EP, IS"},
		{"osu --max x latency", `invalid value "x" for flag -max`},
		{"scale --ranks x barrier", "--ranks x: want numbers from 1 on"},
		{"scale --rounds x barrier", "zipper bench scale --help"},
		{"compare --mode native latency", "not defined: -mode"},
		{"scale --mode native latency", "not defined: -mode"},
		{"compare --plot " + file + "/x.svg latency", "not a directory"},
		{"scale --plot " + file + "/x.svg latency", "not a directory"},
		{"compare --plot x.gif latency", ".svg, .png or .pdf"},
		{"report --out " + file, "not a directory"},
	} {
		r := b.Run(nil, nil, append([]string{b.Zipper, "bench"}, strings.Fields(c.args)...)...)
		b.Fails(r, 2, c.says)
		if r.Stdout != "" || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("want one line:\n%v", r)
		}
	}
}

// TestBenchFails checks that the reason of a failure is the message of a rank.
func TestBenchFails(t *testing.T) {
	b := New(t)
	b.Fails(b.Run(nil, nil, b.Zipper, "bench", "osu", "--mode", "native", "--cluster", "a=1", "latency"), 1,
		"latency on native: exit status 1: osu: ")
}

// TestBenchInterrupted checks that a measurement which a signal ends shows the complete rounds,
// reports the interruption and ends by the signal.
func TestBenchInterrupted(t *testing.T) {
	b := New(t)
	for _, c := range [][]string{{"compare", "--max", "4"}, {"scale", "--ranks", "1", "--size", "4"}} {
		picture := filepath.Join(t.TempDir(), "x.svg")
		args := append([]string{b.Zipper, "bench"}, c...)
		p := b.Start(nil, nil, append(args, "--rounds", "50", "--reps", "2", "--plot", picture, "latency")...)
		b.WaitFor(b.Limit, "the third round",
			func() bool { return strings.Contains(p.Stderr(), "round 3 of 50: zipped") })
		p.Signal(syscall.SIGINT)
		r := p.Wait()
		b.Fails(r, 128+int(syscall.SIGINT), "zipper: ended by ", "before")
		if !strings.Contains(r.Stdout, "2 rounds of each in turn") || !strings.Contains(r.Stdout, "too few rounds") ||
			strings.Contains(r.Stderr, "--format") {
			t.Errorf("%s: %v", c[0], r)
		}
		if _, err := os.Stat(picture); err != nil {
			t.Errorf("%s: no picture: %v", c[0], err)
		}
	}
}
