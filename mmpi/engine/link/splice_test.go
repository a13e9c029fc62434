package link

import (
	"bytes"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// fast sets the measured rate of the flow to a peer so high that its segments are long.
func fast(p *Peer) {
	p.out.pace.Begin(0, 0)
	p.out.pace.Acked(100<<30, time.Second)
}

// pattern returns n pseudo-random bytes, which differ for each i.
func pattern(i, n int) []byte {
	b := make([]byte, n)
	x := uint32(i*2654435761 + 1)
	for k := range b {
		x = x*1664525 + 1013904223
		b[k] = byte(x >> 24)
	}
	return b
}

// TestSplice checks that a message whose long segments are sent from the program's memory arrives
// unchanged, though the program changes the memory as soon as the send is complete. The same holds
// if the system provides no pipe, and if it stops taking the memory in the middle of a segment.
func TestSplice(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(r *rail)
		during  func(r *rail) bool // reports whether it has done something
	}{
		{name: "spliced"},
		{name: "no pipe", prepare: func(r *rail) { r.splices = false }},
		{name: "refused", during: func(r *rail) bool {
			refuse := r.seg.spliced && r.splices && len(r.seg.head) == 0
			r.splices = r.splices && !refuse
			return refuse
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := tcpPair(t)
			r := u[0].set.rails[0]
			if r.packet == 0 || r.long < 2*r.most {
				t.Fatalf("no long segments: %+v", r)
			}
			fast(u[0].set.Peer(1))
			if c.prepare != nil {
				c.prepare(r)
			}
			const n, size = 48, 1<<20 + 7
			sent, got := make([][]byte, n), make([][]byte, n)
			sources := make([]*Source, n)
			for i := range n {
				sent[i], got[i] = pattern(i, size), make([]byte, size)
				sources[i] = u[0].send(u[1], uint64(i+1), sent[i], got[i])
			}
			spliced, done := 0, false
			for over := 0; over < n; {
				u[0].set.Step()
				if r.seg.spliced {
					spliced++
				}
				if c.during != nil && !done {
					done = c.during(r)
				}
				u[1].set.Step()
				if u[0].failed+u[1].failed != "" {
					t.Fatal(u[0].failed, u[1].failed)
				}
				for over < n && u[1].filled[uint64(over+1)] {
					if !u[0].written[uint64(over+1)] {
						t.Fatalf("message %d has arrived and is not written", over)
					}
					u[0].set.Abandon(sources[over])
					clear(sent[over])
					over++
				}
			}
			for i := range n {
				if !bytes.Equal(got[i], pattern(i, size)) {
					t.Fatalf("message %d arrived changed", i)
				}
			}
			if (r.pipe != nil) != (c.prepare == nil) {
				t.Errorf("there is a pipe: %v", r.pipe != nil)
			}
			if c.name == "spliced" && (spliced == 0 || !r.splices) || c.name == "refused" && (!done || r.splices) {
				t.Errorf("a segment was under way %d times, splices: %v, refused: %v", spliced, r.splices, done)
			}
			if p := u[0].set.Peer(1); p.out.backlog != 0 {
				t.Errorf("%d bytes are left", p.out.backlog)
			}
			for _, x := range u {
				if err := x.set.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestLongSegments checks that segments are long, and fill whole packets, only where the flow is
// fast and much is left.
func TestLongSegments(t *testing.T) {
	u := tcpPair(t)
	r, p := u[0].set.rails[0], u[0].set.Peer(1)
	for _, c := range []struct {
		name          string
		rate          float64
		backlog, left int64
		long          bool
	}{
		{"unknown rate", 0, 64 << 20, 1 << 20, false},
		{"1 Gbit/s", 119e6, 64 << 20, 1 << 20, false},
		{"fast", 8e9, 64 << 20, 4 << 20, true},
		{"short rest", 8e9, 1 << 20, 1 << 20, false},
	} {
		p.out.pace = flow.Pace{}
		p.out.pace.Acked(uint64(c.rate), time.Second)
		p.out.backlog = c.backlog
		n := r.segmentSize(&p.out, c.left, false)
		if (n > r.most) != c.long || n > r.long || c.long && (n+wire.HeaderLen+wire.DataLen)%r.packet != 0 {
			t.Errorf("%s: segments of %d bytes, usual are %d, packets have %d", c.name, n, r.most, r.packet)
		}
	}
	p.out.backlog = 64 << 20
	if left := r.segmentSize(&p.out, 10<<20, false) + r.crumb; r.segmentSize(&p.out, int64(left), false) != left {
		t.Errorf("of %d bytes a few are left", left)
	}
	if p.out.backlog = 0; r.segmentSize(&p.out, 5, false) != 5 {
		t.Error("more than is left")
	}
}

// slowNetwork is a link that knows the rate of its bottleneck.
type slowNetwork struct {
	transport.Link
	rate float64 // rate of the bottleneck in bytes per second; 0: unknown
}

func (s *slowNetwork) Bottleneck() float64 { return s.rate }

// TestShortSegments checks that segments in a slow network are so short that each takes little
// time.
func TestShortSegments(t *testing.T) {
	u := tcpPair(t)
	r, p := u[0].set.rails[0], u[0].set.Peer(1)
	slow := &slowNetwork{Link: r.link}
	r.narrow = slow
	for _, c := range []struct {
		rate float64
		want int
	}{{0, r.most}, {10e9, r.most}, {250e6, 25000}, {1e6, leastSegment}} {
		slow.rate = c.rate
		if n := r.segmentSize(&p.out, 10<<20, false); n != c.want {
			t.Errorf("%v bytes/s: segments of %d bytes, want %d", c.rate, n, c.want)
		}
	}
	if slow.rate = 1e6; r.segmentSize(&p.out, 5, false) != 5 {
		t.Error("more than is left")
	}
}
