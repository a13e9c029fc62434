package doctor

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/agent"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/spec"
)

// listener sends text to every connection.
func listener(t *testing.T, text []byte) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(text)
			c.Close()
		}
	}()
	return ln.Addr().String()
}

func challenge(version uint32) []byte {
	c := wire.Challenge{Version: version, Oldest: version}
	body := c.Append(nil)
	h := wire.Header{Type: wire.TypeChallenge, Length: uint32(len(body))}
	return append(h.Append(nil), body...)
}

func TestDial(t *testing.T) {
	free := listener(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	ln.Close()
	for _, c := range []struct {
		name   string
		target Target
		want   Kind
	}{
		{"the right word", Target{Address: listener(t, []byte("w")), Word: "w"}, Reached},
		{"another word", Target{Address: listener(t, []byte("v")), Word: "w"}, Other},
		{"more than the word", Target{Address: listener(t, []byte("w!")), Word: "w"}, Other},
		{"no word", Target{Address: free, Word: "w"}, Other},
		{"nobody", Target{Address: closed, Word: "w"}, Refused},
		{"a forwarder", Target{Address: listener(t, challenge(wire.Version)), Word: ""}, Reached},
		{"one of another version", Target{Address: listener(t, challenge(wire.Version+1)), Word: ""}, Other},
		{"a web server", Target{Address: listener(t, []byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 10))), Word: ""}, Other},
		{"silence", Target{Address: free, Word: ""}, Other},
	} {
		if a := Dial(context.Background(), c.target); a.Kind != c.want {
			t.Errorf("%s: %+v, want %s", c.name, a, c.want)
		}
	}
}

// TestReachTriesOtherForwarders has a border node try connections to other forwarders.
func TestReachTriesOtherForwarders(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	ln.Close()
	good := listener(t, challenge(wire.Version))
	r := Reach(t.Context(), []string{good, closed})
	if len(r.Findings) != 2 || r.Problems() != 1 || r.Findings[0].Level != OK ||
		!strings.Contains(r.Findings[0].Subject, good) || r.Findings[1].Advice != "start it there: zipper forwarder" {
		t.Errorf("%+v", r.Findings)
	}
}

func TestProbe(t *testing.T) {
	p, err := probe(context.Background(), "a", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if p.Port == 0 || len(p.Word) != 32 || p.Stack == "" || len(p.MPI) != 2 {
		t.Errorf("hello: %+v", p.Hello)
	}
	word := Target{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)), Word: p.Word}
	wrong := word
	wrong.Word = strings.Repeat("0", 32)
	a, err := p.dial([]Target{word, wrong})
	if err != nil || a[0].Kind != Reached || a[1].Kind != Other {
		t.Errorf("answers %+v, %v", a, err)
	}
}

// TestProbeWorksBehindALoginGreeting has login scripts that print something before the probe does.
func TestProbeWorksBehindALoginGreeting(t *testing.T) {
	rsh := filepath.Join(t.TempDir(), "rsh")
	if err := os.WriteFile(rsh, []byte("#!/bin/sh\necho Welcome to $1\necho '{\"host\": \"a1\"}'\ncat >/dev/null\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	p, err := probe(context.Background(), "a", []string{rsh, "head-a"}, "zipper")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if p.Host != "a1" || p.where != "head-a" {
		t.Errorf("%+v", p)
	}
}

// withAnswers is a patient that gives these answers.
func withAnswers(h Hello, answers ...Answer) *patient {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &patient{cluster: h.Host[:1], Hello: h, conn: agent.New(outR, inW)}
	go func() {
		_, _ = inR.Read(make([]byte, 1<<16))
		_ = json.NewEncoder(outW).Encode(answers)
	}()
	return p
}

func TestWrongDualAddressIsAWarning(t *testing.T) {
	a := Hello{Host: "a1", Stack: "1", Addresses: []Address{{CIDR: "10.0.0.5/24", Interface: "eth0"},
		{CIDR: "10.9.0.5/24", Interface: "eth1"}}}
	b := Hello{Host: "b1", Stack: "2", Addresses: []Address{{CIDR: "10.9.0.6/24", Interface: "eth0"}}}
	for _, c := range []struct {
		dual   string
		answer Kind
		stack  string
		level  Level
		says   string
	}{
		{"b@10.9.0.5", Silent, "2", OK, "an address of a1"},
		{"10.9.0.7", Reached, "2", OK, "a zipper node"},
		{"b@10.9.0.7", Refused, "2", Warn, "neither"},
		{"b@10.99.9.9", Silent, "2", Warn, "b1 gets no answer there"},
		{"b@127.0.0.1", Silent, "2", Warn, "loopback"},
		{"b@127.0.0.1", Silent, "1", OK, "an address of a1"},
	} {
		d, err := jobenv.ParseDual(c.dual)
		if err != nil {
			t.Fatal(err)
		}
		job := &spec.Job{Clusters: []spec.Cluster{{Name: "a", Dual: d}, {Name: "b"}}}
		b.Stack = c.stack
		var r Report
		r.dual(context.Background(), job, []*patient{withAnswers(a), withAnswers(b, Answer{Kind: c.answer})})
		if len(r.Findings) != 1 || r.Findings[0].Level != c.level || !strings.Contains(r.Findings[0].Detail, c.says) {
			t.Errorf("%s: %+v", c.dual, r.Findings)
		}
	}
	var r Report
	r.dual(context.Background(), &spec.Job{Clusters: []spec.Cluster{{Name: "a",
		Dual: []jobenv.Dual{{Cluster: "b", Address: "no.such.host.invalid:0"}}}, {Name: "b"}}},
		[]*patient{withAnswers(a), withAnswers(b)})
	if len(r.Findings) != 1 || r.Findings[0].Level != Warn || !strings.Contains(r.Findings[0].Detail, "does not know") {
		t.Errorf("%+v", r.Findings)
	}
}

func TestBetweenFindsFalseReachability(t *testing.T) {
	a := Hello{Host: "a1", Stack: "1", Addresses: []Address{{CIDR: "10.0.0.5/24", Interface: "eth0"}},
		Fabrics: []Fabric{{"mlx5_0/1", "fe80:0000:0000:0000", "InfiniBand", "ACTIVE"}}}
	b := Hello{Host: "b1", Stack: "2", Addresses: []Address{{CIDR: "10.0.0.6/24", Interface: "eth0"}},
		Fabrics: a.Fabrics}
	var r Report
	r.between(withAnswers(a, Answer{Kind: Silent}), withAnswers(b))
	var warnings []string
	for _, f := range r.Findings {
		if f.Level == Warn {
			warnings = append(warnings, f.Detail)
		}
	}
	if all := strings.Join(warnings, "\n"); len(warnings) != 2 || !strings.Contains(all, "takes b1") ||
		!strings.Contains(all, "same subnet prefix") {
		t.Errorf("warnings:\n%s", all)
	}
	b.Addresses[0].CIDR, b.Fabrics = "10.9.0.6/24", nil
	r = Report{}
	r.between(withAnswers(a, Answer{Kind: Silent}), withAnswers(b))
	if len(r.Findings) != 1 || r.Findings[0].Level != OK ||
		!strings.Contains(r.Findings[0].Detail, "separate networks") {
		t.Errorf("separate networks: %+v", r.Findings)
	}
}

func TestFabricsAreReadFromSysfs(t *testing.T) {
	root := t.TempDir()
	port := filepath.Join(root, "mlx5_0", "ports", "1")
	if err := os.MkdirAll(filepath.Join(port, "gids"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"gids/0": "fe80:0000:0000:0001:0002:c903:00a0:1b2c\n",
		"state": "4: ACTIVE\n", "link_layer": "InfiniBand\n"} {
		if err := os.WriteFile(filepath.Join(port, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := fabrics(root)
	if len(got) != 1 || got[0] != (Fabric{"mlx5_0/1", "fe80:0000:0000:0001", "InfiniBand", "ACTIVE"}) {
		t.Errorf("got %+v", got)
	}
}

func TestUnusableAdaptersAreReported(t *testing.T) {
	dev := t.TempDir()
	none := obstacles(dev, 64<<10)
	if len(none) != 2 || !strings.Contains(none[0], "ib_uverbs") || !strings.Contains(none[1], "64 KiB (ulimit -l)") {
		t.Errorf("got %q", none)
	}
	if err := os.WriteFile(filepath.Join(dev, "uverbs0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := obstacles(dev, 1<<40); got != nil {
		t.Errorf("got %q", got)
	}
	var r Report
	r.obstacles("a1", Hello{Obstacles: none})
	if len(r.Findings) != 2 || r.Problems() != 0 || !strings.Contains(r.Findings[0].Advice, "load the kernel module") {
		t.Errorf("findings: %+v", r.Findings)
	}
}

func TestOtherVersionIsReported(t *testing.T) {
	for version, want := range map[int]bool{int(wire.Version): false, int(wire.Version) - 1: true} {
		var r Report
		r.cluster(t.Context(), withAnswers(Hello{Host: "a1", Version: version}), spec.Cluster{Name: "a"})
		if got := slices.ContainsFunc(r.Findings,
			func(f Finding) bool { return f.Level == Fail && strings.Contains(f.Advice, "same version") }); got != want {
			t.Errorf("version %d: %+v", version, r.Findings)
		}
	}
}

func TestUnusableProgramIsReported(t *testing.T) {
	var r Report
	r.program("/nowhere/prog", nil)
	r.program("/nowhere/prog.{mpi}", []Library{{MPI: spec.OpenMPI, Mpirun: "/usr/bin/mpirun"}, {MPI: spec.MPICH}})
	var missing []string
	for _, f := range r.Findings {
		missing = append(missing, f.Subject)
	}
	if r.Problems() != 2 || !slices.Equal(missing, []string{"/nowhere/prog", "/nowhere/prog.openmpi"}) {
		t.Errorf("findings: %+v", r.Findings)
	}
}

// TestFilesAreExaminedForClustersFromHere checks that the files on this host are examined for a
// cluster that is started from here, and for no other cluster.
func TestFilesAreExaminedForClustersFromHere(t *testing.T) {
	for _, launcher := range []string{"mpirun", "ssh"} {
		for _, c := range []struct {
			cluster spec.Cluster
			word    string
		}{
			{spec.Cluster{Name: "a", Program: []string{"/nowhere/prog.{cluster}"}},
				"program /nowhere/prog.a does not exist"},
			{spec.Cluster{Name: "a", Program: []string{"sh"}, Dir: "/nowhere"},
				"dir=/nowhere: there is no such directory"},
		} {
			var r Report
			c.cluster.Launcher = launcher
			r.cluster(t.Context(), withAnswers(Hello{Host: "h", Version: int(wire.Version)}), c.cluster)
			found := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Level == Fail && f.Subject == "cluster a" && strings.HasPrefix(f.Detail, c.word)
			})
			if found != (launcher == "mpirun") {
				t.Errorf("%s, %s: %+v", launcher, c.word, r.Findings)
			}
		}
	}
}
