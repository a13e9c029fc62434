package forwarder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// dual returns an identity that joins two forwarders.
func dual(cluster string, rank int) handshake.Identity {
	id := identity("dual", cluster, rank, twoClusters...)
	id.Rails, id.Instance = 2, uint64(1000+len(cluster)*10+rank)+uint64(cluster[0])<<32
	return id
}

func joinDual(b *bench) []*rank {
	type result struct {
		r   *rank
		err error
	}
	results := make(chan result)
	for _, c := range twoClusters {
		for i := range int(c.Size) {
			go func() {
				r, err := b.dial(dual(c.Name, i))
				results <- result{r, err}
			}()
		}
	}
	ranks := make([]*rank, 4)
	for range 4 {
		r := <-results
		if r.err != nil {
			b.t.Fatal(r.err)
		}
		ranks[r.r.Rank] = r.r
	}
	return ranks
}

func (r *rank) expectState(of uint32, up bool) wire.RailState {
	r.t.Helper()
	_, body := r.expect(wire.TypeRailState)
	s, err := wire.ParseRailState(body)
	if err != nil || s.Rank != of || s.Up != up {
		r.t.Fatalf("rank %d: %+v, %v; want rank %d up %v", r.Rank, s, err, of, up)
	}
	return s
}

// TestRankComesBack checks a lost link of a job with several forwarders: all ranks are told, the
// job goes on, and the same process (no other) may return.
func TestRankComesBack(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := joinDual(b)
	r[3].link.Close()
	for _, x := range r[:3] {
		if s := x.expectState(3, false); !strings.Contains(s.Reason, "virtual rank 3 (rank 1 of cluster b") {
			t.Errorf("reason %q", s.Reason)
		}
	}
	r[0].send(eager(0, 3, 1, pattern(10, 0))) // dropped
	r[0].send(eager(0, 2, 1, pattern(10, 1)))
	if h, _ := r[2].expect(wire.TypeEager); h.Src != 0 {
		t.Fatalf("frame from %d", h.Src)
	}
	r[2].link.Close()
	r[0].expectState(2, false)
	r[1].expectState(2, false)
	other := dual("b", 1)
	other.Instance++
	var refused *handshake.Refused
	if _, err := b.dial(other); !errors.As(err, &refused) || refused.Code != wire.RefuseTaken {
		t.Fatalf("another process in the place of a lost one: %v", err)
	}
	back, err := b.dial(dual("b", 1))
	if err != nil {
		t.Fatal(err)
	}
	if back.Rank != 3 {
		t.Fatalf("back as rank %d", back.Rank)
	}
	back.expectState(2, false) // rank 2 was lost in between
	r[0].expectState(3, true)
	r[0].send(eager(0, 3, 2, pattern(10, 2)))
	if h, _ := back.expect(wire.TypeEager); h.Seq != 2 {
		t.Fatalf("frame %d", h.Seq)
	}
	// It may also come before the forwarder has missed it.
	again, err := b.dial(dual("b", 1))
	if err != nil {
		t.Fatal(err)
	}
	back.expectEOF()
	again.expectState(2, false)
	r[0].expectState(3, false)
	r[0].expectState(3, true)
	r[0].bye()
	if _, err := b.dial(dual("a", 0)); !errors.As(err, &refused) || refused.Code != wire.RefuseTaken {
		t.Fatalf("came back after Bye: %v", err)
	}
	for _, up := range []bool{true, false, true} {
		r[1].expectState(3, up)
	}
	r[1].bye()
	again.bye()
	if s := b.ended(); s.OK || !strings.Contains(s.Reason, "virtual rank 2") {
		t.Errorf("rank 2 has not come back, but the job ended with %+v", s)
	}
}

// TestBadFrameEndsLink checks that a bad frame ends the link that it arrives over, and that its
// sender is told why, because a bad line may have caused it. Too many end the job.
func TestBadFrameEndsLink(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := joinDual(b)
	x := r[1]
	for n := 1; ; n++ {
		x.send(eager(0, 2, 1, nil)) // not its own source
		if n > job.MaxBad {
			break
		}
		_, body := x.expect(wire.TypeNotice)
		if m, err := wire.ParseNotice(body); err != nil || !strings.Contains(m.Text, "source 0 from rank 1") {
			t.Fatalf("told %+v, %v", m, err)
		}
		x.link.Close()
		for _, i := range []int{0, 2, 3} {
			r[i].expectState(1, false)
		}
		back, err := b.dial(dual("a", 1))
		if err != nil {
			t.Fatal(err)
		}
		x = back
		for _, i := range []int{0, 2, 3} {
			r[i].expectState(1, true)
		}
	}
	for _, i := range []int{0, 2, 3} {
		r[i].expect(wire.TypeAbort)
	}
}

// TestShutdownReleases checks that a forwarder that stops sends Bye, not Abort, to a job that has
// other forwarders.
func TestShutdownReleases(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Linger = 200 * time.Millisecond })
	r := joinDual(b)
	go b.stop()
	for _, x := range r {
		x.expect(wire.TypeBye)
		x.link.Close()
	}
}

// TestRailsDisagree checks that all ranks must name the same number of forwarders.
func TestRailsDisagree(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go b.dialContext(ctx, dual("a", 0))
	for b.f.Status().Jobs == nil || len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	id := dual("b", 0)
	id.Rails = 1
	var refused *handshake.Refused
	if _, err := b.dial(id); !errors.As(err, &refused) || refused.Code != wire.RefuseLayout ||
		!strings.Contains(refused.Reason, "--zipper") {
		t.Fatalf("%v", err)
	}
}
