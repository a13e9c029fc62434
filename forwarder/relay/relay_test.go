package relay

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// controlled is a Control that notes the calls of its connection.
type controlled struct {
	conn  *Conn
	route *Route // the route that applies before Conn.Run
	notes []string
	late  bool
	cause error // the reason of Ended
}

func (c *controlled) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *controlled) Frame(h wire.Header, body []byte)               { c.note("%v %d", h.Type, len(body)) }
func (c *controlled) Bad(reason string)                              { c.note("bad: %s", reason) }
func (c *controlled) EndIfLate(time.Time) bool                       { return c.late }
func (c *controlled) Ended(cause error)                              { c.cause = cause; c.note("ended: %v", cause) }
func (c *controlled) Route() *Route                                  { return c.route }
func (c *controlled) MarshalLogObject(e zapcore.ObjectEncoder) error { return nil }

func (c *controlled) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(c.notes, want) {
		t.Errorf("told %q, want %q", c.notes, want)
	}
	c.notes = nil
}

// fixture is a relay with connections to two ranks, a clock that stands still, and no threads.
type fixture struct {
	l     *loop.Loop
	now   time.Time
	ranks [2]*memnet.Link
	ctl   [2]*controlled
}

func newFixture(t *testing.T) *fixture { return newFixtureOf(t, 1000) }

// newFixtureOf makes links that hold so many bytes in each direction.
func newFixtureOf(t *testing.T, buffer int) *fixture {
	f := &fixture{now: time.Unix(1000, 0)}
	var err error
	if f.l, err = loop.New(loop.Config{Tick: time.Second, Now: func() time.Time { return f.now }}); err != nil {
		t.Fatal(err)
	}
	r := New(Config{ReadBuffer: 4 << 10, FlowLimit: 10_000, ControlLimit: 10_000, PipeFrom: PipeFrom,
		PipeSize:     PipeSize,
		PingInterval: 2 * time.Second, PeerTimeout: time.Minute, Unreachable: time.Minute, Linger: 5 * time.Second,
		Log: zap.NewNop()})
	w := r.Worker(f.l)
	for i := range f.ranks {
		a, b := memnet.Pipe(memnet.Options{Buffer: buffer})
		f.ranks[i], f.ctl[i] = a, &controlled{route: &Route{Rank: wire.Nobody, Allowed: onlyType(wire.TypeJoin)}}
		f.ctl[i].conn = r.Conn(w, b, f.ctl[i])
		if err := f.ctl[i].conn.Open(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := range f.ranks {
			f.ctl[i].conn.End(nil)
			f.ranks[i].Close()
		}
		f.l.Close()
		r.Close()
	})
	return f
}

// onlyType lets one type of frame through.
func onlyType(want wire.Type) func(wire.Header) error {
	return func(h wire.Header) error {
		if h.Type != want {
			return fmt.Errorf("%v from %d for %d", h.Type, h.Src, h.Dst)
		}
		return nil
	}
}

// run gives both connections their routes.
func (f *fixture) run() { f.runWith(nil) }

// runWith gives the job a budget.
func (f *fixture) runWith(job *budget.Budget) {
	table := make([]atomic.Pointer[Conn], 2)
	counts := NewCounts(2, []int{0, 1})
	for i := range table {
		table[i].Store(f.ctl[i].conn)
		f.ctl[i].conn.Run(&Route{Rank: uint32(i), Table: table, Counts: counts, Memory: job,
			Allowed: onlyType(wire.TypeBye)})
		if f.ctl[i].conn.State() != Running {
			continue
		}
		if n, err := f.ranks[i].TryRead(make([]byte, 100)); n != wire.HeaderLen+wire.CountLen {
			panic(fmt.Sprintf("no Count is the first frame: %d bytes, %v", n, err))
		}
	}
}

func (f *fixture) settle() {
	for f.l.Step() {
	}
}

// from has a rank send a frame with so many bytes of payload.
func (f *fixture) from(t *testing.T, rank int, typ wire.Type, src, dst uint32, payload int) {
	t.Helper()
	h := wire.Header{Type: typ, Src: src, Dst: dst}
	p := wire.AppendFrame(nil, h, nil)
	if typ == wire.TypeEager {
		h.Length = uint32(wire.EnvelopeLen + payload)
		p = append(h.Append(nil), make([]byte, h.Length)...)
	}
	if n, err := f.ranks[rank].TryWrite(p); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
	f.settle()
}

// reads counts the bytes that a rank has got.
func (f *fixture) reads(t *testing.T, rank int) (n int) {
	t.Helper()
	p := make([]byte, 4096)
	for {
		k, err := f.ranks[rank].TryRead(p)
		if err == transport.ErrAgain {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		n += k
		f.settle()
	}
}

// TestControl checks the frames that a Control gets: before the connection has its route, all that
// the control allows. Afterwards frames between ranks are relayed, pings are answered, and all
// others go to the control again.
func TestControl(t *testing.T) {
	f := newFixture(t)
	f.from(t, 0, wire.TypeBye, 0, 0, 0)
	f.ctl[0].expect(t, "bad: Bye from 0 for 0")
	f = newFixture(t)
	f.run()
	if f.ctl[0].conn.State() != Running {
		t.Errorf("state %v", f.ctl[0].conn.State())
	}
	f.from(t, 0, wire.TypeEager, 0, 1, 10)
	if n := f.reads(t, 1); n != wire.HeaderLen+wire.EnvelopeLen+10 {
		t.Errorf("%d bytes are relayed", n)
	}
	f.from(t, 0, wire.TypeBye, 0, 0, 0)
	f.ctl[0].expect(t, "Bye 0")
	f.from(t, 0, wire.TypeEager, 1, 0, 1) // not its own source
	f.ctl[0].expect(t, "bad: Eager from 1 for 0")
	f.ctl[1].expect(t)
}

// TestInputAfterABadFrameIsDiscarded checks that a violation of the protocol is reported once,
// however much arrives after it, because the limits of the frames that follow are unknown.
func TestInputAfterABadFrameIsDiscarded(t *testing.T) {
	f := newFixtureOf(t, 64<<10)
	f.run()
	garbage := bytes.Repeat([]byte{0xff}, 40<<10)
	if n, err := f.ranks[0].TryWrite(garbage); n != len(garbage) || err != nil {
		t.Fatal(n, err)
	}
	f.settle()
	if n := len(f.ctl[0].notes); n != 1 {
		t.Errorf("%d reports: %q", n, f.ctl[0].notes)
	}
	if n := f.reads(t, 1); n != 0 {
		t.Errorf("%d bytes are relayed", n)
	}
}

// TestIncompleteFrameThatFillsItsBuffer checks that the rest of a frame is read whose beginning had
// as many bytes as the buffer for it.
func TestIncompleteFrameThatFillsItsBuffer(t *testing.T) {
	f := newFixtureOf(t, 64<<10)
	h := wire.Header{Type: wire.TypeJoin, Src: wire.Nobody, Dst: wire.Nobody, Length: 60_000}
	h.BodySum = wire.Sum(make([]byte, h.Length))
	frame := append(h.Append(nil), make([]byte, h.Length)...)
	for _, part := range [][]byte{frame[:4<<10], frame[4<<10:]} {
		if n, err := f.ranks[0].TryWrite(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
		f.settle()
	}
	f.ctl[0].expect(t, "Join 60000")
}

// TestJoiningPeerGetsNoPong checks that a peer which has not joined, and is not read for lack of
// memory, gets no Pong: it expects an answer to its Join.
func TestJoiningPeerGetsNoPong(t *testing.T) {
	f := newFixture(t)
	f.ctl[0].conn.memory.paused.Store(true)
	f.now = f.now.Add(2 * time.Second)
	f.settle()
	if n := f.reads(t, 0); n != 0 {
		t.Errorf("%d bytes arrive", n)
	}
}

func TestPings(t *testing.T) {
	f := newFixture(t)
	f.run()
	for range 2 {
		f.now = f.now.Add(2 * time.Second)
		f.settle()
	}
	if n := f.reads(t, 0); n != wire.HeaderLen+wire.HeaderLen+wire.CountLen {
		t.Errorf("%d bytes of pings and Counts", n)
	}
	f.now = f.now.Add(time.Minute)
	f.settle()
	f.ctl[0].expect(t, "ended: no answer for 1m0s")
}

// cutLink is a link whose network has not reached the other host for some time.
type cutLink struct {
	*memnet.Link
	unheard time.Duration
}

func (l *cutLink) Unheard() (time.Duration, bool) { return l.unheard, true }

// TestUnreachableHostIsSilent checks when a connection ends because the network does not reach the
// other host, when it is pinged before that, and that the cause says for how long nothing has been
// heard.
func TestUnreachableHostIsSilent(t *testing.T) {
	for _, test := range []struct {
		name         string
		route        time.Duration // Route.Unreachable
		pinged, ends time.Duration // times since the last input
	}{
		{"default", 0, 2 * time.Second, 6 * time.Second},
		{"longer", time.Minute, 2 * time.Second, 6 * time.Second},
		{"shorter", 4 * time.Second, time.Second, 4 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			c := f.ctl[0].conn
			c.shared.cfg.Unreachable = 6 * time.Second
			l := &cutLink{Link: c.link.(*memnet.Link)}
			c.link = l
			c.Run(&Route{Allowed: onlyType(wire.TypeBye), Table: make([]atomic.Pointer[Conn], 1), Counts: NewCounts(1, []int{0}),
				Unreachable: test.route})
			var pinged time.Duration
			for begin := f.now; c.State() == Running && pinged < time.Minute; l.unheard = f.now.Sub(begin) {
				if pinged == 0 && c.pinged {
					pinged = f.now.Sub(begin)
				}
				f.now = f.now.Add(500 * time.Millisecond)
				c.Tick(f.now)
			}
			if Silence(f.ctl[0].cause) != test.ends || pinged != test.pinged {
				t.Errorf("pinged after %v, then %v; want a ping after %v and the end after %v", pinged, f.ctl[0].cause, test.pinged, test.ends)
			}
		})
	}
}

// TestLastFrame checks that a connection that does not read gets its last frame in place of the
// queue (abort) or behind it (finish), and is closed if the peer does not close it.
func TestLastFrame(t *testing.T) {
	size := wire.HeaderLen + wire.EnvelopeLen + 500
	last := frame(wire.TypeByeAck)
	for name, c := range map[string]struct {
		end  func(*Conn)
		want int
	}{
		// the second frame is partly written
		"abort":  {func(c *Conn) { c.AbortWith(last) }, 2*size + len(last)},
		"finish": {func(c *Conn) { c.FinishWith(last); c.Linger() }, 4*size + len(last)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.run()
			for range 4 {
				f.from(t, 0, wire.TypeEager, 0, 1, 500)
			}
			if f.ctl[1].conn.Queued() == 0 {
				t.Error("nothing waits")
			}
			c.end(f.ctl[1].conn)
			if n := f.reads(t, 1); n != c.want {
				t.Errorf("%d bytes come, want %d", n, c.want)
			}
			f.from(t, 1, wire.TypeEager, 1, 0, 1) // discarded
			f.now = f.now.Add(6 * time.Second)
			f.settle()
			f.ctl[1].expect(t, "ended: did not close in time")
		})
	}
}

// TestFloodIsBlamedOnItsSource checks that a source that exceeds the queue's limits is blamed
// rather than the destination that does not read.
func TestFloodIsBlamedOnItsSource(t *testing.T) {
	f := newFixture(t)
	f.run()
	for i := 0; i < 100 && len(f.ctl[0].notes) == 0; i++ {
		f.from(t, 0, wire.TypeEager, 0, 1, 500)
	}
	f.ctl[0].expect(t, "bad: from rank 0 for rank 1: sent more than its credit: 10500 payload bytes wait here for a rank that does not read")
	f.ctl[1].expect(t)
}

// TestEarlierStateDoesNotReplaceLater checks that Run after Linger, and Linger after End, leave the
// later state unchanged.
func TestEarlierStateDoesNotReplaceLater(t *testing.T) {
	f := newFixture(t)
	c := f.ctl[0].conn
	c.Linger()
	f.run()
	if c.State() != Lingering {
		t.Errorf("state %v", c.State())
	}
	c.End(nil)
	c.Linger()
	c.End(nil)
	if c.State() != Ended {
		t.Errorf("state %v", c.State())
	}
	f.ctl[0].expect(t, "ended: <nil>")
}
