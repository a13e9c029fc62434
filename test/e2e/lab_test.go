package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/optional"
)

// lab is a pair of clusters in network namespaces (scripts/lab).
type lab struct {
	b   *Bed
	env []string
	fwd *Proc
}

// needsLab skips the test where scripts/lab cannot make its networks.
func needsLab(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the isolated lab needs root")
	}
	optional.Processor(t, "netlink, by which the isolated lab makes its networks")
}

// newLab sets up the lab, checks that the clusters cannot reach each other, and starts a forwarder
// on the zipper node z1. There may be more zipper nodes.
func newLab(t *testing.T, more ...string) *lab {
	b := New(t)
	needsLab(t)
	name := fmt.Sprintf("ze%d", os.Getpid())
	l := &lab{b: b, env: []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1 a2", "NODES_B=b1 b2",
		strings.Join(append([]string{"ZIPPERS=z1"}, more...), " ")}}
	b.OK(b.Run(nil, l.env, "scripts/lab", "up"))
	t.Cleanup(func() { b.OK(b.Run(nil, l.env, "scripts/lab", "down")) })
	r := b.OK(b.Run(nil, l.env, "scripts/lab", "prove"))
	for _, want := range []string{"ok: a1 does not reach b1", "ok: b1 does not reach a1",
		"ok: a1 reaches zipper node z1", "ok: b1 reaches zipper node z1"} {
		if !strings.Contains(r.Stdout, want) {
			t.Fatalf("not proven: %s\n%v", want, r)
		}
	}
	l.fwd = b.Serve(l.env, "scripts/lab", "on", "z1", b.Zipper, "forwarder", "--log", "info")
	b.WaitFor(20*time.Second, "the forwarder on z1",
		func() bool { return strings.Contains(l.fwd.Stderr(), "listening") })
	return l
}

// job writes a job file for the lab; a and b are the two clusters' own entries.
func (l *lab) job(a, b string) string { return l.jobAt("7475", "login: a1, "+a, "login: b1, "+b) }

// jobAt does the same for a forwarder at another port, with clusters that may begin on other nodes.
func (l *lab) jobAt(port, a, b string) string {
	return l.jobOf([]string{fmt.Sprintf("{a: \"10.81.1.1:%s\", b: \"10.81.2.1:%[1]s\"}", port)}, "name: a, "+a, "name: b, "+b)
}

// jobOf writes a job file for forwarders with the given addresses, and clusters.
func (l *lab) jobOf(zippers []string, clusters ...string) string {
	text := "rsh: " + l.b.Root + "/scripts/lab-rsh\nzippers:\n"
	for _, z := range zippers {
		text += "- addresses: " + z + "\n"
	}
	text += "clusters:\n"
	for _, c := range clusters {
		text += "- {" + c + "}\n"
	}
	file := filepath.Join(l.b.T.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.b.T.Fatal(err)
	}
	return file
}

// relayed returns a function that returns the payload of one job after the other that a forwarder
// has relayed; status is the address of z1's status.
func (l *lab) relayed(status string) func() uint64 {
	jobs, before := 0, uint64(0)
	return func() uint64 {
		jobs++
		s := over(l.b, jobs, func() (s forwarder.Status) {
			r := l.b.OK(l.b.Run(nil, l.env, "scripts/lab", "on", "z1", l.b.Zipper, "status", "--json", status))
			if err := json.Unmarshal([]byte(r.Stdout), &s); err != nil {
				l.b.T.Fatalf("%v: %v", err, r)
			}
			return s
		})
		n := payload(s, "a", "b") + payload(s, "b", "a")
		n, before = n-before, n
		return n
	}
}

// stream starts test/programs/c/stream.c. more waits until it goes on, stop ends it and checks that
// it ends well.
func (l *lab) stream(prog, job string) (p *Proc, more func(what string), stop func() Result) {
	file := filepath.Join(l.b.T.TempDir(), "stop")
	p = l.b.Start(nil, l.env, l.b.Zipper, "run", "--file", job, "--", prog, file)
	rounds := func() int { return strings.Count(p.Stdout(), "round ") }
	l.b.T.Cleanup(func() {
		if l.b.T.Failed() {
			l.b.T.Logf("the job has made %d rounds, and says: %s", rounds(), p.Stderr())
		}
	})
	more = func(what string) {
		from := rounds()
		l.b.WaitFor(time.Minute, what, func() bool { return rounds() >= from+3 })
	}
	stop = func() Result {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			l.b.T.Fatal(err)
		}
		return l.b.OK(p.Wait())
	}
	more("the stream to run")
	return p, more, stop
}

func TestLab(t *testing.T) {
	l := newLab(t)
	b := l.b
	cg := strings.Replace(b.Compile(OpenMPI, "examples/cg/cg.c"), "/"+OpenMPI+"/", "/{mpi}/", 1)
	b.Compile(MPICH, "examples/cg/cg.c")
	mixed := l.job("ranks: 2, mpi: openmpi", "ranks: 2, mpi: mpich")
	twoNodes := `args: [--bind-to, none, --map-by, node, --mca, plm_rsh_agent, "` + b.Root + `/scripts/lab-rsh", --mca, oob_tcp_if_include, %[1]s.0/24, --mca, btl_tcp_if_include, %[1]s.0/24]`
	spread := l.job("ranks: 2, mpi: openmpi, hosts: /run/"+l.name()+"/hosts.A.openmpi, "+fmt.Sprintf(twoNodes,
		"10.81.1"),
		"ranks: 2, mpi: openmpi, hosts: /run/"+l.name()+"/hosts.B.openmpi, "+fmt.Sprintf(twoNodes, "10.81.2"))

	t.Run("doctor", func(t *testing.T) {
		r := b.OK(b.Run(nil, l.env, b.Zipper, "doctor", "--file", mixed))
		for _, want := range []string{"a1 does not reach b1: separate networks",
			"b1 does not reach a1: separate networks", "a -> forwarder 10.81.1.1:7475: a1 reaches it",
			"0 of them problems"} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("doctor does not say %q:\n%v", want, r)
			}
		}
	})
	jobs := 0
	for name, file := range map[string]string{"one node each": mixed, "two nodes each": spread} {
		t.Run(name, func(t *testing.T) {
			jobs++
			r := b.OK(b.Run(nil, l.env, b.Zipper, "run", "--file", file, "--stats", "--", cg, "64"))
			if !strings.Contains(r.Stdout, "on 4 ranks") || !strings.Contains(r.Stdout, ": verified") {
				t.Errorf("no verified result on 4 ranks:\n%v", r)
			}
		})
	}
	// in order in one cluster, in turn in the other: the data that each host combines first
	// (collectives/grid.go)
	t.Run("two ranks on each host", func(t *testing.T) {
		file := l.job("ranks: 4, mpi: openmpi, hosts: /run/"+l.name()+"/hosts.A.openmpi, "+fmt.Sprintf(strings.Replace(twoNodes, "--map-by, node, ", "", 1),
			"10.81.1"),
			"ranks: 4, mpi: openmpi, hosts: /run/"+l.name()+"/hosts.B.openmpi, "+fmt.Sprintf(twoNodes, "10.81.2"))
		for i, program := range []string{"coll_ops", "coll_shapes", "coll_overlap"} {
			prog := b.Compile(OpenMPI, "test/programs/c/"+program+".c")
			native := b.OK(b.Native(OpenMPI, 8, prog))
			for k, tuning := range []string{smallPieces, ""} {
				if k != i%2 && !long() {
					continue
				}
				jobs++
				env := append(slices.Clone(l.env), "ZIPPER_COLLECTIVES="+tuning)
				b.Same(native, b.OK(b.Run(nil, env, b.Zipper, "run", "--file", file, "--", prog)), nil)
			}
		}
	})
	t.Run("status", func(t *testing.T) {
		r := b.OK(b.Run(nil, l.env, "scripts/lab", "on", "z1", b.Zipper, "status"))
		if strings.Count(r.Stdout, "ended well") != jobs || !strings.Contains(r.Stdout, "a -> b") {
			t.Errorf("status of the forwarder:\n%v", r)
		}
	})
	t.Run("planned", func(t *testing.T) { // one native rank on each node, in the plan's order
		rsh := b.Root + "/scripts/lab-rsh"
		file := l.job("ranks: 2, mpi: openmpi, "+fmt.Sprintf(strings.Replace(twoNodes, "--map-by, node, ", "", 1),
			"10.81.1"),
			"ranks: 2, mpi: mpich, args: [-launcher, ssh, -launcher-exec, "+rsh+", -iface, eth0], env: {UCX_TLS: \"tcp,self,posix,sysv\", UCX_NET_DEVICES: eth0}")
		in := New(t)
		planned(in, l.env, pairsPlan(in, [2][]string{{"a1", "a2"}, {"b1", "b2"}}), true, "--file", file)
	})
	t.Run("false reachability", func(t *testing.T) {
		b.OK(b.Run(nil, l.env, "scripts/lab", "route", "on"))
		r := b.OK(b.Run(nil, l.env, b.Zipper, "doctor", "--file", mixed))
		if !strings.Contains(r.Stdout, "directly") {
			t.Errorf("doctor does not see that the clusters now reach each other:\n%v", r)
		}
	})
}

func (l *lab) name() string { return strings.TrimPrefix(l.env[0], "LAB=") }
