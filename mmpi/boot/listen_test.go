package boot

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

func TestUnopened(t *testing.T) {
	door := func(rank uint32, cluster uint16) wire.Door {
		return wire.Door{Rank: rank, Port: wire.Port{Network: cluster, Address: "10.2.0.1:99"}}
	}
	for _, c := range []struct {
		dual  string
		doors []wire.Door
		want  string
	}{
		{"", nil, ""},
		{"b@10.2.0.1", []wire.Door{door(1, 1)}, ""},
		{"b@10.2.0.1", nil, "from cluster b: no node where they run has the address 10.2.0.1 ("},
		{"b@10.2.0.1", []wire.Door{door(2, 0)}, "from cluster b:"}, // an address for another cluster
		{"b@10.2.0.1+b@10.2.0.2", []wire.Door{door(0, 1)}, ""},     // no ranks on the second node
		{"10.2.0.1+c@10.3.0.1", []wire.Door{door(0, 1)},
			"from cluster c: no node where they run has the address 10.2.0.1 or 10.3.0.1 ("},
		{"10.2.0.1", nil, "from cluster b, c: no node where they run has the address 10.2.0.1 ("},
	} {
		d, err := jobenv.ParseDual(c.dual)
		if err != nil {
			t.Fatal(err)
		}
		job := &jobenv.Job{Cluster: "a", Layout: []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1},
			{Name: "c", Size: 1}}, Dual: d}
		layout := &wire.Layout{Clusters: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1},
			{Name: "c", Size: 1}}, Doors: c.doors}
		if got := unopened(job, layout); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.dual, got, c.want)
		}
	}
}

var identityForTest = handshake.Identity{Job: "j", Secret: "s"}

// TestOpeners checks which links a process opens, by the Layout.
func TestOpeners(t *testing.T) {
	port := func(c int) wire.Port { return wire.Port{Network: uint16(c), Address: "x"} }
	l := wire.Layout{Clusters: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 2}, {Name: "c", Size: 1}},
		Doors: []wire.Door{{Rank: 1, Port: port(1)}, {Rank: 2, Port: port(0)}, {Rank: 4, Port: port(0)}}}
	for me, want := range [][]string{
		{"2 dial", "4 dial"},
		{"2 wait", "3 wait", "4 dial"},
		{"0 wait", "1 dial"},
		{"1 dial"},
		{"0 wait", "1 wait"},
	} {
		l.Rank = uint32(me)
		var got []string
		for rank, open := range openers(&identityForTest, &l, nil) {
			what := "wait"
			if open != nil {
				what = "dial"
			}
			got = append(got, fmt.Sprint(rank, " ", what))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("rank %d: %v, want %v", me, got, want)
		}
	}
}

// TestSilentStrangers checks that two hundred silent connections to a rank's listener do not keep
// ranks out.
func TestSilentStrangers(t *testing.T) {
	id := identityForTest
	id.Instance = 7
	layout := wire.Layout{Clusters: []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}}
	direct := map[int]engine.Opener{1: nil}
	e := runEngine(t, layout, direct)
	l, err := dial.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	(&listener{at: []transport.Listener{l}}).accept(e, &id, direct)
	for range 200 {
		c, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	began := time.Now()
	at := wire.Door{Rank: 0, Instance: id.Instance, Port: wire.Port{Address: l.Addr()}}
	good, err := connect(t.Context(), l.Addr(), handshake.NewInitiator(handshake.Key(id.Job, id.Secret), 1, at,
		nonce()))
	if err != nil {
		t.Fatal(err)
	}
	good.Close()
	if took := time.Since(began); took > meetingTime/2 {
		t.Errorf("a rank waited %v for strangers", took)
	}
}

// TestPending checks that the oldest connection is closed first.
func TestPending(t *testing.T) {
	p := &pending{limit: 2}
	if p.drop() {
		t.Error("there is nothing to drop")
	}
	a, doneA := p.add(t.Context())
	b, doneB := p.add(t.Context())
	c, doneC := p.add(t.Context())
	if a.Err() == nil || b.Err() != nil || c.Err() != nil {
		t.Errorf("%v, %v, %v", a.Err(), b.Err(), c.Err())
	}
	doneA()
	doneB()
	d, doneD := p.add(t.Context())
	if c.Err() != nil || d.Err() != nil || !p.drop() || c.Err() == nil || d.Err() != nil {
		t.Errorf("%v, %v", c.Err(), d.Err())
	}
	doneC()
	doneD()
	if p.drop() {
		t.Error("all are done")
	}
}

// TestListen checks that several ranks of a node listen at the same address, from a port on, that a
// process on another node does not listen, and that bad addresses are errors.
func TestListen(t *testing.T) {
	job := jobenv.Job{Cluster: "a", Layout: []jobenv.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1},
		{Name: "c", Size: 1}}}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	job.Dual = []jobenv.Dual{{Cluster: "c", Address: "192.0.2.1:0"}, {Address: free.Addr().String()}}
	one, err := listen(job)
	if err != nil {
		t.Fatal(err)
	}
	defer one.close()
	two, err := listen(job)
	if err != nil {
		t.Fatal(err)
	}
	defer two.close()
	if len(one.ports) != 2 || one.ports[0].Network != 1 || one.ports[1].Network != 2 || len(one.at) != 1 ||
		one.ports[0].Address == two.ports[0].Address {
		t.Errorf("%+v, %+v", one.ports, two.ports)
	}
	job.Dual = []jobenv.Dual{{Cluster: "b", Address: "192.0.2.1:0"}}
	if d, err := listen(job); err != nil || len(d.ports) != 0 {
		t.Errorf("on another node: %+v, %v", d, err)
	}
	job.Dual = []jobenv.Dual{{Address: "no.such.host.invalid:0"}}
	if d, err := listen(job); err == nil {
		t.Errorf("an unknown name: %+v", d.ports)
	}
}

// quiet is native MPI of a process that never calls it.
type quiet struct{ engine.Native }

func (quiet) SetActivity(engine.Activity) {}
func (quiet) Access(engine.BadMemory)     {}
func (quiet) Fail(int, string)            {}

// TestDirectUnreachable checks an address without a listener: the rank gets the reason why there is
// no direct link, soon, and goes on.
func TestDirectUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	id := identityForTest
	l := wire.Layout{Rank: 1, Clusters: []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}},
		Doors: []wire.Door{{Rank: 0, Port: wire.Port{Network: 1, Address: closed.Addr().String()}}}}
	direct := openers(&id, &l, &reach{addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	e := runEngine(t, l, direct)
	var warning string
	(&listener{}).joinDirect(t.Context(), e, &id, direct, func(s string) { warning = s })
	if want := "no direct link with rank 0: dial tcp " + closed.Addr().String(); len(warning) < len(want) ||
		warning[:len(want)] != want {
		t.Errorf("%q, want %q…", warning, want)
	}
}

// runEngine runs the engine of a layout's rank until the test ends, with a link to a silent
// forwarder.
func runEngine(t *testing.T, l wire.Layout, direct map[int]engine.Opener) *engine.Engine {
	t.Helper()
	link, forwarder := memnet.Pipe(memnet.Options{})
	e, err := engine.New(engine.Config{World: engine.World{Rank: int(l.Rank), Clusters: l.Clusters, TagUB: 1 << 20},
		Native: quiet{}, Quiet: true, Wiring: engine.Wiring{Links: []transport.Link{link}, Direct: direct}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		forwarder.Close() // a lost forwarder ends the engine
		for e.Err() == nil {
			e.Progress(0)
		}
	})
	return e
}
