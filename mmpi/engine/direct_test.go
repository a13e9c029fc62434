package engine

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// dual joins a job through n forwarders, in which the ranks of other clusters listen for direct
// links from those of one cluster.
func dual(t testing.TB, n int, cluster string, sizes ...int) ([]*Engine, []*forwarder.Forwarder) {
	t.Helper()
	job := jobenv.Job{ID: "test", Secret: "s", Timeout: 20 * time.Second,
		Dual: []jobenv.Dual{{Cluster: cluster, Address: "127.0.0.1:0"}}, DirectAllow: "127.0.0.1"}
	var all []*forwarder.Forwarder
	for range n {
		f, addr := serve(t)
		all, job.Forwarders = append(all, f), append(job.Forwarders, addr)
	}
	engines := joinJob(t, job, sizes...)
	for _, f := range all {
		full(t, f, len(engines))
	}
	ready(t, engines)
	return engines, all
}

// relayed returns the payload, in bytes, that the forwarders carried from one cluster to another in
// their only job.
func relayed(t testing.TB, all []*forwarder.Forwarder, from, to string) (n uint64) {
	t.Helper()
	for _, f := range all {
		for end := time.Now().Add(10 * time.Second); len(f.Status().Past) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		past := f.Status().Past
		if len(past) != 1 || !past[0].OK {
			t.Fatalf("jobs that ended: %+v", past)
		}
		for _, d := range past[0].Traffic {
			if d.From == from && d.To == to {
				n += d.PayloadBytes
			}
		}
	}
	return n
}

// TestDirectPairsBypassForwarders checks that the payload of pairs with a direct link, those with
// cluster b, does not go through the forwarders, and that of all other pairs does.
func TestDirectPairsBypassForwarders(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			engines, all := dual(t, n, "b", 2, 2, 1)
			randomTraffic(t, engines, 1)
			for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"b", "c"}, {"c", "b"}} {
				if n := relayed(t, all, pair[0], pair[1]); n != 0 {
					t.Errorf("%d bytes of payload from %s to %s through forwarders", n, pair[0], pair[1])
				}
			}
			for _, pair := range [][2]string{{"a", "c"}, {"c", "a"}} {
				if n := relayed(t, all, pair[0], pair[1]); n < 1<<18 {
					t.Errorf("only %d bytes of payload from %s to %s through forwarders", n, pair[0], pair[1])
				}
			}
		})
	}
}

// TestPairOfListenersMakesOneLink checks that there is one direct link for each pair if both ends
// listen.
func TestPairOfListenersMakesOneLink(t *testing.T) {
	engines, all := dual(t, 1, "", 1, 2)
	for _, e := range engines {
		for _, r := range e.Rails()[1:] {
			if r.Dials != (e.world.Rank > r.Peer) {
				t.Errorf("rank %d dials rank %d: %v", e.world.Rank, r.Peer, r.Dials)
			}
		}
	}
	randomTraffic(t, engines, 2)
	if n := relayed(t, all, "a", "b") + relayed(t, all, "b", "a"); n != 0 {
		t.Errorf("%d bytes through the forwarder", n)
	}
}

// sever ends one direct link in the middle of its traffic.
func sever(e *Engine, r *rand.Rand) {
	e.lock() // so that the descriptor stays this link's
	defer e.unlock()
	d := slices.DeleteFunc(e.links.Status(), func(s link.Status) bool { return s.Peer < 0 })
	if len(d) > 0 {
		if l := d[r.IntN(len(d))]; l.FD >= 0 {
			_ = unix.Shutdown(l.FD, unix.SHUT_RDWR)
		}
	}
}

// TestCutDirectLinksLoseNothing checks that no message is lost, doubled or put out of order while
// direct links are cut again and again, and that the links come back.
func TestCutDirectLinksLoseNothing(t *testing.T) {
	for _, n := range []int{1, 2} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(n, seed), func(t *testing.T) {
				engines, all := dual(t, n, "b", 2, 2, 1)
				cuts := exchangeWhileCut(t, engines, seed, func(r *rand.Rand) {
					sever(engines[r.IntN(len(engines))], r)
					if r.IntN(2) == 0 {
						ready(t, engines)
					}
				})
				t.Logf("%d cuts; %d bytes from a to b through forwarders meanwhile", cuts, relayed(t, all, "a", "b"))
			})
		}
	}
}

// TestStreamMovesFromDirectLinkToForwarder checks that a stream goes on through the forwarder if
// the direct link is lost for good in the middle.
func TestStreamMovesFromDirectLinkToForwarder(t *testing.T) {
	engines, all := dual(t, 1, "b", 1, 1)
	for _, e := range engines {
		e.lock()
		e.links.StopRedial(1 - e.world.Rank)
		e.unlock()
	}
	finishAll(t, engines, func(e *Engine) error {
		return stream(e, spanAll(t, e), 20, 3<<20, func(i int) {
			if i == 10 && e.world.Rank == 0 {
				sever(e, rand.New(rand.NewPCG(1, 1)))
			}
		})
	})
	if n := relayed(t, all, "a", "b"); n < 8*3<<20 || n > 12*3<<20 {
		t.Errorf("%d bytes from a to b through the forwarder; want about 9 of 20 messages of 3 MiB", n)
	}
}

// TestDirectLinkRejectsStrangers checks that a connection without the job's secret is closed, with
// any first bytes, and that the job goes on.
func TestDirectLinkRejectsStrangers(t *testing.T) {
	engines, all := dual(t, 1, "b", 1, 1)
	addr := directAddress(t, engines[1])
	for name, say := range map[string][]byte{
		"silence":     nil,
		"web browser": []byte("GET / HTTP/1.1\r\n\r\n"),
		"no proof": wire.AppendFrame(nil, wire.Header{Type: wire.TypeMeet, Src: wire.Nobody, Dst: wire.Nobody},
			&wire.Meet{From: 1}),
		"cut-off frame": wire.AppendFrame(nil, wire.Header{Type: wire.TypeLayout, Src: wire.Nobody, Dst: wire.Nobody},
			&wire.Refuse{Reason: "x"})[:wire.HeaderLen],
		"frame without handshake": wire.AppendFrame(nil, wire.Header{Type: wire.TypeAck, Src: 1, Dst: 0}, nil),
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write(say)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		b := make([]byte, 4096)
		for err == nil {
			_, err = c.Read(b)
		}
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s: the connection stays", name)
		}
	}
	randomTraffic(t, engines, 3)
	if n := relayed(t, all, "a", "b"); n != 0 {
		t.Errorf("%d bytes through the forwarder", n)
	}
}

// directAddress returns the address at which a rank's only direct link was dialled.
func directAddress(t testing.TB, e *Engine) string {
	sa, err := unix.Getpeername(e.Rails()[1].FD)
	if err != nil {
		t.Fatal(err)
	}
	a := sa.(*unix.SockaddrInet4)
	return fmt.Sprintf("%s:%d", net.IP(a.Addr[:]), a.Port)
}

// TestForgedSourceEndsDirectLink checks that a frame over the direct link of one rank that claims
// to come from another ends that link and is not used, and that the job goes on.
func TestForgedSourceEndsDirectLink(t *testing.T) {
	engines, _ := dual(t, 1, "b", 1, 1, 1)
	e := engines[1] // of b: linked with 0 and 2
	fd := -1
	e.lock()
	for _, r := range e.links.Status() {
		if r.Peer == 0 {
			fd = r.FD
			if _, err := unix.Write(r.FD, wire.AppendFrame(nil, wire.Header{Type: wire.TypeAck, Src: 2, Dst: 0},
				nil)); err != nil {
				t.Error(err)
			}
		}
	}
	e.unlock()
	if fd < 0 {
		t.Fatal("no direct link")
	}
	lost := func() int {
		engines[0].lock()
		defer engines[0].unlock()
		n := 0
		for _, r := range engines[0].links.Status() {
			n += r.Losses
		}
		return n
	}
	for end := time.Now().Add(10 * time.Second); lost() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("taken")
		}
	}
	randomTraffic(t, engines, 3)
}
