package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPartition cuts one of two zipper nodes off from one cluster's network in the middle of a
// transfer, without closing any connection. Both sides notice it within seconds, each by itself,
// and the job goes on over the other zipper node.
func TestPartition(t *testing.T) {
	b := New(t)
	needsLab(t)
	name := fmt.Sprintf("zp%d", os.Getpid())
	env := []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1", "NODES_B=b1", "ZIPPERS=z1 z2"}
	b.OK(b.Run(nil, env, "scripts/lab", "up"))
	t.Cleanup(func() { b.OK(b.Run(nil, env, "scripts/lab", "down")) })
	var forwarders []*Proc
	for _, z := range []string{"z1", "z2"} {
		f := b.Serve(env, "scripts/lab", "on", z, b.Zipper, "forwarder", "--log", "info")
		b.WaitFor(20*time.Second, "the forwarder on "+z,
			func() bool { return strings.Contains(f.Stderr(), "listening") })
		forwarders = append(forwarders, f)
	}
	file, stop := filepath.Join(t.TempDir(), "job.yaml"), filepath.Join(t.TempDir(), "stop")
	text := fmt.Sprintf("rsh: %s/scripts/lab-rsh\nzippers:\n- addresses: {a: 10.81.1.1, b: 10.81.2.1}\n- addresses: {a: 10.81.1.2, b: 10.81.2.2}\nclusters:\n"+
		"- {name: a, login: a1, ranks: 2, mpi: openmpi}\n- {name: b, login: b1, ranks: 2, mpi: openmpi}\n", b.Root)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := b.Start(nil, env, b.Zipper, "run", "--file", file, "--", b.Compile(OpenMPI, "test/programs/c/stream.c"), stop)
	rounds := func() int { return strings.Count(p.Stdout(), "round ") }
	more := func(limit time.Duration, what string) {
		from := rounds()
		b.WaitFor(limit, what, func() bool { return rounds() >= from+3 })
	}
	for _, f := range forwarders {
		b.WaitFor(time.Minute, "all to join", func() bool { return strings.Contains(f.Stderr(), "job runs") })
	}
	more(time.Minute, "the stream to run over both")
	b.OK(b.Run(nil, nil, "ip", "-n", name+"-switchA", "link", "set", "p-z1", "nomaster"))
	more(40*time.Second, "the stream to go on over the other zipper node")
	b.WaitFor(20*time.Second, "the forwarder that is cut off to notice",
		func() bool { return strings.Count(forwarders[0].Stderr(), "link lost") >= 2 })
	b.OK(b.Run(nil, nil, "ip", "-n", name+"-switchA", "link", "set", "p-z1", "master", "br0"))
	b.WaitFor(30*time.Second, "the ranks to be back",
		func() bool { return strings.Count(forwarders[0].Stderr(), "rank is back") >= 2 })
	more(time.Minute, "the stream to go on")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.OK(p.Wait())
	_, worst, _ := strings.Cut(r.Stdout, "longest ")
	t.Log("longest", strings.TrimSpace(worst))
	for _, f := range forwarders {
		if s := f.Stderr(); strings.Contains(s, "link lost") {
			t.Log(s)
		}
	}
}
