package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

// twoSites sets up the lab with a long link between two border nodes, or other nodes in options,
// and checks that the link is as requested.
func twoSites(t *testing.T, options ...string) *lab {
	b := New(t)
	needsLab(t)
	name := fmt.Sprintf("zl%d", os.Getpid())
	l := &lab{b: b, env: []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1 a2", "NODES_B=b1 b2",
		fmt.Sprint("LAB_OWNER=", os.Getpid())}}
	t.Cleanup(func() { b.OK(b.Run(nil, l.env, "scripts/lab", "down")) })
	b.OK(b.Run(nil, l.env, append([]string{"scripts/lab", "up"}, options...)...))
	l.lab("prove")
	return l
}

// lab runs a command of scripts/lab and returns its output.
func (l *lab) lab(words ...string) string {
	l.b.T.Helper()
	return l.b.OK(l.b.Run(nil, l.env, append([]string{"scripts/lab"}, words...)...)).Stdout
}

// line returns the statistics of the long link, or of the one with that number, from its first end
// and from the other.
func (l *lab) line(number ...string) (ways []delayline.Stats) {
	l.b.T.Helper()
	out := l.lab(slices.Concat([]string{"line"}, number, []string{"stats"})...)
	if err := json.Unmarshal([]byte(out), &ways); err != nil || len(ways) != 2 {
		l.b.T.Fatalf("%v: %s", err, out)
	}
	return ways
}

// TestLabLong checks that delay and loss are as requested, and that a job whose clusters are a long
// link apart has its usual output.
func TestLabLong(t *testing.T) {
	l := twoSites(t, "--delay", "20ms", "--rate", "1gbit", "--queue", "2MB")
	b := l.b

	t.Run("delay", func(t *testing.T) {
		// A refused connection takes a round trip, in us.
		const connect = `for i in {1..5}; do t=${EPOCHREALTIME/./}; (exec 3<>/dev/tcp/10.81.4.2/9) 2>/dev/null; echo $((${EPOCHREALTIME/./} - t)); done`
		least := math.Inf(1)
		for _, word := range strings.Fields(l.lab("on", "gA", "bash", "-c", connect)) {
			us, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, us)
		}
		var late time.Duration
		for _, way := range l.line() {
			late = max(late, way.LateMax)
		}
		// The upper bound allows for busy machines.
		if most := 40e3 + 30e3 + 2*float64(late.Microseconds()); least < 40e3 || least > most {
			t.Errorf("a round trip took %.0f us, want 40000 to %.0f", least, most)
		}
	})
	t.Run("loss", func(t *testing.T) {
		l.lab("line", "set", "loss=10%")
		l.lab("line", "reset")
		l.b.Run(nil, l.env, "scripts/lab", "on", "gA", "bash", "-c",
			"exec 3>/dev/udp/10.81.4.2/9; for i in {1..2000}; do echo x >&3; done")
		way := l.line()[0]
		n := float64(way.Packets + way.Lost)
		if sigma := math.Sqrt(n * 0.1 * 0.9); n < 1000 || math.Abs(float64(way.Lost)-0.1*n) > 5*sigma {
			t.Errorf("lost %d of %.0f, want 10 %% +- %.0f of 1000 to 2000", way.Lost, n, 5*sigma)
		}
		l.lab("line", "set", "loss=0")
	})
	// on gA, so that the long link is between the forwarder and the ranks of b
	t.Run("one forwarder", func(t *testing.T) {
		l.lab("line", "set", "delay=5ms")
		l.lab("route", "far")
		fwd := b.Serve(l.env, "scripts/lab", "on", "gA", b.Zipper, "forwarder", "--log", "info")
		b.WaitFor(20*time.Second, "the forwarder on gA",
			func() bool { return strings.Contains(fwd.Stderr(), "listening") })
		cg := strings.Replace(b.Compile(OpenMPI, "examples/cg/cg.c"), "/"+OpenMPI+"/", "/{mpi}/", 1)
		b.Compile(MPICH, "examples/cg/cg.c")
		file := filepath.Join(t.TempDir(), "job.yaml")
		text := fmt.Sprintf("rsh: %s/scripts/lab-rsh\nzippers:\n- addresses: {a: \"10.81.1.1:7475\", b: \"10.81.4.1:7475\"}\nclusters:\n"+
			"- {name: a, login: a1, ranks: 2, mpi: openmpi}\n- {name: b, login: b1, ranks: 2, mpi: mpich}\n", b.Root)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.lab("line", "reset")
		r := b.OK(b.Run(nil, l.env, b.Zipper, "run", "--file", file, "--", cg, "64"))
		if !strings.Contains(r.Stdout, "on 4 ranks") || !strings.Contains(r.Stdout, ": verified") {
			t.Errorf("no verified result on 4 ranks:\n%v", r)
		}
		for _, way := range l.line() {
			if way.Packets < 100 || way.Full+way.Refused > 0 {
				t.Errorf("over the long link: %v", &way)
			}
		}
	})
	t.Run("nothing is left", func(t *testing.T) {
		l.lab("down")
		r := b.OK(b.Run(nil, nil, "ip", "netns", "list"))
		if strings.Contains(r.Stdout, l.name()) {
			t.Errorf("namespaces are left: %v", r)
		}
		if r := b.Run(nil, l.env, "scripts/lab", "line", "stats"); r.Status == 0 {
			t.Errorf("the long link still answers: %v", r)
		}
	})
}

// TestLabLongFirewall checks that the firewall lets one port pass in one direction, and that
// impossible options are refused before anything is set up.
func TestLabLongFirewall(t *testing.T) {
	l := twoSites(t, "--delay", "1ms", "--open", "gB:7475")
	for _, c := range [][]string{
		{"want a time", "--delay", "20"}, {"want 0 to 1", "--loss", "200%"}, {"want gA:PORT", "--open", "a1:22"},
		{"give a rate", "--rate", "off", "--queue", "1MB"},
	} {
		env := append([]string{"LAB=zlx", "LAB_RUN=/run/zlx"}, l.env[2:]...)
		r := l.b.Run(nil, env, append([]string{"scripts/lab", "up"}, c[1:]...)...)
		if r.Status == 0 || !strings.Contains(r.Stderr, c[0]) {
			t.Errorf("%v: want %q: %v", c[1:], c[0], r)
		}
	}
	if r := l.b.OK(l.b.Run(nil, nil, "ip", "netns", "list")); strings.Contains(r.Stdout, "zlx") {
		t.Errorf("namespaces are left: %v", r)
	}
}

// TestLabLongBench runs scripts/bench longhaul in its short form: every kind of target has a row,
// with the long link's lateness or a reason.
func TestLabLongBench(t *testing.T) {
	b := New(t)
	needsLab(t)
	program := b.measure()
	dir := t.TempDir()
	r := b.OK(b.Run(nil, nil, "bin/zipper-measure", "longhaul", "--program", program, "--quick", "--delay", "2ms", "--only",
		"^1 MiB stream, one pair|^8 B|^bcast of 8 B", "--out", dir))
	for _, want := range []string{
		`1 MiB stream, one pair[ |]+TCP, 4 streams[ |]+[0-9]`, `1 MiB stream, one pair[ |]+zipped[ |]+[0-9]`, `1 MiB stream, one pair[ |]+routed[ |]+[0-9]`,
		`1 MiB stream, one pair[ |]+trunk[ |]+[0-9]`, `8 B arrives[ |]+trunk[ |]+[0-9]`, `8 B arrives[ |]+zipped[ |]+[0-9]`, `bcast of 8 B, 4\+4 ranks[ |]+routed[ |]+[0-9]`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stdout) {
			t.Errorf("no line like %q:\n%v", want, r)
		}
	}
	for _, suffix := range []string{"csv", "json"} {
		if text, err := os.ReadFile(filepath.Join(dir, "longhaul-2ms."+suffix)); err != nil ||
			!strings.Contains(string(text), "late") {
			t.Errorf("%v: %s", err, text)
		}
	}
}
