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

// newSites sets up two sites with a long link of 20 ms between their border nodes gA and gB; each
// border node runs a forwarder.
func newSites(t *testing.T, options ...string) *lab {
	b := New(t)
	if os.Geteuid() != 0 {
		t.Skip("the isolated lab needs root")
	}
	name := fmt.Sprintf("zw%d", os.Getpid())
	l := &lab{b: b, env: []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1 a2", "NODES_B=b1 b2"}}
	b.OK(b.Run(nil, l.env, append([]string{"scripts/lab", "up", "--delay", "20ms"}, options...)...))
	t.Cleanup(func() { b.OK(b.Run(nil, l.env, "scripts/lab", "down")) })
	b.OK(b.Run(nil, l.env, "scripts/lab", "prove"))
	l.forwarders()
	return l
}

// forwarders starts one on each border node.
func (l *lab) forwarders(options ...string) {
	for _, node := range []string{"gA", "gB"} {
		l.forwarder(node, options...)
	}
}

// forwarder starts one.
func (l *lab) forwarder(node string, options ...string) *Proc {
	f := l.b.Start(nil, l.env, append([]string{"scripts/lab", "on", node, l.b.Zipper, "forwarder", "--log", "info"},
		options...)...)
	l.b.WaitFor(20*time.Second, "the forwarder on "+node,
		func() bool { return strings.Contains(f.Stderr(), "listening") })
	return f
}

// sites writes a job file: a on Open MPI at one site, b on MPICH at the other, and how each border
// node is on the long link.
func (l *lab) sites(zippers ...string) string {
	file := filepath.Join(l.b.T.TempDir(), "job.yaml")
	text := fmt.Sprintf(`rsh: %s/scripts/lab-rsh
timeout: 20s
networks: [wan]
zippers:
- %s
clusters:
- {name: a, login: a1, ranks: 2, mpi: openmpi}
- {name: b, login: b1, ranks: 2, mpi: mpich}
`, l.b.Root, strings.Join(zippers, "\n- "))
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
	l := newSites(t, "--open", "gB:7475") // a firewall lets only connections to that port pass
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
	// The half whose patience ends first says what it knows: its forwarder cannot reach the other
	// one, or is not reached.
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

// Two trunks side by side over the long link: they have several connections each, as the status of
// both ends shows. One of these goes silent in the middle of transfers: it is found dead and opened
// again, and every byte of the job is right.
func TestLabTrunk(t *testing.T) {
	l := newSites(t)
	l.forwarders("--listen", ":7485", "--status", "127.0.0.1:7486")
	b := l.b
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	b.Compile(MPICH, "test/programs/c/stream.c")
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	var zippers []string
	for _, port := range []string{"7475", "7485"} {
		zippers = append(zippers, "{"+strings.ReplaceAll(fmt.Sprintf(siteA, ""), "7475", port)+", dial: [wan]}",
			"{"+strings.ReplaceAll(fmt.Sprintf(siteB, wanB), "7475", port)+"}")
	}
	stop := filepath.Join(t.TempDir(), "stop")
	p := b.Start(nil, l.env, b.Zipper, "run", "--file", l.sites(zippers...), "--", path, stop)
	more := func(what string) {
		from := strings.Count(p.Stdout(), "round ")
		b.WaitFor(2*time.Minute, what, func() bool { return strings.Count(p.Stdout(), "round ") >= from+2 })
	}
	shows := func(node, at string, want *regexp.Regexp) {
		var last string
		defer func() {
			if t.Failed() {
				t.Logf("the status on %s: %s", node, last)
			}
		}()
		b.WaitFor(time.Minute, want.String()+" on "+node, func() bool {
			last = b.Run(nil, l.env, "scripts/lab", "on", node, b.Zipper, "status", at).Stdout
			return want.MatchString(last)
		})
	}
	more("the stream to run")
	for _, node := range []string{"gA", "gB"} {
		for _, at := range []string{"127.0.0.1:7476", "127.0.0.1:7486"} {
			shows(node, at, regexp.MustCompile(`to the forwarder .*: 5 connections, round trip [45]\d\.?\d* ms`))
		}
	}
	connections := strings.Fields(l.lab("on", "gA", "bash", "-c", `ss -Htn dst 10.81.4.2 dport = :7475 | awk '{print $4}'`))
	if len(connections) != 5 {
		t.Fatalf("connections of gA: %q", connections)
	}
	_, port, _ := strings.Cut(connections[2], ":")
	// Nothing of it gets in any more, so neither end hears of what it sends.
	l.lab("on", "gA", "nft", "add table ip silent; add chain ip silent in { type filter hook input priority 0; }; "+
		"add rule ip silent in tcp dport "+port+" drop")
	shows("gA", "127.0.0.1:7476", regexp.MustCompile(`5 connections, .*1 lost so far`))
	more("the stream to go on")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
}
