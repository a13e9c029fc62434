package forwarder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestLostLinkEndsTheJob checks that a link that ends without Bye ends its job, and that all ranks
// are told which rank it was.
func TestLostLinkEndsTheJob(t *testing.T) {
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := start(t, n, nil)
			r := b.join("j", twoClusters...)
			r[3].link.Close()
			for _, x := range r[:3] {
				_, body := x.expect(wire.TypeAbort)
				a, err := wire.ParseAbort(body)
				if err != nil || a.Rank != 3 || a.Code != 1 || !strings.Contains(a.Reason,
					"virtual rank 3 (rank 1 of cluster b on host host-b") {
					t.Errorf("abort %+v, %v", a, err)
				}
				x.link.Close()
			}
			if s := b.ended(); s.OK || s.Code != 1 || !strings.Contains(s.Reason, "rank 1 of cluster b") {
				t.Errorf("summary %+v", s)
			}
			b.settled()
		})
	}
}

// TestAbort checks that the code of MPI_Abort reaches all ranks, ahead of all queued frames.
func TestAbort(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	for i := range 25 { // more than sockets take, and not so much that rank 0 is not read any more
		r[0].send(data(0, 2, uint64(i), make([]byte, 200_000)))
	}
	r[0].send(wire.AppendFrame(nil, wire.Header{Type: wire.TypeAbort, Src: 0, Dst: wire.Nobody},
		&wire.Abort{Code: 42, Rank: 0, Reason: "MPI_Abort", By: wire.Nobody}))
	for _, x := range r {
		for {
			h, body, err := x.recv()
			if err != nil {
				t.Fatalf("rank %d: %v", x.Rank, err)
			}
			// a Pong says that the forwarder does not read from the rank now
			if h.Type == wire.TypeData || h.Type == wire.TypePong {
				continue
			}
			a, err := wire.ParseAbort(body)
			if err != nil || a.Code != 42 || a.Rank != 0 || !strings.Contains(a.Reason,
				"MPI_Abort, by virtual rank 0 (rank 0 of cluster a on host ") ||
				!strings.HasSuffix(a.Reason, " with code 42") {
				t.Errorf("rank %d: %v %+v, %v", x.Rank, h.Type, a, err)
			}
			break
		}
		x.link.Close()
	}
	if s := b.ended(); s.Code != 42 || s.OK {
		t.Errorf("summary %+v", s)
	}
}

// TestLingerEnds checks that ranks that do not close after Abort do not keep the job for ever.
func TestLingerEnds(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Linger = 100 * time.Millisecond })
	r := b.join("j", twoClusters...)
	r[0].link.Close()
	if s := b.ended(); s.OK {
		t.Errorf("summary %+v", s)
	}
	b.settled()
	r[1].expect(wire.TypeAbort)
	r[1].expectEOF()
}

// TestPeerWithoutPongIsDead checks that a peer that does not answer Pings is dead, and that an idle
// one that answers is not.
func TestPeerWithoutPongIsDead(t *testing.T) {
	now := new(shiftedClock)
	b := start(t, tcpNetwork(), func(c *Config) { c.Loops, c.PingInterval, c.PeerTimeout, c.clock = 1, 10*time.Second, time.Minute, now })
	r := b.join("j", twoClusters...)
	// all links are silent for that much longer
	idle := func(d time.Duration) { now.by.Add(int64(d)) }
	gets := func(x *rank, want wire.Type) {
		t.Helper()
		if h, body, err := x.recv(); err != nil || h.Type != want {
			t.Fatalf("rank %d gets %v %q, %v, want %v", x.Rank, h.Type, body, err, want)
		}
	}
	answers := func(ranks ...*rank) {
		t.Helper()
		for _, x := range ranks {
			gets(x, wire.TypePing)
			x.send(header(wire.TypePong, wire.Nobody, wire.Nobody))
			x.send(header(wire.TypePing, wire.Nobody, wire.Nobody))
			gets(x, wire.TypePong) // now the forwarder has received it
		}
	}
	idle(10 * time.Second)
	answers(r[:3]...)
	gets(r[3], wire.TypePing)
	idle(30 * time.Second)
	answers(r[:3]...) // and no rank is dead
	idle(30 * time.Second)
	for _, x := range r[:3] {
		_, body := x.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != 3 ||
			!strings.Contains(a.Reason, "no answer for 1m0s") {
			t.Errorf("rank %d: %+v, %v", x.Rank, a, err)
		}
	}
}

func TestPingIsAnswered(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	r[0].send(header(wire.TypePing, wire.Nobody, wire.Nobody))
	r[0].expect(wire.TypePong)
}

// TestNoJobOpensDuringShutdown checks that a Join which was verified before the shutdown opens no
// job after it has begun, because nothing would end that job.
func TestNoJobOpensDuringShutdown(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	b.f.mu.Lock()
	b.f.stopping = true
	b.f.mu.Unlock()
	join := wire.Join{Job: "j", Cluster: "a", Layout: twoClusters}
	r, refused := b.f.open(nil, &handshake.Event{Join: &join}, 0)
	if r != nil || refused == nil || refused.Code != wire.RefuseShutdown {
		t.Errorf("job %v, refused %v", r, refused)
	}
}

// TestShutdown checks that all ranks are told when the forwarder stops.
func TestShutdown(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	waits := make(chan error, 1)
	go func() {
		_, err := b.dial(identity("k", "a", 0, twoClusters...))
		waits <- err
	}()
	for len(b.f.Status().Jobs) < 2 {
		time.Sleep(time.Millisecond)
	}
	stopped := make(chan bool)
	go func() {
		b.stop()
		close(stopped)
	}()
	for _, x := range r {
		_, body := x.expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != wire.Nobody ||
			!strings.Contains(a.Reason, "shutting down") {
			t.Errorf("abort %+v, %v", a, err)
		}
		x.link.Close()
	}
	var refused *handshake.Refused
	if err := <-waits; !errors.As(err, &refused) || refused.Code != wire.RefuseShutdown {
		t.Errorf("waiting rank: %v", err)
	}
	<-stopped
	if _, err := b.dialer.Dial(context.Background(), b.ln.Addr()); err == nil {
		t.Error("still listening")
	}
}

// TestLateFrames checks that credit and acknowledgements for a rank that has sent Bye are dropped,
// and that Bye waits for the queued frames.
func TestLateFrames(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Buffer: 500}), nil)
	r := b.join("j", twoClusters...)
	for i := range 20 {
		r[0].send(eager(0, 2, i+1, pattern(3000, i)))
	}
	pingPong(t, r[0], r[3]) // now the above is queued
	r[2].send(header(wire.TypeBye, wire.Nobody, wire.Nobody))
	for range 20 {
		r[2].expect(wire.TypeEager)
	}
	r[2].expect(wire.TypeByeAck)
	r[0].send(header(wire.TypeAck, 0, 2))
	pingPong(t, r[0], r[3])
	r[2].link.Close()
	for _, x := range []*rank{r[0], r[1], r[3]} {
		x.bye()
	}
	if s := b.ended(); !s.OK {
		t.Errorf("summary %+v", s)
	}
}
