package forwarder

import (
	"errors"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// row returns threeInARow as one of two rows.
func row(t *testing.T) (*chain, []map[int]*rank) {
	ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
	ch.rows = 2
	return ch, ch.joinAll("j")
}

// TestRowLosesLink checks that a job of several rows goes on without a rank's link: ranks that
// reach it through that forwarder are told, even two forwarders away, and others are not.
func TestRowLosesLink(t *testing.T) {
	ch, links := row(t)
	a0, a1, b0, b1, c0, c1 := links[0][0], links[1][0], links[2][0], links[2][1], links[3][1], links[4][1]
	a0.link.Close()
	for _, r := range []*rank{a1, b0, c0, c1} {
		if s := r.expectState(0, false); !strings.Contains(s.Reason, "rank 0 of cluster a on host host-a") {
			t.Errorf("reason %q", s.Reason)
		}
	}
	c0.send(eager(3, 0, 1, nil)) // thrown away
	c0.send(eager(3, 1, 1, nil))
	if h, _ := a1.expect(wire.TypeEager); h.Src != 3 {
		t.Errorf("from %d", h.Src)
	}
	b1.expectState(0, false) // its way there is another; the engine knows
	b0.link.Close()
	a1.expectState(2, false)
	c0.send(eager(3, 2, 1, nil)) // b1 is reachable: no rank behind z1 was told
	b1.expect(wire.TypeEager)
	a1.send(eager(1, 3, 1, nil))
	c0.expect(wire.TypeEager)
	for _, r := range []*rank{a1, b1, c0, c1} {
		r.bye()
	}
	for i, b := range ch.benches {
		if s := b.ended(); s.OK || !strings.Contains(s.Reason, "rank 0 of cluster a") {
			t.Errorf("forwarder %d lost a link, but ended with %+v", i, s)
		}
		b.settled()
	}
}

// TestRowLosesBridge checks that without a bridge each side loses the ranks behind it and no
// others.
func TestRowLosesBridge(t *testing.T) {
	for name, lose := range map[string]func(f *Forwarder){
		"lost": func(f *Forwarder) {
			f.named("j").first(0).end(errors.New("cut"))
		},
		"shut down": nil,
	} {
		t.Run(name, func(t *testing.T) {
			ch, links := row(t)
			a0, a1, b0 := links[0][0], links[1][0], links[2][0]
			if lose != nil {
				lose(ch.benches[1].f)
				for _, v := range []uint32{0, 1} {
					for _, r := range []*rank{links[3][1], links[4][1], links[2][1]} {
						r.expectState(v, false)
					}
				}
			} else {
				go ch.benches[1].stop()
				for _, r := range []*rank{links[3][1], links[4][1], links[2][1]} {
					r.expect(wire.TypeBye)
				}
			}
			for _, v := range []uint32{3, 4} {
				for _, r := range []*rank{a0, a1, b0} {
					if s := r.expectState(v, false); !strings.Contains(s.Reason,
						"the link to the forwarder z1 is lost") {
						t.Errorf("reason %q", s.Reason)
					}
				}
			}
			a0.send(eager(0, 3, 1, nil)) // thrown away
			pingPong(t, a0, b0)
			for _, r := range []*rank{a0, a1, b0} {
				r.bye()
			}
			if s := ch.benches[0].ended(); s.OK || !strings.Contains(s.Reason, "z1") {
				t.Errorf("%+v", s)
			}
			if lose == nil {
				return
			}
			for _, r := range []*rank{links[2][1], links[3][1], links[4][1]} {
				r.bye()
			}
			for _, b := range ch.benches {
				b.settled()
			}
		})
	}
}

// TestAbortReachesForwarderWithoutRanks checks that an Abort in a row reaches another forwarder
// over a bridge that is the route to no rank any more.
func TestAbortReachesForwarderWithoutRanks(t *testing.T) {
	ch, links := row(t)
	for v := range 2 {
		links[v][0].link.Close()
		links[4][1].expectState(uint32(v), false)
	}
	links[4][1].send(abortFrame(7, 4, "enough"))
	b0 := links[2][0]
	for _, v := range []uint32{0, 1} {
		b0.expectState(v, false)
	}
	b0.expect(wire.TypeAbort)
	for _, l := range links {
		for _, r := range l {
			r.link.Close()
		}
	}
	for _, b := range ch.benches {
		b.settled()
	}
}

// TestFalseRankReportIsRejected checks that a forwarder's reports about ranks that are not behind
// it are rejected: the link is lost, as by any damage. In a job whose ranks cannot return, any
// report about a rank ends the job.
func TestFalseRankReportIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		rows, before int // before: so many others were left out on the way
		s            wire.RailState
		want         string
	}{
		"down, rank of the receiver":     {2, 0, wire.RailState{Rank: 0}, "damaged: RailState of rank"},
		"down, unknown rank":             {2, 0, wire.RailState{Rank: 1 << 31}, "damaged: RailState of rank"},
		"up, rank of the receiver":       {2, 0, wire.RailState{Rank: 0, Up: true}, "damaged: RailState of rank"},
		"departed, rank of the receiver": {2, 0, wire.RailState{Rank: 0, Departed: true}, "damaged: RailState of rank"},
		"number out of order":            {2, 1, wire.RailState{Rank: 3, Up: true}, "damaged: state 2 has come in place of 1"},
		"one row, without patience":      {1, 0, wire.RailState{Rank: 3}, "the forwarder z1 broke the protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
			ch.rows = c.rows
			links := ch.joinAll("j")
			c.s.Number = uint32(c.before) + 1
			_ = ch.benches[1].f.named("j").first(0).conn.Send(frame(wire.TypeRailState, &c.s))
			if c.rows > 1 {
				for _, v := range []uint32{3, 4} { // those behind the link
					if s := links[0][0].expectState(v, false); !strings.Contains(s.Reason, c.want) {
						t.Errorf("reason %q", s.Reason)
					}
				}
				return
			}
			_, body := links[0][0].expect(wire.TypeAbort)
			if a, err := wire.ParseAbort(body); err != nil || !strings.Contains(a.Reason, c.want) {
				t.Errorf("%+v %v", a, err)
			}
		})
	}
}

// TestRowsOfServedJobs checks that an operator who serves certain jobs serves all their rows.
func TestRowsOfServedJobs(t *testing.T) {
	p := &policy{Config: Config{Jobs: []string{"j"}, MaxRanks: 1}}
	for id, ok := range map[string]bool{"j": true, handshake.RowID("j", 0): true, handshake.RowID("j", 2): true,
		"jj": false, handshake.RowID("k", 1): false} {
		if refused := p.serves(&wire.Join{Job: id}); (refused == nil) != ok {
			t.Errorf("%s: %v", id, refused)
		}
	}
}
