package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNATLab has clusters that share no network, with a forwarder whose kernel forwards connections
// between ranks.
func TestNATLab(t *testing.T) {
	l := newLab(t)
	b := l.b
	const source = "test/programs/c/random.c"
	random, stream := b.Compile(OpenMPI, source), b.Compile(OpenMPI, "test/programs/c/stream.c")
	b.Compile(MPICH, source)
	fwd := []string{"scripts/lab", "on", "z1", b.Zipper, "forwarder", "--nat", "--listen", ":7486", "--status",
		"127.0.0.1:7487"}
	b.Fails(b.Run(nil, l.env, fwd...), 1, "--nat: IP forwarding is off: sysctl -w net.ipv4.ip_forward=1")
	b.OK(b.Run(nil, l.env, "scripts/lab", "route", "nat"))
	// The firewall of docs/howto/direct-links.md: no other traffic is forwarded, not even for a
	// node that has z1 as its gateway.
	b.OK(b.Run(nil, l.env, "scripts/lab", "route", "on"))
	b.OK(b.Run(nil, l.env, "scripts/lab", "on", "z1", "nft",
		"add table inet guard; add chain inet guard forward { type filter hook forward priority 0; policy drop; }; add rule inet guard forward ct status dnat accept"))
	b.OK(b.Run(nil, l.env, "scripts/lab", "prove"))
	b.OK(b.Run(nil, l.env, "scripts/lab", "route", "nat"))
	p := b.Serve(l.env, fwd...)
	b.WaitFor(20*time.Second, "the forwarder with --nat",
		func() bool { return strings.Contains(p.Stderr(), "listening") })

	job := func(a, z string) string { return l.jobAt("7486", "login: a1, "+a, "login: b1, "+z) }
	last := l.relayed("127.0.0.1:7487")

	t.Run("random", func(t *testing.T) {
		b := *b
		b.T = t
		native := b.OK(b.Native(OpenMPI, 3, random, "11", "300"))
		spread := `ranks: 2, mpi: openmpi, hosts: /run/` + l.name() + `/hosts.A.openmpi, args: [--bind-to, none, --map-by, node, --mca, plm_rsh_agent, "` + b.Root + `/scripts/lab-rsh", --mca, oob_tcp_if_include, 10.81.1.0/24, --mca, btl_tcp_if_include, 10.81.1.0/24]`
		for _, level := range []string{"checked", "sealed"} {
			r := b.OK(b.Run(nil, l.env, b.Zipper, "run", "--level", level, "--file",
				job(spread, "ranks: 1, mpi: mpich"), "--",
				strings.Replace(random, "/"+OpenMPI+"/", "/{mpi}/", 1), "11", "300"))
			b.Same(native, r, nil)
			if n := last(); n != 0 || strings.Contains(r.Stderr, "no direct link") {
				t.Errorf("level %s: %d bytes of payload through the forwarder\n%v", level, n, r)
			}
		}
	})

	one := "ranks: 1, mpi: openmpi"
	// The forwarded connections are counted at a rank's node: those to the zipper node that do not
	// lead to the forwarder.
	direct := func() int {
		r := b.OK(b.Run(nil, l.env, "scripts/lab", "on", "b1", "ss", "-Htn", "state", "established", "dst", "10.81.2.1",
			"and", "dport", "!=", ":7486"))
		return strings.Count(r.Stdout, "10.81.2.1:")
	}
	// the kernel stops forwarding without a notice: the stream goes on through the forwarder, and
	// then returns
	t.Run("cut", func(t *testing.T) {
		_, more, stop := l.stream(stream, job(one, one))
		if n := direct(); n != 1 {
			t.Errorf("%d direct links", n)
		}
		b.OK(b.Run(nil, l.env, "scripts/lab", "on", "z1", "sysctl", "-qw", "net.ipv4.ip_forward=0"))
		b.WaitFor(30*time.Second, "the direct link to be given up", func() bool { return direct() == 0 })
		more("the stream to go on through the forwarder")
		b.OK(b.Run(nil, l.env, "scripts/lab", "on", "z1", "sysctl", "-qw", "net.ipv4.ip_forward=1"))
		b.WaitFor(30*time.Second, "the direct link to be back", func() bool { return direct() == 1 })
		more("the stream to go on")
		stop()
		if n := last(); n < 8<<20 {
			t.Errorf("%d bytes of payload through the forwarder, though nothing was passed on for a while", n)
		}
	})
	t.Run("killed", func(t *testing.T) { // the forwarder's rules end with it, and so does the job
		r, _, _ := l.stream(stream, job(one, one))
		pids := strings.Fields(b.OK(b.Run(nil, l.env, "scripts/lab", "on", "z1", "sh", "-c",
			"ss -Hltnp sport = :7486 | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u")).Stdout)
		if len(pids) != 1 {
			t.Fatalf("forwarders %q", pids)
		}
		var pid int
		fmt.Sscan(pids[0], &pid)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e := r.Wait(); e.Status == 0 || !strings.Contains(e.Stderr, "forwarder") {
			t.Errorf("%v", e)
		}
		b.WaitFor(10*time.Second, "the direct link to be gone", func() bool { return direct() == 0 })
	})
}
