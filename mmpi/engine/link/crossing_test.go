package link

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// TestAttemptOfLowerRankWins checks that two ranks that dial each other at the same time, because
// different forwarders have named an address to each of them, have a direct link afterwards: that
// of the lower rank, whether or not the attempt of the higher rank has succeeded by then.
func TestAttemptOfLowerRankWins(t *testing.T) {
	for _, late := range []bool{false, true} {
		begun, opened := make(chan bool, 2), [2]chan transport.Link{make(chan transport.Link, 1), make(chan transport.Link, 1)}
		cancelled := make(chan bool, 2)
		w := &wayNet{testNet: newTestNet(t, []uint32{1, 1}, netOptions{rows: 1}, 1, func(c *Config) {
			c.OpenWay = func(ctx context.Context, x wire.Way) (transport.Link, error) {
				begun <- true
				done := ctx.Done()
				if late && x.Rank == 0 {
					done = nil // the attempt of rank 1 succeeds although it is cancelled
				}
				select {
				case l := <-opened[1-x.Rank]:
					return l, nil
				case <-done:
					cancelled <- true
					return nil, ctx.Err()
				}
			}
		})}
		for v := range 2 {
			w.control(w.ranks[v].rails[0], wire.TypeWay, &wire.Way{Rank: uint32(1 - v), Address: "z:1"})
			w.tickQuietly(v)
			<-begun
		}
		fromHigher, atLower := must(memnet.Pipe(memnet.Options{}))
		if w.ranks[0].set.DirectUp(1, atLower) {
			t.Fatal("the lower rank takes the link of the higher one, although it dials")
		}
		fromLower, atHigher := must(memnet.Pipe(memnet.Options{}))
		if !w.ranks[1].set.DirectUp(0, atHigher) {
			t.Fatal("the higher rank refuses the link of the lower one")
		}
		opened[0] <- fromLower
		if late {
			opened[1] <- fromHigher
		} else {
			<-cancelled
		}
		attempts := func(v int) (dials bool) {
			r := w.ranks[v]
			r.locked(func() { dials = r.set.Peer(1 - v).direct.Dialing() })
			return dials
		}
		w.until("the attempts end", func() bool { return !attempts(0) && !attempts(1) })
		for v := range 2 {
			w.ranks[v].locked(func() { w.ranks[v].sendEager(1-v, []byte("x")) })
		}
		w.settle()
		w.until("the messages arrive", func() bool {
			w.settle()
			return len(w.ranks[0].got[1]) == 1 && len(w.ranks[1].got[0]) == 1
		})
		w.ranks[1].locked(func() {
			if r := w.ranks[1].set.Peer(0).direct; r.link != atHigher || r.Losses() > 0 {
				t.Error("the higher rank does not use the link of the lower one")
			}
		})
		if a, b := w.directs(0), w.directs(1); len(a) != 1 || len(b) != 1 {
			t.Errorf("direct links %v, %v", a, b)
		}
	}
}

// TestLateAttemptChangesNothing checks that an attempt that was cancelled, and returns when another
// attempt has begun, does not end that attempt.
func TestLateAttemptChangesNothing(t *testing.T) {
	for _, succeeds := range []bool{false, true} {
		first, second := make(chan transport.Link), make(chan transport.Link)
		begun := make(chan string)
		w := &wayNet{testNet: newTestNet(t, []uint32{1, 1}, netOptions{rows: 1}, 1, func(c *Config) {
			c.OpenWay = func(_ context.Context, x wire.Way) (transport.Link, error) {
				begun <- x.Address
				from := first
				if x.Address == "z:2" {
					from = second
				}
				if l := <-from; l != nil {
					return l, nil
				}
				return nil, errors.New("unreachable")
			}
		})}
		way := func(address string) {
			w.control(w.ranks[1].rails[0], wire.TypeWay, &wire.Way{Rank: 0, Address: address})
			w.tickQuietly(1)
			if got := <-begun; got != address {
				t.Fatalf("an attempt at %s", got)
			}
		}
		way("z:1")
		fromLower, atHigher := must(memnet.Pipe(memnet.Options{}))
		if !w.ranks[1].set.DirectUp(0, atHigher) {
			t.Fatal("the link of the lower rank is refused")
		}
		fromLower.Close()
		w.until("the link to be lost", func() bool {
			w.settle()
			return len(w.directs(1)) == 0
		})
		way("z:2")
		dials := func() (yes bool) {
			r := w.ranks[1]
			r.locked(func() { yes = r.set.Peer(0).direct.State() == failover.Dialing })
			return yes
		}
		var late transport.Link
		if succeeds {
			late, _ = must(memnet.Pipe(memnet.Options{}))
		}
		first <- late
		for range 100 { // The attempt that is late has returned, and ends soon.
			if !dials() {
				t.Fatal("the second attempt has ended")
			}
			time.Sleep(100 * time.Microsecond)
		}
		here, _ := must(memnet.Pipe(memnet.Options{}))
		second <- here
		w.until("the second link", func() bool { return len(w.directs(1)) == 1 })
		w.ranks[1].locked(func() {
			if w.ranks[1].set.Peer(0).direct.link != here {
				t.Error("another link is in use")
			}
		})
	}
}
