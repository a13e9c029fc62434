package forwarder

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/wire"
)

// stillClock is a clock that stands still. The timers of a forwarder run, but nothing is due.
type stillClock struct {
	clock.System
	now time.Time
}

func (c stillClock) Now() time.Time { return c.now }

// startWays starts a forwarder with a kernel that forwards connections. Its time stands still, so
// doors are open until their job ends.
func startWays(t *testing.T, table nat.Kernel, change func(*Config)) *bench {
	return start(t, tcpNetwork(), func(c *Config) {
		c.NAT, c.clock = table, stillClock{now: time.Now()}
		if change != nil {
			change(c)
		}
	})
}

// passed is a NAT that forwards nothing, and records its calls.
type passed struct {
	mu     sync.Mutex
	ways   []nat.Way
	closed []netip.AddrPort
	err    error
	off    bool // this host does not forward packets
}

func (p *passed) Forwards(netip.Addr) bool { return !p.off }

func (p *passed) OpenWays(ways []nat.Way) (at []netip.AddrPort, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ways {
		p.ways = append(p.ways, w)
		at = append(at, netip.AddrPortFrom(w.At, uint16(7000+len(p.ways))))
	}
	return at, p.err
}

func (p *passed) CloseWays(at []netip.AddrPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = append(p.closed, at...)
	return nil
}

func (p *passed) opened() []nat.Way {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ways)
}

func (p *passed) closings() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.closed)
}

// offered checks that ranks are offered ways.
func offered(ranks []*rank) {
	for _, r := range ranks {
		r.t.Helper()
		r.expect(wire.TypeOffer)
	}
}

// insideOf returns an address for the connections of each rank.
func insideOf(v int) string { return fmt.Sprint("127.0.0.1:", 5000+v) }

// ask sends the request of a rank for a way to another one.
func (r *rank) ask(to uint32) {
	r.t.Helper()
	r.send(wire.AppendFrame(nil, wire.Control(wire.TypeAsk), &wire.Ask{Rank: to}))
}

// way returns the next Way that a rank gets.
func (r *rank) way() wire.Way {
	r.t.Helper()
	_, body := r.expect(wire.TypeWay)
	w, err := wire.ParseWay(body)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
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

// TestWaysLeadToRanks checks that ways lead to ranks that other ranks dial, on the hosts from which
// their links come, and to no other destination, and that they are closed when the job ends.
func TestWaysLeadToRanks(t *testing.T) {
	table := &passed{}
	b := startWays(t, table, nil)
	inside := []string{"127.0.0.1:5000", "192.0.2.7:5000", "127.0.0.1:22", "", "nonsense", "127.0.0.1:5001"}
	r := b.joinInside(func(v int) string { return inside[v] }, nil, wire.Cluster{Name: "a", Size: 2}, wire.Cluster{Name: "b", Size: 3}, wire.Cluster{Name: "c", Size: 1})
	offered(r)
	own := netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct{ asks, to, dials, listens uint32 }{
		{0, 2, 2, 0}, {4, 0, 4, 0}, {5, 0, 5, 0}, // the higher rank dials
		{1, 5, 1, 5}, {2, 5, 2, 5}, // the lower one, where the higher one cannot be dialled
	} {
		r[c.asks].ask(c.to)
		w := r[c.dials].way()
		if want := (nat.Way{From: own, At: own, To: netip.MustParseAddrPort(inside[c.listens])}); w.Rank != c.listens ||
			table.opened()[len(table.opened())-1] != want {
			t.Errorf("a way between %d and %d: %+v, by %+v", c.asks, c.to, w, table.opened())
		}
	}
	if n := len(table.opened()); n != 2 {
		t.Errorf("%d doors for two ranks, which are dialled from one host", n)
	}
	r[1].ask(2) // neither can be dialled
	r[3].ask(4) // in the same cluster
	r[0].ask(99)
	pingPong(t, r[1], r[3]) // the forwarder relays as ever, and has handled the requests
	if s := b.f.Status(); s.Jobs[0].Doors != 2 || s.Jobs[0].Ways != 5 || !s.NAT {
		t.Errorf("%d doors and %d ways in the status, NAT %v", s.Jobs[0].Doors, s.Jobs[0].Ways, s.NAT)
	}
	if table.closings() != 0 {
		t.Error("closed while the job runs")
	}
	for _, r := range r {
		r.bye()
	}
	b.ended()
	if n := table.closings(); n != 2 {
		t.Errorf("%d doors are closed when the job has ended", n)
	}
}

// TestReportedTrafficIsSummed checks that the traffic over ways that ranks report is in the status,
// the summary and the totals, and that a lower report has no effect.
func TestReportedTrafficIsSummed(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.NAT = &passed{} })
	r := b.joinInside(insideOf, nil, twoClusters...)
	offered(r)
	for _, m := range []wire.Moved{{Messages: 1, Bytes: 10}, {Messages: 3, Bytes: 30}, {Messages: 2, Bytes: 20}} {
		r[0].send(wire.AppendFrame(nil, wire.Control(wire.TypeMoved), &m))
	}
	r[2].send(wire.AppendFrame(nil, wire.Control(wire.TypeMoved), &wire.Moved{Messages: 4, Bytes: 400}))
	pingPong(t, r[0], r[2]) // after the reports
	want := KernelTraffic{Messages: 7, PayloadBytes: 430}
	if got := b.f.Status(); got.Jobs[0].Kernel != want || got.Totals.Kernel != want {
		t.Errorf("status %+v, totals %+v", got.Jobs[0].Kernel, got.Totals.Kernel)
	}
	for _, x := range r {
		x.bye()
	}
	if s := b.ended(); s.Kernel != want || b.f.Status().Totals.Kernel != want {
		t.Errorf("summary %+v, totals %+v", s.Kernel, b.f.Status().Totals.Kernel)
	}
}

// TestWaysEndWithAbortedJob checks that the ways of a job that is aborted are closed.
func TestWaysEndWithAbortedJob(t *testing.T) {
	table := &passed{}
	b := startWays(t, table, nil)
	r := b.joinInside(insideOf, nil, twoClusters...)
	offered(r)
	r[0].ask(2)
	r[2].way()
	r[1].link.Close()
	for _, v := range []int{0, 2, 3} {
		r[v].expect(wire.TypeAbort)
		r[v].link.Close()
	}
	b.ended()
	if n := table.closings(); n != 1 {
		t.Errorf("%d doors are closed when the job was aborted", n)
	}
}

// TestNothingIsOffered checks that a forwarder without a kernel offers no ways, and that a request
// has no effect there.
func TestNothingIsOffered(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	r[0].ask(2) // has no effect
	pingPong(t, r[0], r[2])
}

// TestUnroutedAddressesAreNotOffered checks that a forwarder offers no ways over a version of IP
// whose packets its host does not forward.
func TestUnroutedAddressesAreNotOffered(t *testing.T) {
	table := &passed{off: true}
	b := startWays(t, table, nil)
	r := b.joinInside(insideOf, nil, twoClusters...)
	r[2].ask(0) // has no effect
	pingPong(t, r[0], r[2])
	if len(table.opened()) > 0 {
		t.Errorf("ways %v", table.opened())
	}
}

// TestUnsupportedNATIsDeclined checks that ranks that accept no connections are offered ways, in
// which they would dial, and that none is opened.
func TestUnsupportedNATIsDeclined(t *testing.T) {
	table := &passed{}
	b := startWays(t, table, nil)
	r := b.join("j", twoClusters...)
	offered(r)
	r[0].ask(2)
	pingPong(t, r[0], r[2])
	if len(table.opened()) > 0 {
		t.Errorf("ways %v", table.opened())
	}
}

// TestTooManyRequestsAreIgnored checks that a rank that asks without end is ignored for a while,
// and that its job goes on.
func TestTooManyRequestsAreIgnored(t *testing.T) {
	table := &passed{}
	b := startWays(t, table, nil)
	r := b.joinInside(insideOf, nil, twoClusters...)
	offered(r)
	r[2].ask(0)
	r[2].way()
	for range 1000 {
		r[2].ask(0)
	}
	r[2].send(eager(2, 0, 1, nil))
	r[0].expect(wire.TypeEager)
	if n := b.f.Status().Jobs[0].Ways; n != 256 {
		t.Errorf("%d of 1001 requests are met, want 256", n)
	}
}

// slowTable is a kernel that answers on request.
type slowTable struct {
	passed
	begun  chan bool // receives a value for each call
	answer chan bool // lets a call return
}

func newSlowTable() *slowTable {
	return &slowTable{begun: make(chan bool, 16), answer: make(chan bool)}
}

func (s *slowTable) OpenWays(ways []nat.Way) (at []netip.AddrPort, err error) {
	s.begun <- true
	<-s.answer
	return s.passed.OpenWays(ways)
}

func (s *slowTable) CloseWays(at []netip.AddrPort) error {
	s.begun <- true
	<-s.answer
	return s.passed.CloseWays(at)
}

// TestSlowKernel checks that a kernel that takes long to open or close ways delays no frame, and
// only the end of the job of the ways.
func TestSlowKernel(t *testing.T) {
	table := newSlowTable()
	b := startWays(t, table, func(c *Config) { c.Loops = 1 })
	r := b.joinInside(insideOf, nil, twoClusters...)
	offered(r)
	r[2].ask(0)
	<-table.begun
	pingPong(t, r[0], r[2])
	table.answer <- true
	r[2].way()
	r[3].ask(1)
	<-table.begun
	for _, x := range r {
		x.bye()
	}
	if len(b.ends) != 0 {
		t.Error("the job has ended before the kernel has answered")
	}
	table.answer <- true
	<-table.begun
	if len(b.ends) != 0 {
		t.Error("the job has ended before its doors are closed")
	}
	table.answer <- true
	if s := b.ended(); !s.OK || s.Job != "j" || table.closings() != 2 {
		t.Errorf("summary %+v, %d doors are closed", s, table.closings())
	}
}
