package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// newSites sets up two sites with a long link of 20 ms between their border nodes gA and gB; each
// border node runs a forwarder.
func newSites(t *testing.T, options ...string) *lab {
	l := twoSites(t, append([]string{"--delay", "20ms"}, options...)...)
	l.forwarders()
	return l
}

// forwarders starts a forwarder on each border node.
func (l *lab) forwarders(options ...string) {
	for _, node := range []string{"gA", "gB"} {
		l.forwarder(node, options...)
	}
}

// forwarder starts a forwarder on a node.
func (l *lab) forwarder(node string, options ...string) *Proc {
	f := l.b.Serve(l.env, append([]string{"scripts/lab", "on", node, l.b.Zipper, "forwarder", "--log", "info"},
		options...)...)
	l.b.WaitFor(20*time.Second, "the forwarder on "+node,
		func() bool { return strings.Contains(f.Stderr(), "listening") })
	return f
}

// sites writes a job file: a on Open MPI at one site, b on MPICH at the other, and the place of
// each border node on the long link.
func (l *lab) sites(zippers ...string) string {
	return l.arranged("wan", []string{"{name: a, login: a1, ranks: 2, mpi: openmpi}",
		"{name: b, login: b1, ranks: 2, mpi: mpich}"}, zippers...)
}

// arranged writes a job file with these networks, clusters and zippers.
func (l *lab) arranged(networks string, clusters []string, zippers ...string) string {
	file := filepath.Join(l.b.T.TempDir(), "job.yaml")
	text := fmt.Sprintf("rsh: %s/scripts/lab-rsh\ntimeout: 20s\nnetworks: [%s]\nzippers:\n- %s\nclusters:\n- %s\n", l.b.Root,
		networks, strings.Join(zippers, "\n- "), strings.Join(clusters, "\n- "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.b.T.Fatal(err)
	}
	return file
}

// in returns the lab for a subtest.
func (l *lab) in(t *testing.T) *lab {
	b := *l.b
	b.T = t
	return &lab{b: &b, env: l.env}
}

// cannot checks that doctor and run report, each within its time-out, why the clusters of a job
// cannot be joined, and what to do.
func (l *lab) cannot(job, prog string, why ...string) {
	b := l.b
	b.T.Helper()
	says := func(text string, any []string) bool {
		return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(text, s) })
	}
	doctor := b.Start(nil, l.env, b.Zipper, "doctor", "--file", job)
	run := b.Start(nil, l.env, b.Zipper, "run", "--timeout", "8s", "--file", job, "--", prog, "3", "60")
	r := doctor.Wait()
	if output := r.Stdout + r.Stderr; r.Status == 0 || !strings.Contains(output, why[0]) || !says(output, advice) ||
		r.Took > 40*time.Second {
		b.T.Errorf("doctor: want %q, and what to do\n%v", why[0], r)
	}
	if r = run.Wait(); r.Status == 0 || !says(r.Stderr, why) || !says(r.Stderr, advice) || r.Took > 40*time.Second {
		b.T.Errorf("run: want one of %q, and what to do\n%v", why, r)
	}
}

// advice is the advice for which cannot looks.
var advice = []string{"admit that port?", "check addresses, routes and firewalls", "give it an address there",
	"net.ipv4.tcp_mtu_probing=1"}

// The addresses of the border nodes, as their own sites know them, and of gB on the long link.
const (
	siteA = `addresses: {a: "10.81.1.1:7475"%s}`
	siteB = `addresses: {b: "10.81.2.1:7475"%s}`
	wanA  = `, wan: "10.81.4.1:7475"`
	wanB  = `, wan: "10.81.4.2:7475"`
)

// TestLabTwoSites has two sites whose border nodes share only a long link, on which only
// connections to one port of one of them pass. Jobs run as natively, and doctor and run report the
// reason where they cannot.
func TestLabTwoSites(t *testing.T) {
	l := newSites(t, "--open", "gB:7475") // a firewall lets only connections to that port pass
	b := l.b
	const source = "test/programs/c/random.c"
	prog := b.Compile(OpenMPI, source)
	b.Compile(MPICH, source)
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	good := l.sites("{"+fmt.Sprintf(siteA, "")+", dial: [wan]}", "{"+fmt.Sprintf(siteB, wanB)+"}")
	t.Run("job", func(t *testing.T) {
		b := l.in(t).b
		native := b.OK(b.Native(OpenMPI, 4, prog, "3", "60"))
		b.Same(native, b.OK(b.Run(nil, l.env, b.Zipper, "run", "--file", good, "--", path, "3", "60")), nil)
	})
	t.Run("doctor", func(t *testing.T) {
		b := l.in(t).b
		r := b.OK(b.Run(nil, l.env, b.Zipper, "doctor", "--file", good))
		for _, want := range []string{"a job of all clusters gathers over them", "a1 does not reach b1",
			"opens the links to zipper 2, at 10.81.4.2:7475",
			"let connections from the former's host to 10.81.4.2:7475 pass; none the other way"} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("no %q:\n%v", want, r)
			}
		}
	})
	t.Run("doctor on the border nodes", func(t *testing.T) {
		l := l.in(t)
		l.lab("on", "gA", "sysctl", "-w", "net.ipv4.tcp_wmem=4096 16384 4194304", "net.ipv4.tcp_slow_start_after_idle=1")
		to := func(node, at string) Result {
			return l.b.Run(nil, l.env, "scripts/lab", "on", node, l.b.Zipper, "doctor", "--to", at)
		}
		r := l.b.OK(to("gA", "10.81.4.2"))
		for _, want := range []string{"gA reaches it", "sysctl -w net.ipv4.tcp_wmem='4096 16384 ",
			"sysctl -w net.ipv4.tcp_slow_start_after_idle=0"} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("no %q:\n%v", want, r)
			}
		}
		if r := to("gB", "10.81.4.1"); r.Status != 1 || !strings.Contains(r.Stdout, "firewalls let that port in") {
			t.Errorf("from gB:\n%v", r)
		}
	})
	// The half whose time-out expires first reports the state of its forwarder, which cannot reach
	// the other one, or is not reached.
	t.Run("errors", func(t *testing.T) {
		for _, tc := range []struct{ name, gA, gB, want string }{
			// gA listens, but no connection may come in there.
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
				t.Parallel()
				l := l.in(t)
				l.cannot(l.sites(tc.gA, tc.gB), path, tc.want, "no link from the forwarder 10.81.")
			})
		}
	})
}

// TestLabTrunk has two parallel trunks over the long link, of several connections each, as the
// status of both ends shows. One connection goes silent in the middle of transfers: it is found
// dead and opened again, and every byte of the job is correct.
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
	// No packet to the port passes any more, so neither end receives what the other sends.
	l.lab("on", "gA", "nft", "add table ip silent; add chain ip silent in { type filter hook input priority 0; }; "+
		"add rule ip silent in tcp dport "+port+" drop")
	shows("gA", "127.0.0.1:7476", regexp.MustCompile(`5 connections, .*1 lost so far`))
	more("the stream to go on")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
}
