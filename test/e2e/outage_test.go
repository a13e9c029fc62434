package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// longStream is a stream over long links.
type longStream struct {
	l    *lab
	p    *Proc
	stop string
}

// overTrunks begins a stream between gA and gB, over one trunk or several parallel ones, each of
// which is between forwarders at a port.
func (l *lab) overTrunks(prog string, ports ...string) *longStream {
	var zippers []string
	for _, port := range ports {
		zippers = append(zippers, "{"+strings.ReplaceAll(fmt.Sprintf(siteA, ""), "7475", port)+", dial: [wan]}",
			"{"+strings.ReplaceAll(fmt.Sprintf(siteB, wanB), "7475", port)+"}")
	}
	return l.streams(prog, l.sites(zippers...))
}

// streams begins a stream.
func (l *lab) streams(prog, job string) *longStream {
	s := &longStream{l: l, stop: filepath.Join(l.b.T.TempDir(), "stop")}
	s.p = l.b.Start(nil, l.env, l.b.Zipper, "run", "--file", job, "--", prog, s.stop)
	return s
}

func (s *longStream) rounds() int { return strings.Count(s.p.Stdout(), "round ") }

// waitProgress waits until the stream goes on.
func (s *longStream) waitProgress(what string) {
	s.l.b.T.Helper()
	from := s.rounds()
	defer func() {
		if s.l.b.T.Failed() {
			s.l.b.T.Logf("the job says: %s", s.p.Stderr())
		}
	}()
	s.l.b.WaitFor(time.Minute, what, func() bool { return s.rounds() >= from+2 })
}

// end ends the stream, and checks that every byte is correct.
func (s *longStream) end() Result {
	s.l.b.T.Helper()
	if err := os.WriteFile(s.stop, nil, 0o600); err != nil {
		s.l.b.T.Fatal(err)
	}
	return s.l.b.OK(s.p.Wait())
}

// TestLabBlackHole drops large packets on the long link: doctor and run name the black hole within
// their time-outs, and the remedies that they name work.
func TestLabBlackHole(t *testing.T) {
	l := newSites(t, "--blackhole", "1400")
	b := l.b
	prog := b.Compile(OpenMPI, "test/programs/c/random.c")
	b.Compile(MPICH, "test/programs/c/random.c")
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	job := l.sites("{"+fmt.Sprintf(siteA, "")+", dial: [wan]}", "{"+fmt.Sprintf(siteB, wanB)+"}")
	run := func() Result {
		return b.Run(nil, l.env, b.Zipper, "run", "--timeout", "15s", "--file", job, "--", path, "3", "60")
	}
	l.cannot(job, path, "MTU black hole")
	for _, node := range []string{"gA", "gB"} {
		l.lab("on", node, "sysctl", "-w", "net.ipv4.tcp_mtu_probing=1")
	}
	b.OK(run())
	for _, node := range []string{"gA", "gB"} {
		l.lab("on", node, "sysctl", "-w", "net.ipv4.tcp_mtu_probing=0")
		l.lab("on", node, "ip", "link", "set", "dev", "wan", "mtu", "1400")
	}
	b.OK(run())
}

// TestLabOutage cuts the long link for 20 s under two jobs, one over one trunk and one over two
// parallel ones, which are all cut; then each border node's forwarder is killed and restarted. The
// jobs go on, and every byte is correct.
func TestLabOutage(t *testing.T) {
	l := newSites(t)
	b := l.b
	gA, gB := l.forwarder("gA", "--listen", ":7485", "--status", "none"),
		l.forwarder("gB", "--listen", ":7485", "--status", "none")
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	b.Compile(MPICH, "test/programs/c/stream.c")
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	one, rows := l.overTrunks(path, "7485"), l.overTrunks(path, "7475", "7485")
	all := func(what string) {
		t.Helper()
		one.waitProgress("one trunk: " + what)
		rows.waitProgress("two trunks: " + what)
	}
	all("to run")
	const cut = 20 * time.Second
	begin := time.Now()
	l.lab("line", "cut", cut.String())
	b.WaitFor(cut, "the user to be told that the link is cut", func() bool {
		return strings.Contains(one.p.Stderr(), "it is reopened, and data that may be lost is sent again")
	})
	before := one.rounds()
	time.Sleep(time.Until(begin.Add(cut)))
	if n := one.rounds(); n > before+1 {
		t.Errorf("%d rounds while the long link was cut: is it?", n-before)
	}
	all("to go on after the cut")
	for _, x := range []struct {
		node string
		p    *Proc
	}{{"gB", gB}, {"gA", gA}} {
		x.p.Signal(syscall.SIGKILL)
		x.p.Wait()
		rows.waitProgress("two trunks: to go on without a forwarder of one, on " + x.node)
		l.forwarder(x.node, "--listen", ":7485", "--status", "none")
		all("to go on after the forwarder on " + x.node + " was started again")
	}
	r := one.end()
	if !strings.Contains(r.Stderr, "all ranks are within reach again") {
		t.Errorf("the user is not told that all is well again:\n%v", r)
	}
	rows.end()
}
