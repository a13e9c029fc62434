package engine

import (
	"bytes"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/wire"
)

// fast makes a flow one whose segments are long.
func fast(p *peer) {
	p.pace.Begin(0, 0)
	p.pace.Acked(100<<30, time.Second)
}

// TestGiven: long segments go out of the program's memory, which is the program's again when the send is over: it changes it at once, and every message
// arrives as it was. It does so too where the system gives no pipe, and where in the middle of a segment it takes no more of the memory.
func TestGiven(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(r *rail)
		during  func(r *rail) bool // tells that it has done something
	}{
		{name: "given"},
		{name: "no pipe", prepare: func(r *rail) { r.gives = false }},
		{name: "refused", during: func(r *rail) bool {
			refuse := r.seg.given && r.gives && len(r.seg.head) == 0
			r.gives = r.gives && !refuse
			return refuse
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, comms := pair(t)
			r := e[0].rails[0]
			if r.packet == 0 || r.long < 2*r.most {
				t.Fatalf("no long segments: %+v", r)
			}
			fast(e[0].peer(1))
			if c.prepare != nil {
				c.prepare(r)
			}
			const n, size = 48, 1<<20 + 7
			sent, got := make([][]byte, n), make([][]byte, n)
			var out, in [n]Cell
			for i := range n {
				sent[i], got[i] = pattern(i, size), make([]byte, size)
				if err := e[1].Irecv(comms[1], KindP2P, got[i], 0, i, &in[i]); err != nil {
					t.Fatal(err)
				}
				if err := e[0].Isend(comms[0], KindP2P, sent[i], 1, i, false, &out[i]); err != nil {
					t.Fatal(err)
				}
			}
			gave, done := 0, false
			for over := 0; over < n; {
				e[0].Progress(0)
				if r.seg.given {
					gave++
				}
				if c.during != nil && !done {
					done = c.during(r)
				}
				e[1].Progress(0)
				if e[0].err != nil || e[1].err != nil {
					t.Fatal(e[0].err, e[1].err)
				}
				for over < n && out[over].Done() {
					clear(sent[over])
					over++
				}
			}
			for i := range n {
				for !in[i].Done() {
					e[1].Progress(0)
				}
				if !bytes.Equal(got[i], pattern(i, size)) {
					t.Fatalf("message %d arrived changed", i)
				}
			}
			if (r.pipe != nil) != (c.prepare == nil) {
				t.Errorf("there is a pipe: %v", r.pipe != nil)
			}
			if c.name == "given" && (gave == 0 || !r.gives) || c.name == "refused" && (!done || r.gives) {
				t.Errorf("a segment was under way %d times, gives: %v, refused: %v", gave, r.gives, done)
			}
			if p := e[0].peer(1); p.backlog != 0 {
				t.Errorf("%d bytes are left", p.backlog)
			}
		})
	}
}

// TestLongSegments: they are long only where the flow is fast and much is left, whole packets then, and of another rail's or a slow flow they are as usual.
func TestLongSegments(t *testing.T) {
	e, _ := pair(t)
	r, p := e[0].rails[0], e[0].peer(1)
	for _, c := range []struct {
		name          string
		rate          float64
		backlog, left int64
		long          bool
	}{
		{"nothing known", 0, 64 << 20, 1 << 20, false},
		{"1 Gbit/s", 119e6, 64 << 20, 1 << 20, false},
		{"fast", 8e9, 64 << 20, 4 << 20, true},
		{"little left", 8e9, 1 << 20, 1 << 20, false},
	} {
		p.pace = flow.Pace{}
		p.pace.Acked(uint64(c.rate), time.Second)
		p.backlog = c.backlog
		n := r.take(p, c.left)
		if (n > r.most) != c.long || n > r.long || c.long && (n+wire.HeaderLen+wire.DataLen)%r.packet != 0 {
			t.Errorf("%s: segments of %d bytes, usual are %d, packets have %d", c.name, n, r.most, r.packet)
		}
	}
	p.backlog = 64 << 20
	if left := r.take(p, 10<<20) + r.crumb; r.take(p, int64(left)) != left {
		t.Errorf("of %d bytes a few are left", left)
	}
	if p.backlog = 0; r.take(p, 5) != 5 {
		t.Error("more than is left")
	}
}
