package forwarder

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

func TestRefusedJoins(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Jobs = []string{"j"} })
	waiting := make(chan error, 1)
	go func() {
		_, err := b.dial(identity("j", "a", 0, twoClusters...))
		waiting <- err
	}()
	for len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	for name, c := range map[string]struct {
		change func(*handshake.Identity)
		code   wire.RefuseCode
	}{
		"job":   {func(i *handshake.Identity) { i.Job = "k" }, wire.RefuseJob},
		"taken": {func(i *handshake.Identity) { i.Cluster, i.Rank, i.Instance = "a", 0, 2 }, wire.RefuseTaken},
	} {
		id := identity("j", "b", 1, twoClusters...)
		c.change(&id)
		_, err := b.dial(id)
		var r *handshake.Refused
		if !errors.As(err, &r) || r.Code != c.code || !r.Remote || !strings.Contains(err.Error(), b.ln.Addr()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := b.f.Status().Jobs[0]; s.Refused == "" {
		t.Errorf("the status does not tell of them: %+v", s)
	}
	// Of these ranks the job remembers only the refusals.
	last := identity("j", "a", 1, twoClusters...)
	last.TimeoutMS = 100
	_, err := b.dial(last)
	for _, err := range []error{err, <-waiting} {
		var r *handshake.Refused
		if !errors.As(err, &r) || r.Code != wire.RefuseTimeout || !strings.Contains(r.Reason,
			"missing: cluster b (2 ranks); refused: ") ||
			!strings.Contains(r.Reason, `1 rank of cluster "a" (rank taken)`) {
			t.Errorf("at the time-out: %v", err)
		}
	}
	b.settled()
	if len(b.ends) != 0 {
		t.Error("a job that never ran has a summary")
	}
}

// TestSameID checks that a user who takes a job's id with another secret, even first, gets a
// separate job that neither delays nor ends the other. Waiting ranks are told that it exists.
func TestSameID(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	stranger := identity("j", "a", 0, twoClusters...)
	stranger.Secret, stranger.Layout = "x", []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}}
	left := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := b.dialContext(ctx, stranger)
		left <- err
	}()
	for len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	r := b.join("j", twoClusters...)
	pingPong(t, r[0], r[3])
	s := b.f.Status()
	if len(s.Jobs) != 2 || s.Jobs[0].State != "gathering" || s.Jobs[1].State != "running" ||
		s.Jobs[0].Key == s.Jobs[1].Key {
		t.Errorf("the status has %+v", s.Jobs)
	}
	// While it runs, another user takes its id, and waits for ranks of the same secret.
	alone := identity("j", "b", 1, twoClusters...)
	alone.Secret, alone.TimeoutMS = "y", 100
	_, err := b.dial(alone)
	var refused *handshake.Refused
	if !errors.As(err, &refused) || refused.Code != wire.RefuseTimeout ||
		!strings.Contains(refused.Reason, "another secret wait under the same job id") {
		t.Errorf("a process with a third secret: %v", err)
	}
	pingPong(t, r[1], r[2])
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestTickets checks that only ranks with valid tickets may join, and that a rank that returns to a
// running job needs the job's key but no ticket that is still valid.
func TestTickets(t *testing.T) {
	var expired atomic.Bool
	b := start(t, tcpNetwork(), func(c *Config) {
		c.Ticket = func(j *wire.Join) (string, error) {
			if j.Ticket != "good" || expired.Load() {
				return "", errors.New("no ticket of this site")
			}
			return "alice", nil
		}
	})
	ofTwoRails := func(rank int, ticket string) handshake.Identity {
		id := identity("j", "a", rank, wire.Cluster{Name: "a", Size: 2})
		id.Rails, id.Instance, id.Ticket = 2, uint64(rank+1), ticket
		return id
	}
	_, err := b.dial(ofTwoRails(0, "bad"))
	var refused *handshake.Refused
	if !errors.As(err, &refused) || refused.Code != wire.RefuseTicket ||
		!strings.Contains(refused.Reason, "no ticket of this site") {
		t.Errorf("without one: %v", err)
	}
	first := make(chan *rank, 1)
	go func() {
		r, err := b.dial(ofTwoRails(0, "good"))
		if err != nil {
			t.Error(err)
		}
		first <- r
	}()
	if _, err := b.dial(ofTwoRails(1, "good")); err != nil {
		t.Fatal(err)
	}
	r := <-first
	if s := b.f.Status().Jobs; len(s) != 1 || s[0].User != "alice" {
		t.Errorf("the status has %+v", s)
	}
	expired.Store(true)
	r.link.Close()
	for _, who := range []struct {
		what string
		id   handshake.Identity
		good bool
	}{
		{"with another secret", func() handshake.Identity { id := ofTwoRails(0, "good"); id.Secret = "x"; return id }(), false},
		{"another process with the secret", func() handshake.Identity { id := ofTwoRails(0, "good"); id.Instance = 9; return id }(), false},
		{"the rank itself", ofTwoRails(0, "good"), true},
	} {
		if _, err := b.dial(who.id); (err == nil) != who.good {
			t.Errorf("%s comes back: %v", who.what, err)
		}
	}
}

// TestMismatchedRankEndsGathering checks that a job ends without waiting for the time-out when a
// process with the job's secret was started for another layout, data model or settings.
func TestMismatchedRankEndsGathering(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*handshake.Identity)
		code   wire.RefuseCode
	}{
		"layout":   {func(i *handshake.Identity) { i.Layout = []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}} }, wire.RefuseLayout},
		"model":    {func(i *handshake.Identity) { i.Facts = 2 }, wire.RefuseModel},
		"settings": {func(i *handshake.Identity) { i.Settings = "X=1" }, wire.RefuseSettings},
		"protocol": {func(i *handshake.Identity) { i.Protocol = Classic }, wire.RefuseSettings},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, tcpNetwork(), nil)
			errs := make(chan error)
			for i := range 2 {
				go func() {
					_, err := b.dial(identity("j", "a", i, twoClusters...))
					errs <- err
				}()
			}
			for s := b.f.Status().Jobs; len(s) == 0 || s[0].Joined < 2; s = b.f.Status().Jobs {
				time.Sleep(time.Millisecond)
			}
			id := identity("j", "b", 1, twoClusters...)
			c.change(&id)
			_, err := b.dial(id)
			for _, err := range []error{err, <-errs, <-errs} {
				var r *handshake.Refused
				if !errors.As(err, &r) || r.Code != c.code {
					t.Errorf("got %v, want %v", err, c.code)
				}
			}
			b.settled()
			b.join("j", twoClusters...) // its id is free again
		})
	}
}

// TestShortestTimeoutRefusesAllRanks checks that the shortest time-out counts for all ranks, and
// that all are told.
func TestShortestTimeoutRefusesAllRanks(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	errs := make(chan error)
	for i := range 2 {
		go func() {
			id := identity("j", "a", i, twoClusters...)
			if i == 1 {
				id.TimeoutMS = 300
			}
			_, err := b.dial(id)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "missing: cluster b (2 ranks)") {
			t.Errorf("got %v", err)
		}
	}
	b.settled()
	// The job id is free again.
	r := b.join("j", twoClusters...)
	pingPong(t, r[0], r[3])
}

// TestRankLeavesBeforeStart checks that a rank that leaves before the start frees its place, so
// that a half may be started again.
func TestRankLeavesBeforeStart(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := b.dialContext(ctx, identity("j", "a", 0, twoClusters...))
		gone <- err
	}()
	for len(b.f.Status().Jobs) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled join: %v", err)
	}
	b.settled()
	b.join("j", twoClusters...)
}

// TestClientWithoutJoinIsDisconnected checks that a client that connects and sends nothing is
// disconnected.
func TestClientWithoutJoinIsDisconnected(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.JoinTimeout = 100 * time.Millisecond })
	l, err := b.dialer.Dial(context.Background(), b.ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x := &rank{t: t, link: l}
	x.expect(wire.TypeChallenge)
	if _, body := x.expect(wire.TypeRefuse); !strings.Contains(string(body), "no Join within 100ms") {
		t.Errorf("refused with %q", body)
	}
}

// TestTwoJobs checks two jobs at the same time with the same cluster names and different secrets.
func TestTwoJobs(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Partial: 3}), nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := b.join(name(i), twoClusters...)
			for range 100 {
				pingPong(t, r[i%2], r[2+i/2])
			}
			for _, x := range r {
				x.bye()
			}
		})
	}
	wg.Wait()
	for range 4 {
		s := b.ended()
		if !s.OK || s.Traffic[0].Messages != 100 || s.Traffic[1].Messages != 100 || s.Traffic[0].PayloadBytes != 400 {
			t.Errorf("summary %+v", s)
		}
	}
	b.settled()
}

// slowLayouts is a network in which a Layout takes a while to write.
type slowLayouts struct{ transport.Listener }

func (s slowLayouts) Accept() (transport.Link, error) {
	l, err := s.Listener.Accept()
	return slowLayout{l}, err
}

type slowLayout struct{ transport.Link }

func (s slowLayout) TryWrite(bufs ...[]byte) (int, error) {
	if wire.Type(bufs[0][0]) == wire.TypeLayout {
		time.Sleep(5 * time.Millisecond)
	}
	return s.Link.TryWrite(bufs...)
}

// slowStarts starts jobs of ranks processes one after the other on a forwarder whose Layouts take a
// while to write. Rank 0, the only one of its cluster, usually has its own before the others have
// theirs. play is each rank's part.
func slowStarts(t *testing.T, ranks int, play func(i int, x *rank), end func(Summary)) {
	b := start(t, tcpNetwork(), func(c *Config) {
		c.Loops = 4
		c.Listeners[0] = slowLayouts{c.Listeners[0]}
	})
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: uint32(ranks - 1)}}
	for round := range 5 {
		var wg sync.WaitGroup
		for i := range ranks {
			id := identity(name(round), "b", i-1, layout...)
			if i == 0 {
				id = identity(name(round), "a", 0, layout...)
			}
			wg.Go(func() {
				x, err := b.dial(id)
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
					return
				}
				play(i, x)
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		end(b.ended())
	}
}

// TestNoFrameBeforeLayout checks that each rank gets its Layout first, although the first rank that
// is told of the job's start sends to all others at once.
func TestNoFrameBeforeLayout(t *testing.T) {
	const ranks = 8
	slowStarts(t, ranks, func(i int, x *rank) {
		if i == 0 {
			for k := 1; k < ranks; k++ {
				x.send(eager(0, k, 1, nil))
			}
		} else if h, _, err := x.recv(); err != nil || h.Type != wire.TypeEager {
			t.Errorf("rank %d gets %v, %v", i, h.Type, err)
		}
		x.bye()
	}, func(s Summary) {
		if !s.OK || s.Traffic[0].Messages != ranks-1 {
			t.Errorf("summary %+v", s)
		}
	})
}

// TestBadFrameAtStart checks that a malformed frame from a rank that has its Layout before the
// others have theirs ends the job all the same.
func TestBadFrameAtStart(t *testing.T) {
	slowStarts(t, 8, func(i int, x *rank) {
		if i == 0 {
			x.send(bytes.Repeat([]byte{200}, wire.HeaderLen))
		}
		if h, _, err := x.recv(); err != nil || h.Type != wire.TypeAbort {
			t.Errorf("rank %d gets %v, %v", i, h.Type, err)
		}
		x.link.Close()
	}, func(s Summary) {
		if s.OK || !strings.Contains(s.Reason, "broke the protocol") {
			t.Errorf("summary %+v", s)
		}
	})
}
