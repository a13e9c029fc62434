package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNATLabIPv6 checks that ranks that reach their forwarder over IPv6 exchange data over a direct
// link.
func TestNATLabIPv6(t *testing.T) {
	k := newKernelLab(t)
	for _, at := range []struct{ node, dev, address string }{
		{"z1", "ethA", "fd81:1::1"}, {"z1", "ethB", "fd81:2::1"}, {"a1", "eth0", "fd81:1::11"}, {"b1", "eth0", "fd81:2::11"},
	} {
		k.on(at.node, "ip", "-6", "addr", "add", at.address+"/64", "dev", at.dev, "nodad")
	}
	k.on("z1", "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
	k.at = "[fd81:2::1]"
	file := k.jobOf([]string{`{a: "[fd81:1::1]:7486", b: "[fd81:2::1]:7486"}`},
		"name: a, login: a1, ranks: 1, mpi: openmpi", "name: b, login: b1, ranks: 1, mpi: openmpi")
	_, more, stop := k.stream(k.prog, file)
	k.awaitDirect(more)
	stop()
	past := k.status().Past
	if n := past[len(past)-1].Kernel.PayloadBytes; n < 8<<20 {
		t.Errorf("%d bytes over the direct link are counted", n)
	}
}

// TestNATLabTwoZippers checks that two zippers share the direct links of a job, and that the pairs
// of a forwarder that is killed go on over the other forwarder, and then over its kernel.
func TestNATLabTwoZippers(t *testing.T) {
	k := newKernelLab(t, "z2")
	file := k.jobOf([]string{`{a: "10.81.1.1:7486", b: "10.81.2.1:7486"}`, `{a: "10.81.1.2:7486", b: "10.81.2.2:7486"}`},
		"name: a, login: a1, ranks: 2, mpi: openmpi", "name: b, login: b1, ranks: 2, mpi: openmpi")
	_, more, stop := k.stream(k.prog, file)
	k.b.WaitFor(30*time.Second, "a direct link over each zipper", func() bool {
		return k.links("b1", "10.81.2.1") == 1 && k.links("b1", "10.81.2.2") == 1
	})
	more("the stream to take the direct links")
	k.nothingRelayed(more)
	before := k.relayed()
	k.kill("z2", syscall.SIGKILL)
	k.b.WaitFor(30*time.Second, "the other forwarder to relay", func() bool { return k.relayed() > before })
	more("the stream to go on through the other forwarder")
	k.b.WaitFor(time.Minute, "the other zipper to have all direct links", func() bool { return k.direct() == 2 })
	more("the stream to take the direct links")
	k.nothingRelayed(more)
	k.serve("z2") // the ranks join again
	more("the stream to go on")
	r := stop()
	t.Log(r.Stdout[max(0, strings.LastIndex(r.Stdout, "longest")):])
}

// killRank kills the process of a program on a node.
func (k *kernelLab) killRank(node, prog string) {
	k.b.T.Helper()
	var pids []int
	for _, s := range strings.Fields(k.b.OK(k.b.Run(nil, nil, "ip", "netns", "pids", k.name()+"-"+node)).Stdout) {
		if pid, err := strconv.Atoi(s); err == nil {
			pids = append(pids, pid)
		}
	}
	pid, err := running(pids, prog)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		k.b.T.Fatalf("node %s: %v", node, err)
	}
}

// killedRank is the error of a job of which rank 1, alone in cluster b, was killed: the launcher
// has reported that, or the forwarder has lost the rank first.
var killedRank = regexp.MustCompile(`(?s)MMPI: virtual rank 0: job ended [^\n]*(cluster b ended with exit status 137|` +
	`virtual rank 1 \(rank 0 of cluster b [^\n]* is lost).*zipper: cluster b ended with exit status 137 \(SIGKILL\)`)

// TestNATLabRankKilled checks that a job with a direct link ends as one that is relayed when a rank
// is killed. It logs how long both take.
func TestNATLabRankKilled(t *testing.T) {
	k := newKernelLab(t)
	for _, c := range []struct {
		name, port string
		direct     int
	}{{"relayed", "7475", 0}, {"direct", "7486", 1}} {
		file := k.jobAt(c.port, "login: a1, ranks: 1, mpi: openmpi", "login: b1, ranks: 1, mpi: openmpi")
		p, more, _ := k.stream(k.prog, file)
		k.b.WaitFor(30*time.Second, c.name+" links", func() bool { return k.direct() == c.direct })
		more("the stream to go on")
		begin := time.Now()
		k.killRank("b1", k.prog)
		r := p.Wait()
		t.Logf("%s: the job has ended after %v", c.name, time.Since(begin).Round(10*time.Millisecond))
		if r.Status != 137 || !killedRank.MatchString(r.Stderr) || strings.Contains(r.Stderr, "direct link") {
			t.Errorf("%s: %v", c.name, r)
		}
	}
}

// TestNATLabClusterLost checks that the survivors of a lost cluster go on over the direct link that
// they have among them.
func TestNATLabClusterLost(t *testing.T) {
	k := newKernelLab(t)
	b := k.b
	prog, end := b.Compile(OpenMPI, "test/programs/c/lost_stream.c"), filepath.Join(t.TempDir(), "end")
	file := k.jobOf([]string{`{a: "10.81.1.1:7486", b: "10.81.2.1:7486", c: "10.81.1.1:7486"}`},
		"name: a, login: a1, ranks: 1, mpi: openmpi", "name: c, login: a2, ranks: 1, mpi: openmpi",
		"name: b, login: b1, ranks: 1, mpi: openmpi")
	p := b.Start(nil, k.env, b.Zipper, "run", "--on-loss", "continue", "--file", file, "--", prog, "1", end)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the job says: %s%s", p.Stdout(), p.Stderr())
		}
	})
	rounds := func(ranks int) func(string) {
		return func(what string) {
			line := fmt.Sprintf(" of %d ranks", ranks)
			from := strings.Count(p.Stdout(), line)
			b.WaitFor(time.Minute, what, func() bool { return strings.Count(p.Stdout(), line) >= from+3 })
		}
	}
	await := func(toA, toB int, more func(string)) {
		b.WaitFor(time.Minute, "the direct links", func() bool {
			return k.links("a2", "10.81.1.1") == toA && k.direct() == toB
		})
		more("the stream to take the direct links")
		k.nothingRelayed(more)
	}
	await(2, 2, rounds(3))
	k.killRank("b1", prog)
	await(1, 0, rounds(2))
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.survives(p.Wait(), "ok")
}
