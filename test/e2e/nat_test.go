package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// kernelLab is a lab of two clusters that share no network, with forwarders whose kernels forward
// connections between ranks that exchange much.
type kernelLab struct {
	*lab
	job  string // a job of two ranks over the forwarder of z1
	prog string // test/programs/c/stream.c
	at   string // z1's address on the network of cluster b
}

// newKernelLab makes the lab, with firewalls that let nothing else pass
// (docs/howto/direct-links.md). There may be more zipper nodes than z1.
func newKernelLab(t *testing.T, more ...string) *kernelLab {
	l := newLab(t, more...)
	b := l.b
	k := &kernelLab{lab: l, prog: b.Compile(OpenMPI, "test/programs/c/stream.c"), at: "10.81.2.1"}
	b.Fails(b.Run(nil, l.env, append(k.command("z1"), "--nat")...), 1,
		"--nat: IP forwarding is off: sysctl -w net.ipv4.ip_forward=1")
	if !strings.Contains(l.fwd.Stderr(), "IP forwarding is off") {
		t.Errorf("the forwarder that relays does not say why: %s", l.fwd.Stderr())
	}
	zippers := append([]string{"z1"}, more...)
	for _, z := range zippers {
		k.on(z, "nft", "add table inet guard; add chain inet guard forward { type filter hook forward priority 0; policy drop; }; add rule inet guard forward ct status dnat accept")
	}
	b.OK(b.Run(nil, l.env, "scripts/lab", "route", "on")) // even a node that has z1 as its gateway reaches nothing
	b.OK(b.Run(nil, l.env, "scripts/lab", "prove"))
	b.OK(b.Run(nil, l.env, "scripts/lab", "route", "nat"))
	for _, z := range zippers {
		k.on(z, "sysctl", "-qw", "net.ipv4.ip_forward=1")
		k.serve(z)
	}
	k.job = l.jobAt("7486", "login: a1, ranks: 1, mpi: openmpi", "login: b1, ranks: 1, mpi: openmpi")
	return k
}

// command returns the command that runs a forwarder on a zipper node.
func (k *kernelLab) command(node string) []string {
	return []string{"scripts/lab", "on", node, k.b.Zipper, "forwarder", "--log", "info", "--listen", ":7486", "--status",
		"127.0.0.1:7487"}
}

// serve starts the forwarder of a zipper node.
func (k *kernelLab) serve(node string) {
	k.b.T.Helper()
	p := k.b.Serve(k.env, k.command(node)...)
	k.b.WaitFor(20*time.Second, "the forwarder", func() bool { return strings.Contains(p.Stderr(), "listening") })
	if strings.Contains(p.Stderr(), "all messages are relayed") || node == "z1" && !k.status().NAT {
		k.b.T.Fatalf("the kernel is not used by default: %s", p.Stderr())
	}
}

// on runs a command on a node, and returns its output.
func (k *kernelLab) on(node string, command ...string) string {
	k.b.T.Helper()
	return k.b.OK(k.b.Run(nil, k.env, append([]string{"scripts/lab", "on", node}, command...)...)).Stdout
}

// status returns the forwarder's status.
func (k *kernelLab) status() (s forwarder.Status) {
	k.b.T.Helper()
	if err := json.Unmarshal([]byte(k.on("z1", k.b.Zipper, "status", "--json", "127.0.0.1:7487")), &s); err != nil {
		k.b.T.Fatal(err)
	}
	return s
}

// direct returns the number of direct links of node b1 over z1.
func (k *kernelLab) direct() int {
	k.b.T.Helper()
	return k.links("b1", k.at)
}

// links returns the number of connections of a node to an address of a zipper node that do not lead
// to its forwarders.
func (k *kernelLab) links(node, at string) int {
	k.b.T.Helper()
	return strings.Count(k.on(node, "ss", "-Htn", "state", "established", "dst", at, "and", "dport", "!=", ":7475", "and", "dport", "!=",
		":7486"), at+":")
}

// relayed returns the payload that the forwarder has relayed for the running job.
func (k *kernelLab) relayed() (n uint64) {
	k.b.T.Helper()
	for _, j := range k.status().Jobs {
		for _, d := range j.Traffic {
			n += d.PayloadBytes
		}
	}
	return n
}

// kill sends a signal to the forwarder of a zipper node, and waits for its end.
func (k *kernelLab) kill(node string, signal syscall.Signal) {
	k.b.T.Helper()
	listeners := func() []string {
		return strings.Fields(k.on(node, "sh", "-c", "ss -Hltnp sport = :7486 | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u"))
	}
	pids := listeners()
	if len(pids) != 1 {
		k.b.T.Fatalf("forwarders %q", pids)
	}
	var pid int
	fmt.Sscan(pids[0], &pid)
	if err := syscall.Kill(pid, signal); err != nil {
		k.b.T.Fatal(err)
	}
	k.b.WaitFor(20*time.Second, "the end of the forwarder", func() bool { return syscall.Kill(pid, 0) != nil })
}

// awaitDirect waits until the pair of the stream has a direct link, and checks that the forwarder
// then relays nothing.
func (k *kernelLab) awaitDirect(more func(what string)) {
	k.b.T.Helper()
	k.b.WaitFor(30*time.Second, "a direct link", func() bool { return k.direct() == 1 })
	more("the stream to take the direct link")
	k.nothingRelayed(more)
}

// nothingRelayed checks that z1's forwarder relays nothing while the stream goes on.
func (k *kernelLab) nothingRelayed(more func(what string)) {
	k.b.T.Helper()
	before := k.relayed()
	more("the stream to go on")
	if now := k.relayed(); now != before {
		k.b.T.Errorf("%d bytes through the forwarder beside the direct link", now-before)
	}
}

// TestNATLab has faults of the zipper node while two ranks exchange data over a connection that its
// kernel forwards. Nothing is lost, and the connection comes back.
func TestNATLab(t *testing.T) {
	k := newKernelLab(t)
	b := k.b
	const source = "test/programs/c/random.c"
	random := b.Compile(OpenMPI, source)
	b.Compile(MPICH, source)

	t.Run("random", func(t *testing.T) {
		b := *b
		b.T = t
		native := b.OK(b.Native(OpenMPI, 3, random, "11", "1000"))
		spread := `login: a1, ranks: 2, mpi: openmpi, hosts: /run/` + k.name() + `/hosts.A.openmpi, args: [--bind-to, none, --map-by, node, --mca, plm_rsh_agent, "` + b.Root + `/scripts/lab-rsh", --mca, oob_tcp_if_include, 10.81.1.0/24, --mca, btl_tcp_if_include, 10.81.1.0/24]`
		for _, level := range []string{"checked", "sealed"} {
			r := b.OK(b.Run(nil, k.env, b.Zipper, "run", "--level", level, "--file",
				k.jobAt("7486", spread, "login: b1, ranks: 1, mpi: mpich"), "--",
				strings.Replace(random, "/"+OpenMPI+"/", "/{mpi}/", 1), "11", "1000"))
			b.Same(native, r, nil)
			if strings.Contains(r.Stderr, "direct link") {
				t.Errorf("level %s: %v", level, r)
			}
		}
		past := k.status().Past
		if len(past) != 2 {
			t.Fatalf("jobs %+v", past)
		}
		for _, j := range past {
			if !j.OK || j.Kernel.Messages == 0 {
				t.Errorf("job %s: ok %v, %d messages over direct links", j.Job, j.OK, j.Kernel.Messages)
			}
		}
	})
	for _, fault := range []struct {
		name        string
		begin, mend []string // commands on the zipper node
		survives    bool     // whether the connection survives
	}{
		// The kernel stops forwarding without a notice.
		{"silent", []string{"sysctl", "-qw", "net.ipv4.ip_forward=0"}, []string{"sysctl", "-qw", "net.ipv4.ip_forward=1"}, false},
		// Each end of a connection is told that the other one has closed it.
		{"killed", []string{"nft", "insert rule inet guard forward reject with tcp reset"},
			[]string{"nft", "flush chain inet guard forward; add rule inet guard forward ct status dnat accept"}, false},
		// The forwarder's table belongs to its process, and stays.
		{"flushed", []string{"nft", "flush ruleset"}, nil, true},
	} {
		t.Run(fault.name, func(t *testing.T) {
			_, more, stop := k.stream(k.prog, k.job)
			k.awaitDirect(more)
			before := k.relayed()
			k.on("z1", fault.begin...)
			if !fault.survives {
				b.WaitFor(30*time.Second, "the forwarder to relay", func() bool { return k.relayed() > before })
			}
			more("the stream to go on after the fault")
			if fault.mend != nil {
				k.on("z1", fault.mend...)
			}
			b.WaitFor(time.Minute, "the direct link to be back", func() bool { return k.direct() == 1 })
			k.awaitDirect(more)
			r := stop()
			past := k.status().Past
			if n := past[len(past)-1].Kernel.PayloadBytes; n < 8<<20 {
				t.Errorf("%d bytes past the forwarder are counted", n)
			}
			t.Log(r.Stdout[max(0, strings.LastIndex(r.Stdout, "longest")):])
		})
	}
	t.Run("forwarder restarted", func(t *testing.T) {
		_, more, stop := k.stream(k.prog, k.job)
		k.awaitDirect(more)
		k.kill("z1", syscall.SIGTERM) // after SIGKILL the ranks would give the forwarder 2 s
		k.serve("z1")
		more("the stream to go on after the restart")
		b.WaitFor(time.Minute, "the direct link to be back", func() bool { return k.direct() == 1 })
		k.awaitDirect(more)
		r := stop()
		t.Log(r.Stdout[max(0, strings.LastIndex(r.Stdout, "longest")):])
	})
	t.Run("forwarder gone", func(t *testing.T) { // its rules end with it, and so does the job
		r, more, _ := k.stream(k.prog, k.job)
		k.awaitDirect(more)
		k.kill("z1", syscall.SIGKILL)
		if e := r.Wait(); e.Status == 0 || !strings.Contains(e.Stderr, "forwarder") {
			t.Errorf("%v", e)
		}
		b.WaitFor(10*time.Second, "the direct link to be gone", func() bool { return k.direct() == 0 })
	})
}
