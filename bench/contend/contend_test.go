package contend

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
)

// TestMain makes the test program an agent as well.
func TestMain(m *testing.M) {
	if os.Getenv("CONTEND_AGENT") != "" {
		if err := transfer.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// loopback returns a site of some hosts a cluster and zippers, all on this host, with real
// forwarders.
func loopback(t *testing.T, size, zippers int) *Site {
	t.Helper()
	s := &Site{Name: "loopback", Clusters: []Cluster{{Name: "a", Cores: 1}, {Name: "b", Cores: 1}}}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		for k := range size {
			c.Hosts = append(c.Hosts, c.Name+strconv.Itoa(k+1))
		}
	}
	var hosts []transfer.Host
	add := func(name, cluster string) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "CONTEND_AGENT=1")
		c.Stderr = os.Stderr
		hosts = append(hosts, transfer.Host{Name: name, Address: "127.0.0.1", Cluster: cluster, Agent: c})
	}
	for _, c := range s.Clusters {
		for _, h := range c.Hosts {
			add(h, c.Name)
		}
	}
	var forwarders []transfer.Forwarder
	for k := range zippers {
		z := "z" + strconv.Itoa(k+1)
		_, addr := forwardertest.Serve(t, forwarder.Config{Loops: 1})
		s.Zippers = append(s.Zippers, Zipper{Name: z})
		forwarders = append(forwarders, transfer.Forwarder{Name: z, Address: map[string]string{"a": addr, "b": addr}})
		add(z, "")
	}
	var err error
	if s.Session, err = transfer.Open(hosts, forwarders); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Session.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestCalibrateOnLoopback(t *testing.T) {
	s := loopback(t, 4, 2)
	steps := 0
	samples, err := Calibrate(t.Context(), s, Options{Bytes: 200_000, Most: 3, Within: 0.02,
		Say: func(string) { steps++ }})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := calibrate.Write(&out, samples)
	if err != nil || len(p.Clusters) != 2 || len(p.Zippers) != 2 || p.Rails.Policy == "" ||
		p.Zippers[0].Memory == nil || !strings.Contains(out.String(), "95 %") {
		t.Errorf("%v\n%s", err, out.String())
	}
	// There are steps for each cluster, three of them graphs; for the ports of each zipper and
	// through it; and over both.
	if want := 2*(3+3) + 2*(4+8) + 1; steps != want {
		t.Errorf("%d steps", steps)
	}
	r := Random(s, Any, 2, 7, 100_000)
	seconds, err := s.Session.Run(r.Messages)
	if err != nil || len(seconds) != 16 {
		t.Errorf("%d times, %v", len(seconds), err)
	}
	if _, err := s.Session.Run([]transfer.Message{{From: "a1", To: "nowhere", Bytes: 1}}); err == nil {
		t.Error("a message to nowhere was accepted")
	}
	if _, err := s.Session.Run([]transfer.Message{{From: "a1", To: "a2", Via: 0, Bytes: 1}}); err == nil {
		t.Error("a message within a cluster took the forwarder")
	}
}

// TestOneProgramAfterAnotherIsPlayed plays a program, and another one after it on the same engines,
// and checks that messages that a host cannot send or know are refused.
func TestOneProgramAfterAnotherIsPlayed(t *testing.T) {
	s := loopback(t, 2, 1)
	var steps []transfer.Step
	for i := range 40 {
		x := transfer.Step{Message: transfer.Message{From: "a1", To: "b2", Bytes: 1 << 20}}
		if i%2 == 1 {
			x.From, x.To = x.To, x.From
		}
		if i > 0 {
			x.After = []int{i - 1}
		}
		steps = append(steps, x)
	}
	small := transfer.Step{Message: transfer.Message{From: "a2", To: "b1", Bytes: 10}}
	for range 100 {
		steps = append(steps, small)
	}
	took, err := s.Session.Play(steps)
	if err != nil || took <= 0 {
		t.Fatalf("%v s, %v", took, err)
	}
	before := s.Session.CPU()
	if again, err := s.Session.Play(steps[40:]); err != nil || again <= 0 {
		t.Errorf("another program: %v s, %v", again, err)
	}
	if after := s.Session.CPU(); before <= 0 || after <= before {
		t.Errorf("agents used %v s of processor time, then %v s", before, after)
	}
	for what, bad := range map[string]transfer.Step{
		"within a cluster":                {Message: transfer.Message{From: "a1", To: "a2", Bytes: 1}},
		"without a forwarder":             {Message: transfer.Message{From: "a1", To: "b1", Bytes: 1, Via: transfer.Direct}},
		"after a step without its sender": {Message: transfer.Message{From: "a2", To: "b2", Bytes: 1}, After: []int{0}},
	} {
		if _, err := s.Session.Play([]transfer.Step{steps[0], bad}); err == nil {
			t.Errorf("a message %s was accepted", what)
		}
	}
}

// TestReplayRefusesRanksWithoutAPlace checks that a recorded job is refused if its ranks cannot be
// placed on the lab's hosts, or if it has no messages.
func TestReplayRefusesRanksWithoutAPlace(t *testing.T) {
	l := &Lab{Site: *loopback(t, 2, 1)}
	p, err := platform.Read(strings.NewReader("clusters:\n  - {name: a, hosts: 2, nic: 1gbit}\n  - {name: b, hosts: 2, nic: 1gbit}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"three ranks where there are two hosts": "zipper-trace 1\njob j\ncluster a 3\ncluster b 1\nmessage 0 1 0 3 5\nend 4\n",
		"one cluster":                           "zipper-trace 1\njob j\ncluster a 2\nmessage 0 1 0 1 5\nend 3\n",
		"no messages":                           "zipper-trace 1\njob j\ncluster a 1\ncluster b 1\ntotal 0 1 1 5\nend 4\n",
	} {
		file := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Replay(t.Context(), p, file, 1); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestRandomPatterns(t *testing.T) {
	s := &Site{Clusters: []Cluster{{"a", []string{"a1", "a2", "a3"}, 1}, {"b", []string{"b1", "b2", "b3"}, 1}},
		Zippers: make([]Zipper, 2)}
	cluster := func(h string) byte { return h[0] }
	for _, kind := range []Kind{Any, Cross, Local} {
		for d := 1; d <= 2; d++ {
			p := Random(s, kind, d, 3, 10)
			if len(p.Messages) != 6*d {
				t.Errorf("%s: %d messages", p.Name(), len(p.Messages))
			}
			seen := map[[2]string]bool{}
			for _, m := range p.Messages {
				crosses := cluster(m.From) != cluster(m.To)
				if m.From == m.To || seen[[2]string{m.From, m.To}] || crosses != (m.Via != transfer.Direct) ||
					kind == Local && crosses || kind == Cross && !crosses {
					t.Errorf("%s: %+v", p.Name(), m)
				}
				seen[[2]string{m.From, m.To}] = true
			}
		}
	}
}
