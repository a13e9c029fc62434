package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// newSites sets up two sites with a long link between their border nodes gA and gB, and a firewall
// that lets only connections to port 7475 of gB pass; each border node runs a forwarder.
func newSites(t *testing.T) *lab {
	b := New(t)
	if os.Geteuid() != 0 {
		t.Skip("the isolated lab needs root")
	}
	name := fmt.Sprintf("zw%d", os.Getpid())
	l := &lab{b: b, env: []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1 a2", "NODES_B=b1 b2"}}
	b.OK(b.Run(nil, l.env, "scripts/lab", "up", "--delay", "20ms", "--open", "gB:7475"))
	t.Cleanup(func() { b.OK(b.Run(nil, l.env, "scripts/lab", "down")) })
	b.OK(b.Run(nil, l.env, "scripts/lab", "prove"))
	for _, node := range []string{"gA", "gB"} {
		f := b.Start(nil, l.env, "scripts/lab", "on", node, b.Zipper, "forwarder", "--log", "info")
		b.WaitFor(20*time.Second, "the forwarder on "+node,
			func() bool { return strings.Contains(f.Stderr(), "listening") })
	}
	return l
}

// sites writes a job file: a on Open MPI at one site, b on MPICH at the other, and how each border
// node is on the long link.
func (l *lab) sites(gA, gB string) string {
	file := filepath.Join(l.b.T.TempDir(), "job.yaml")
	text := fmt.Sprintf(`rsh: %s/scripts/lab-rsh
timeout: 20s
networks: [wan]
zippers:
- %s
- %s
clusters:
- {name: a, login: a1, ranks: 2, mpi: openmpi}
- {name: b, login: b1, ranks: 2, mpi: mpich}
`, l.b.Root, gA, gB)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.b.T.Fatal(err)
	}
	return file
}

// The addresses of the border nodes, as their own sites know them, and of gB on the long link.
const (
	siteA = `addresses: {a: "10.81.1.1:7475"%s}`
	siteB = `addresses: {b: "10.81.2.1:7475"%s}`
	wanA  = `, wan: "10.81.4.1:7475"`
	wanB  = `, wan: "10.81.4.2:7475"`
)

// Two sites whose border nodes share a long link only, on which connections to one port of one of
// them pass: jobs run as natively, and doctor and run say what is wrong where they cannot.
func TestLabTwoSites(t *testing.T) {
	l := newSites(t)
	b := l.b
	const source = "test/programs/c/random.c"
	prog := b.Compile(OpenMPI, source)
	b.Compile(MPICH, source)
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	good := l.sites("{"+fmt.Sprintf(siteA, "")+", dial: [wan]}", "{"+fmt.Sprintf(siteB, wanB)+"}")
	t.Run("job", func(t *testing.T) {
		b := *b
		b.T = t
		native := b.OK(b.Native(OpenMPI, 4, prog, "3", "60"))
		r := b.OK(b.Run(nil, l.env, b.Zipper, "run", "--file", good, "--", path, "3", "60"))
		b.Same(native, r, nil)
	})
	t.Run("doctor", func(t *testing.T) {
		b := *b
		b.T = t
		r := b.OK(b.Run(nil, l.env, b.Zipper, "doctor", "--file", good))
		for _, want := range []string{"a job of all clusters gathers over them", "a1 does not reach b1"} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("no %q:\n%v", want, r)
			}
		}
	})
	// The half whose patience ends first says what it knows: its forwarder cannot reach the other one,
	// or is not reached.
	unreached := regexp.MustCompile(`no link (from|to) the forwarder 10\.81\.\d\.\d+:\d+`)
	for _, tc := range []struct{ name, gA, gB, want string }{
		// gA listens, and nothing may come in there.
		{"wrong side dials", "{" + fmt.Sprintf(siteA, wanA) + "}", "{" + fmt.Sprintf(siteB, "") + ", dial: [wan]}",
			"cannot reach the forwarder 10.81.4.1:7475"},
		{"closed port", "{" + fmt.Sprintf(siteA, "") + ", dial: [wan]}",
			"{" + fmt.Sprintf(siteB, strings.ReplaceAll(wanB, "7475", "7499")) + "}",
			"cannot reach the forwarder 10.81.4.2:7499"},
		{"wrong address", "{" + fmt.Sprintf(siteA, "") + ", dial: [wan]}",
			"{" + fmt.Sprintf(siteB, strings.ReplaceAll(wanB, "4.2", "4.77")) + "}",
			"cannot reach the forwarder 10.81.4.77:7475"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := *b
			b.T = t
			job := l.sites(tc.gA, tc.gB)
			r := b.Run(nil, l.env, b.Zipper, "doctor", "--file", job)
			if r.Status != 1 || !strings.Contains(r.Stdout, tc.want) || !strings.Contains(r.Stdout, "check addresses") {
				t.Errorf("doctor: want %q\n%v", tc.want, r)
			}
			begin := time.Now()
			r = b.Run(nil, l.env, b.Zipper, "run", "--timeout", "8s", "--file", job, "--", path, "3", "60")
			if r.Status == 0 || !strings.Contains(r.Stderr, tc.want) && !unreached.MatchString(r.Stderr) {
				t.Errorf("run: want %q\n%v", tc.want, r)
			}
			if took := time.Since(begin); took > 40*time.Second {
				t.Errorf("run: %v with a time-out of 8s", took)
			}
		})
	}
}
