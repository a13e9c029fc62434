package forwarder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/wire"
)

// passed is a NAT that forwards nothing, and records its calls.
type passed struct {
	mu     sync.Mutex
	ways   []nat.Way
	closed int
	err    error
}

func (p *passed) OpenWays(ways []nat.Way) (at []netip.AddrPort, _ io.Closer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ways = append(p.ways, ways...)
	for i, w := range ways {
		at = append(at, netip.AddrPortFrom(w.At, uint16(7001+i)))
	}
	return at, p, p.err
}

func (p *passed) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
	return nil
}

func (p *passed) asked() []nat.Way {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ways)
}

func (p *passed) closings() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// joinInside joins all ranks of a job. inside returns the address at which each says that it
// accepts connections; change, if not nil, changes its identity.
func (b *bench) joinInside(inside func(v int) string, change func(*handshake.Identity),
	layout ...wire.Cluster) []*rank {
	b.t.Helper()
	var ids []handshake.Identity
	for _, c := range layout {
		for i := range int(c.Size) {
			id := identity("j", c.Name, i, layout...)
			if change != nil {
				change(&id)
			}
			ids = append(ids, id)
		}
	}
	ranks := make([]*rank, len(ids))
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for v, id := range ids {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			d := dial.Dialer{Transport: b.dialer, Inside: func(here netip.Addr) string {
				if here != netip.MustParseAddr("127.0.0.1") {
					return "asked with " + here.String()
				}
				return inside(v)
			}}
			l, layout, err := d.Dial(ctx, b.ln.Addr(), id)
			if errs[v] = err; err == nil {
				b.t.Cleanup(func() { l.Close() })
				ranks[v] = &rank{b.t, l, layout}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
	return ranks
}

// TestNAT checks that ways lead to ranks that other ranks dial, on the hosts from which their links
// come, and to no other destination.
func TestNAT(t *testing.T) {
	table := &passed{}
	b := start(t, tcpNetwork(), func(c *Config) { c.NAT = table })
	inside := []string{"127.0.0.1:5000", "192.0.2.7:5000", "127.0.0.1:22", "", "nonsense", "127.0.0.1:5001"}
	r := b.joinInside(func(v int) string { return inside[v] }, nil, wire.Cluster{Name: "a", Size: 2}, wire.Cluster{Name: "b", Size: 3}, wire.Cluster{Name: "c", Size: 1})
	own := netip.MustParseAddr("127.0.0.1")
	to := netip.MustParseAddrPort(inside[0])
	if want := []nat.Way{{At: own, To: to}, {At: own, To: to}}; !slices.Equal(table.asked(), want) {
		t.Errorf("ways %v, want %v", table.asked(), want)
	}
	for _, r := range r {
		var doors []string
		for _, d := range r.Doors {
			doors = append(doors, fmt.Sprintf("%d for %d at %s", d.Rank, d.Network, d.Address))
		}
		if want := []string{"0 for 1 at 127.0.0.1:7001", "0 for 2 at 127.0.0.1:7002"}; !slices.Equal(doors, want) {
			t.Errorf("rank %d is told of doors %q, want %q", r.Rank, doors, want)
		}
	}
	if s := b.f.Status(); s.Jobs[0].Doors != 2 {
		t.Errorf("%d doors in the status, want 2", s.Jobs[0].Doors)
	}
	pingPong(t, r[0], r[2]) // the forwarder relays as ever
	if table.closings() != 0 {
		t.Error("closed while the job runs")
	}
	for _, r := range r {
		r.bye()
	}
	b.ended()
	if n := table.closings(); n != 1 {
		t.Errorf("closed %d times when the job has ended", n)
	}
	r = b.joinInside(func(v int) string { return inside[v] }, nil, twoClusters...)
	r[1].link.Close()
	for _, v := range []int{0, 2, 3} {
		r[v].expect(wire.TypeAbort)
		r[v].link.Close()
	}
	b.ended()
	if n := table.closings(); n != 2 {
		t.Errorf("closed %d times when a second job was aborted", n)
	}
}

// TestNATIsSkippedWhereUnusable checks that no ways are opened for a rank with its own door for a
// cluster, for ranks with several forwarders or too many peers, or if the kernel refuses.
func TestNATIsSkippedWhereUnusable(t *testing.T) {
	here := func(int) string { return "127.0.0.1:5000" }
	for _, c := range []struct {
		name   string
		err    error
		change func(*handshake.Identity)
		layout []wire.Cluster
		asked  int      // the number of ways that are requested
		doors  []string // the doors of the first rank
	}{
		{"own door", nil, func(id *handshake.Identity) {
			if id.Cluster == "a" {
				id.Doors = []wire.Port{{Network: 1, Address: "127.0.0.1:6000"}}
			}
		}, twoClusters, 0, []string{"127.0.0.1:6000"}},
		{"others' own doors", nil, func(id *handshake.Identity) {
			if id.Cluster == "b" {
				id.Doors = []wire.Port{{Network: 0, Address: "127.0.0.1:6000"}}
			}
		}, twoClusters, 0, nil},
		{"some others' own doors", nil, func(id *handshake.Identity) {
			if id.Cluster == "b" && id.Rank == 1 {
				id.Doors = []wire.Port{{Network: 0, Address: "127.0.0.1:6000"}}
			}
		}, twoClusters, 2, []string{"127.0.0.1:700"}},
		{"several forwarders", nil, func(id *handshake.Identity) { id.Rails = 2 }, twoClusters, 0, nil},
		{"too many", nil, nil, []wire.Cluster{{Name: "a", Size: 65}, {Name: "b", Size: 64}}, 0, nil},
		{"too many peers", nil, nil, []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 257}}, 0, nil},
		{"most", nil, nil, []wire.Cluster{{Name: "a", Size: 64}, {Name: "b", Size: 64}}, 64, []string{"127.0.0.1:700"}},
		{"error", errors.New("no"), nil, twoClusters, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := &passed{err: c.err}
			b := start(t, tcpNetwork(), func(cfg *Config) { cfg.NAT = table })
			r := b.joinInside(here, c.change, c.layout...)
			if len(table.asked()) != c.asked {
				t.Errorf("%d ways, want %d", len(table.asked()), c.asked)
			}
			var doors []string
			for _, d := range r[0].Doors {
				if d.Rank == 0 {
					doors = append(doors, d.Address)
				}
			}
			if !slices.EqualFunc(doors, c.doors, strings.HasPrefix) {
				t.Errorf("doors %q, want %q", doors, c.doors)
			}
			pingPong(t, r[0], r[len(r)-1])
		})
	}
}

// TestUnsupportedNATIsDeclined checks that ranks without support answer that they accept no
// connections.
func TestUnsupportedNATIsDeclined(t *testing.T) {
	table := &passed{}
	b := start(t, tcpNetwork(), func(c *Config) { c.NAT = table })
	r := b.join("j", twoClusters...)
	if len(table.asked()) > 0 || len(r[0].Doors) > 0 {
		t.Errorf("ways %v, doors %v", table.asked(), r[0].Doors)
	}
}

// slowTable is a kernel that answers on request.
type slowTable struct {
	passed
	begun  chan bool // receives a value for each call
	answer chan bool // lets a call return
	over   chan bool // receives a value when a Close has returned
}

func newSlowTable() *slowTable {
	return &slowTable{begun: make(chan bool, 16), answer: make(chan bool), over: make(chan bool, 16)}
}

func (s *slowTable) OpenWays(ways []nat.Way) (at []netip.AddrPort, _ io.Closer, err error) {
	s.begun <- true
	<-s.answer
	at, _, err = s.passed.OpenWays(ways)
	return at, s, err
}

func (s *slowTable) Close() error {
	s.begun <- true
	<-s.answer
	defer func() { s.over <- true }()
	return s.passed.Close()
}

// TestSlowKernel checks that a kernel that takes long to open or close ways delays only the job of
// the ways, and no frame of another job on the same loop.
func TestSlowKernel(t *testing.T) {
	table := newSlowTable()
	b := start(t, tcpNetwork(), func(c *Config) { c.NAT, c.Loops = table, 1 })
	other := b.join("other", twoClusters...) // takes no connections: nothing is opened for it
	joined := make(chan []*rank)
	go func() { joined <- b.joinInside(func(int) string { return "127.0.0.1:5000" }, nil, twoClusters...) }()
	<-table.begun
	pingPong(t, other[0], other[2])
	if s := b.f.Status().Jobs[0]; s.Job != "j" || s.State != "gathering" || s.Joined != 4 {
		t.Errorf("while the kernel is asked: %+v", s)
	}
	select {
	case <-joined:
		t.Error("the job runs before its doors are open")
	default:
	}
	table.answer <- true
	r := <-joined
	if len(r[0].Doors) != 2 {
		t.Errorf("doors %v", r[0].Doors)
	}
	pingPong(t, r[0], r[2])
	for _, x := range r {
		x.bye()
	}
	<-table.begun
	pingPong(t, other[1], other[3])
	if len(b.ends) != 0 {
		t.Error("the job has ended before its doors are closed")
	}
	table.answer <- true
	if s := b.ended(); !s.OK || s.Job != "j" {
		t.Errorf("summary %+v", s)
	}
}

// TestLeaveDuringKernelRequestGathersAgain checks that a job waits again if a rank leaves while the
// kernel is asked, and that the opened ways are closed.
func TestLeaveDuringKernelRequestGathersAgain(t *testing.T) {
	table := newSlowTable()
	b := start(t, tcpNetwork(), func(c *Config) { c.NAT = table })
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	join := func(ctx context.Context, cluster string) <-chan *rank {
		c := make(chan *rank, 1)
		go func() {
			d := dial.Dialer{Transport: b.dialer, Inside: func(netip.Addr) string { return "127.0.0.1:5000" }}
			l, layout, err := d.Dial(ctx, b.ln.Addr(), identity("j", cluster, 0, layout...))
			if err != nil {
				close(c)
				return
			}
			t.Cleanup(func() { l.Close() })
			c <- &rank{t, l, layout}
		}()
		return c
	}
	ctx, cancel := context.WithCancel(context.Background())
	stays, leaves := join(context.Background(), "a"), join(ctx, "b")
	<-table.begun
	cancel()
	if r := <-leaves; r != nil {
		t.Fatal("let in")
	}
	for b.f.Status().Jobs[0].Joined != 1 {
		time.Sleep(time.Millisecond)
	}
	again := join(context.Background(), "b")
	<-table.begun // asked once more
	table.answer <- true
	table.answer <- true
	<-table.begun // the call that closes the unused ways
	table.answer <- true
	<-table.over
	a, c := <-stays, <-again
	if a == nil || c == nil {
		t.Fatal("refused")
	}
	pingPong(t, a, c)
	if n := table.closings(); n != 1 {
		t.Errorf("closed %d times", n)
	}
	a.bye()
	c.bye()
	<-table.begun
	table.answer <- true
	b.ended()
}
