package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
)

// payload returns the payload bytes that a forwarder has relayed from one cluster to another in
// finished jobs.
func payload(s forwarder.Status, from, to string) (n uint64) {
	for _, j := range s.Past {
		for _, d := range j.Traffic {
			if d.From == from && d.To == to {
				n += d.PayloadBytes
			}
		}
	}
	return n
}

// over waits until a forwarder's jobs have ended, and checks that they ended well.
func over(b *Bed, jobs int, status func() forwarder.Status) forwarder.Status {
	b.T.Helper()
	b.WaitFor(20*time.Second, "the forwarder to see its jobs end", func() bool { return len(status().Past) == jobs })
	s := status()
	for _, j := range s.Past {
		if !j.OK {
			b.T.Errorf("job %s: %s", j.Job, j.Reason)
		}
	}
	return s
}

// TestDual checks that the random tester prints the same natively and over clusters with direct
// links. If all ranks of a cluster have such links, no payload goes through the forwarder; if one
// of two ranks has them, only the other one's payload does; or both clusters are connected to both
// networks.
func TestDual(t *testing.T) {
	b := New(t)
	const source = "test/programs/c/random.c"
	prog := b.Compile(OpenMPI, source)
	b.Compile(MPICH, source)
	some := filepath.Join(t.TempDir(), "some")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" = 0 ] || unset ZIPPER_DUAL\nexec %s \"$@\"\n", prog)
	if err := os.WriteFile(some, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		clusters []Cluster
		dual     []string // dual is the setting of each cluster.
		// through is whether the forwarder relays payload.
		through bool
	}{
		{"all of a", []Cluster{A(2, OpenMPI), B(1, MPICH)}, []string{"127.0.0.1", ""}, false},
		{"all of b", []Cluster{A(1, MPICH), B(2, OpenMPI)}, []string{"", "a@127.0.0.1:7610"}, false},
		{"one of a", []Cluster{{Name: "a", Ranks: 2, MPI: OpenMPI, Program: some}, B(2, OpenMPI)},
			[]string{"b@127.0.0.1", ""}, true},
		{"not the forwarder's address", []Cluster{A(2, OpenMPI), B(1, MPICH)}, []string{"b@127.0.0.2", ""}, false},
		{"everywhere", []Cluster{A(1, OpenMPI), B(2, OpenMPI)}, []string{"127.0.0.1", "127.0.0.1"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *b
			b.T = t
			f, addr := forwardertest.Serve(t, forwarder.Config{})
			ranks := 0
			for i := range c.clusters {
				ranks += c.clusters[i].Ranks
				if c.dual[i] != "" {
					c.clusters[i].MPI += ",dual=" + c.dual[i]
				}
			}
			path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
			native := b.OK(b.Native(OpenMPI, ranks, prog, "11", "300"))
			r := b.OK(b.Zipped(Job{Clusters: c.clusters, Flags: []string{"--zipper", addr}}, path, "11", "300"))
			b.Same(native, r, nil)
			if strings.Contains(r.Stderr, "no direct link") {
				t.Errorf("%v", r)
			}
			s := over(&b, 1, f.Status)
			if n := payload(s, "a", "b") + payload(s, "b", "a"); c.through != (n > 0) {
				t.Errorf("%d bytes of payload through the forwarder", n)
			}
		})
	}
}

// TestDualRefused checks that impossible settings are refused before anything starts.
func TestDualRefused(t *testing.T) {
	b := New(t)
	for dual, want := range map[string]string{
		"a@127.0.0.1":   "is for the cluster itself",
		"x@127.0.0.1":   `cluster "x", which the job does not have`,
		"0.0.0.0":       "the one that the other cluster connects to",
		"127.0.0.1:abc": "want [CLUSTER@]HOST[:PORT]",
	} {
		b.Fails(b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI + ",dual=" + dual}, B(1, OpenMPI)}},
			"true"), 2, want)
	}
	b.Fails(b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI + ",dual=127.0.0.1"}, B(1, OpenMPI)},
		Flags: []string{"--protocol", "classic"}}, "true"), 2, "classic has no direct links")
}

// TestDualUnknownAddressFallsBack checks that an address of no node is reported, and that the job
// runs through the forwarder.
func TestDualUnknownAddressFallsBack(t *testing.T) {
	b := New(t)
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI + ",dual=b@192.0.2.1"},
		B(1, OpenMPI)}}, bad(b), "finish"))
	if strings.Count(r.Stderr,
		"warning: no rank of cluster a takes direct links from cluster b: no node where they run has the address 192.0.2.1") != 1 {
		t.Errorf("%v", r)
	}
}

// TestDualForeignAddressNeedsPermission has a rank offer direct links at an address that is not the
// forwarder's. Other ranks dial it only if their user allows it; otherwise they report it, and
// messages go through the forwarder.
func TestDualForeignAddressNeedsPermission(t *testing.T) {
	for _, c := range []struct {
		name, allow string
	}{{"not allowed", ""}, {"allowed", "127.0.0.2"}, {"network allowed", "127.0.0.0/30"}} {
		t.Run(c.name, func(t *testing.T) {
			b := New(t)
			f, addr := forwardertest.Serve(t, forwarder.Config{})
			job, layout := JobID(t), "a=1,b=1"
			start := func(cluster, mpi string, flags ...string) *Proc {
				return b.Start(nil, []string{"ZIPPER_SECRET=" + SecretOf("x")}, slices.Concat([]string{b.Zipper, "join", "--job", job,
					"--cluster", cluster, "--layout", layout, "--zipper", addr, "--mpi", mpi}, flags,
					[]string{"--", strings.Replace(bad(b), "{mpi}", mpi, 1), "ring", "1"})...)
			}
			one := start("a", OpenMPI, "--dual", "b@127.0.0.2")
			other := start("b", MPICH, "--direct-allow", c.allow)
			b.OK(one.Wait())
			r := b.OK(other.Wait())
			s := over(b, 1, f.Status)
			if through := payload(s, "a", "b") > 0; through != (c.allow == "") {
				t.Errorf("payload through the forwarder: %v", through)
			}
			if warned := strings.Contains(r.Stderr, "no address of the job's forwarder"); warned != (c.allow == "") {
				t.Errorf("the user was warned: %v\n%v", warned, r)
			}
		})
	}
}

// TestDualLab has clusters that share no network, one with a host's number of ranks on the zipper
// node.
func TestDualLab(t *testing.T) {
	l := newLab(t)
	b := l.b
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	job := func(dual, a string) string {
		return l.jobAt("7475", fmt.Sprintf("mpi: openmpi, dual: %q, %s", dual, a), "login: b1, ranks: 1, mpi: openmpi")
	}
	last := l.relayed("127.0.0.1:7476")
	run := func(file string, during func(more func(what string))) Result {
		_, more, stop := l.stream(prog, file)
		during(more)
		return stop()
	}
	none := func(func(string)) {}

	onZ1 := "login: z1, ranks: 1"
	r := run(job("b@10.81.2.1:7500", onZ1), none)
	if n := last(); n != 0 || strings.Contains(r.Stderr, "warning") {
		t.Errorf("%d bytes of payload through the forwarder\n%v", n, r)
	}
	// The kernel ends the link repeatedly: the stream is not affected, and returns to the direct
	// link.
	r = run(job("b@10.81.2.1:7500", onZ1), func(more func(string)) {
		for range 5 {
			k := b.Run(nil, l.env, "scripts/lab", "on", "z1", "ss", "-K", "sport", "=", ":7500")
			if !strings.Contains(k.Stdout, ":7500") {
				t.Errorf("no direct link was ended (does the kernel have CONFIG_INET_DIAG_DESTROY?):\n%v", k)
			}
			more("the stream to go on after its direct link was ended")
			b.WaitFor(10*time.Second, "the link to be back", func() bool {
				return strings.Contains(b.Run(nil, l.env, "scripts/lab", "on", "z1", "ss", "-Htn", "sport", "=",
					":7500").Stdout, "ESTAB")
			})
		}
	})
	total := uint64(strings.Count(r.Stdout, "round ")) * (8 << 20)
	if n := last(); n > total/2 {
		t.Errorf("%d of about %d bytes went through the forwarder: the direct link is not used again", n, total)
	}
	// An address that cluster b cannot reach: both ends report it, and everything goes through the
	// forwarder.
	r = run(job("b@10.81.1.1", onZ1), none)
	if n := last(); n < 8<<20 || strings.Count(r.Stderr, "no direct link with rank") != 2 {
		t.Errorf("%d bytes of payload through the forwarder, warnings:\n%v", n, r)
	}
	// The ranks of a are on other nodes: everything goes through the forwarder, which is reported
	// once.
	r = run(job("b@10.81.2.1", "login: a1, ranks: 1"), none)
	if n := last(); n < 8<<20 || strings.Count(r.Stderr, "warning") != 1 ||
		!strings.Contains(r.Stderr, "no rank of cluster a takes direct links from cluster b") {
		t.Errorf("%d bytes of payload through the forwarder\n%v", n, r)
	}
}
