package link

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// dial has a rank begin to open a direct link to another one. The attempt waits for a link in
// w.links.
func (w *wayNet) dial(from, to int) {
	w.control(w.ranks[from].rails[0], wire.TypeWay, &wire.Way{Rank: uint32(to), Address: "z:1"})
	w.tickQuietly(from)
	<-w.dialled
}

// open opens a direct link on demand, and returns the end of the rank that has dialled.
func (w *wayNet) open(from, to int) *memnet.Link {
	w.t.Helper()
	w.dial(from, to)
	there, here := memnet.Pipe(memnet.Options{Partial: w.seed, Buffer: 1 << 20})
	w.links <- there
	if !w.ranks[to].set.DirectUp(from, here) {
		w.t.Fatalf("rank %d does not take the link of rank %d", to, from)
	}
	w.until("the attempt ends", func() bool { return w.dialling(from) == 0 })
	return there
}

// stream has two ranks send each other frames and large messages, of which only a part arrives at
// once. The result checks that all have arrived.
func (w *wayNet) stream(a, b int) (arrived func()) {
	var large []*largeMessage
	before := map[int]int{}
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		from, to := w.ranks[pair[0]], w.ranks[pair[1]]
		before[pair[0]] = len(to.got[pair[0]])
		for i := range 20 {
			from.locked(func() { from.sendEager(pair[1], fmt.Appendf(nil, "%d", before[pair[0]]+i)) })
			w.handles++
			m := &largeMessage{pair[0], pair[1], w.handles, pattern(i, 2000), make([]byte, 2000)}
			to.lock.Lock()
			from.locked(func() { from.send(to.testProcess, m.handle, m.sent, m.got) })
			to.lock.Unlock()
			large = append(large, m)
		}
	}
	for range 3 {
		w.ranks[a].step()
		w.ranks[b].step()
	}
	return func() {
		w.t.Helper()
		w.settle()
		for _, m := range large {
			if !w.ranks[m.to].filled[m.handle] || !slices.Equal(m.got, m.sent) {
				w.t.Errorf("large message %d from %d to %d has not arrived", m.handle, m.from, m.to)
			}
		}
		for _, pair := range [][2]int{{a, b}, {b, a}} {
			got := w.ranks[pair[1]].got[pair[0]]
			if len(got) != before[pair[0]]+20 {
				w.t.Errorf("%d of %d frames from %d have arrived at %d", len(got), before[pair[0]]+20, pair[0], pair[1])
			}
			for i, g := range got {
				if string(g) != fmt.Sprint(i) {
					w.t.Fatalf("frame %d from %d is %q at %d", i, pair[0], g, pair[1])
				}
			}
		}
	}
}

// noPatience is the configuration of a job that ends when it loses its forwarder.
func noPatience(c *Config) {
	c.Redial = nil
	smallPieces(c)
}

// smallPieces lets large messages take many segments.
func smallPieces(c *Config) {
	c.Limits.DataWindow, c.Limits.Segment, c.Limits.EagerWindow = 4000, 400, 1<<20
}

// TestCutLinkLosesNothingWithoutPatience checks that a job whose links to the forwarder are never
// opened again loses nothing with its direct links.
func TestCutLinkLosesNothingWithoutPatience(t *testing.T) {
	w := newWayNetWith(t, netOptions{rows: 1}, noPatience, 1, 1)
	w.stream(0, 1)()
	for i := range 5 {
		from := i % 2
		l := w.open(from, 1-from)
		arrived := w.stream(0, 1)
		l.Cut()
		arrived()
		if a, b := w.directs(0), w.directs(1); len(a)+len(b) > 0 {
			t.Errorf("direct links %v, %v after the loss", a, b)
		}
	}
	w.open(0, 1)
	w.stream(0, 1)()
	if a, b := w.directs(0), w.directs(1); len(a) != 1 || len(b) != 1 {
		t.Errorf("direct links %v, %v", a, b)
	}
}

// TestLostClusterClosesLinksOnDemand checks that the direct link to a lost cluster is closed for
// good, also when an attempt to open it is in progress, and that the survivors keep theirs.
func TestLostClusterClosesLinksOnDemand(t *testing.T) {
	for _, up := range []bool{true, false} {
		w := newWayNetWith(t, netOptions{rows: 1}, func(c *Config) { c.OnLoss = true; smallPieces(c) }, 1, 1, 1)
		w.open(1, 0)
		if up {
			w.open(0, 2)
			w.stream(0, 2)
		} else {
			w.dial(0, 2)
		}
		w.ranks[2].rails[0].there.Cut()
		w.ranks[2].rails[0].there = nil
		arrived := w.stream(0, 1)
		for _, u := range w.ranks[:2] {
			u.locked(func() { u.set.Losses.Lose(2, "test") })
		}
		if !up { // The attempt has succeeded all the same.
			_, there := memnet.Pipe(memnet.Options{})
			w.links <- there
			w.until("the link is closed", func() bool { _, err := there.TryWrite([]byte("x")); return err != nil })
		}
		w.ranks[2].locked(w.ranks[2].set.Close)
		w.ranks = w.ranks[:2]
		arrived()
		w.control(w.ranks[0].rails[0], wire.TypeWay, &wire.Way{Rank: 2, Address: "z:1"})
		w.tickQuietly(0)
		_, late := memnet.Pipe(memnet.Options{})
		if w.ranks[0].set.DirectUp(2, late) || w.dialling(0) > 0 {
			t.Error("another link to the lost cluster is opened")
		}
		w.ranks[0].locked(func() {
			if s := w.ranks[0].set.Peer(2).direct.State(); s != failover.Closed {
				t.Errorf("the link to the lost cluster is %v", s)
			}
		})
		w.demands(0, 2)
		if got := w.tick(0, time.Minute); len(got) > 0 {
			t.Errorf("asked %q", got)
		}
		if a, b := w.directs(0), w.directs(1); !slices.Equal(a, []int{1}) || !slices.Equal(b, []int{0}) {
			t.Errorf("direct links of the survivors %v, %v", a, b)
		}
	}
}

// TestLinkThatComesUpDuringFinish checks that a link for which an attempt was in progress when the
// ranks finished neither loses frames nor keeps the ranks from leaving, whichever of them had
// passed the first barrier or had left.
func TestLinkThatComesUpDuringFinish(t *testing.T) {
	type stage int
	const (
		runs stage = iota
		finished
		left
	)
	advance := func(s *Set, to stage) {
		if to >= finished {
			s.Finished()
		}
		if to >= left {
			s.SendBye()
		}
	}
	for dialler := runs; dialler <= left; dialler++ {
		for listener := runs; listener <= left; listener++ {
			t.Run(fmt.Sprint(dialler, listener), func(t *testing.T) {
				w := newWayNetWith(t, netOptions{rows: 1}, smallPieces, 1, 1)
				w.dial(1, 0)
				arrived := w.stream(0, 1)
				if dialler == left || listener == left {
					arrived() // No rank leaves before all is acknowledged.
				}
				stages := []stage{listener, dialler}
				for i, u := range w.ranks {
					u.locked(func() { advance(u.set, stages[i]) })
				}
				there, here := memnet.Pipe(memnet.Options{Partial: 1, Buffer: 1 << 20})
				w.links <- there
				taken := w.ranks[0].set.DirectUp(1, here)
				if !taken {
					here.Close() // as package boot does
				}
				if taken != (listener == runs) {
					t.Errorf("the link is taken: %v", taken)
				}
				w.until("the attempt ends", func() bool { return w.dialling(1) == 0 })
				if dialler < left && listener < left {
					arrived()
				}
				for _, u := range w.ranks {
					u.locked(func() { advance(u.set, left) })
				}
				w.settle()
				for i, u := range w.ranks {
					u.locked(func() {
						if !u.set.ByeAcked() || u.set.Unacked() > 0 {
							t.Errorf("rank %d: Bye is acknowledged: %v, %d frames are not; %+v", i, u.set.ByeAcked(),
								u.set.Unacked(), u.set.Status())
						}
					})
				}
			})
		}
	}
}

// TestDualLinksBesideLinksOnDemand checks that a pair whose ranks are dual-homed and one that has a
// link on demand, in one job, each keep their rules: the former is opened again by its dialler, and
// takes no Way; the latter is not opened again without one.
func TestDualLinksBesideLinksOnDemand(t *testing.T) {
	w := newWayNetWith(t, netOptions{rows: 1, direct: [][2]int{{0, 2}}}, smallPieces, 2, 1)
	w.meet(0, 2)
	w.open(2, 1)
	dual, onDemand := w.stream(0, 2), w.stream(1, 2)
	w.ranks[1].locked(func() { w.ranks[1].set.Peer(2).direct.link.(*memnet.Link).Cut() })
	w.part(0, 2)
	dual()
	onDemand()
	if got := w.directs(2); len(got) > 0 {
		t.Errorf("direct links with %v after the loss", got)
	}
	w.control(w.ranks[2].rails[0], wire.TypeWay, &wire.Way{Rank: 0, Address: "z:1"})
	w.tickQuietly(2)
	if len(w.dialled) > 0 {
		t.Error("a Way is taken for a dual-homed pair")
	}
	w.meet(0, 2)
	dual, onDemand = w.stream(0, 2), w.stream(1, 2)
	dual()
	onDemand()
	if got := w.directs(2); !slices.Equal(got, []int{0}) {
		t.Errorf("direct links with %v, want only that of the dual-homed rank", got)
	}
	w.open(2, 1)
	w.stream(1, 2)()
	if got := w.directs(2); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("direct links with %v", got)
	}
}
