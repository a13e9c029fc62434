package forwarder

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestBeyondCredit checks that a rank that sends more than any credit allows is disconnected, and
// that the stalled rank and other jobs are not.
func TestBeyondCredit(t *testing.T) {
	for name, c := range map[string]struct {
		frame func(i int) []byte
		want  string
	}{
		"payload": {func(i int) []byte { return eager(0, 2, i+1, make([]byte, 10_000)) }, "more than its credit"},
		"control": {func(int) []byte { return header(wire.TypeAck, 0, 2) }, "too many messages"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), func(c *Config) { c.FlowLimit, c.ControlLimit = 200_000, 100_000 })
			other := b.join("other", twoClusters...)
			r := b.join("j", twoClusters...)
			err := r[0].readFull(make([]byte, wire.HeaderLen+wire.CountLen)) // comes by itself
			for i := 0; i < 10_000 && err == nil; i++ {
				err = r[0].write(c.frame(i)) // fails when the forwarder has closed the link
				if n, _ := r[0].link.TryRead(make([]byte, 1)); n > 0 {
					break
				}
			}
			_, body := r[1].expect(wire.TypeAbort)
			a, err := wire.ParseAbort(body)
			if err != nil || a.Rank != 0 || !strings.Contains(a.Reason, c.want) ||
				!strings.Contains(a.Reason, "rank 0 of cluster a on host host-a") {
				t.Errorf("abort %+v, %v", a, err)
			}
			pingPong(t, other[0], other[2])
			for _, x := range r {
				x.link.Close()
			}
			if s := b.ended(); s.OK || s.Job != "j" {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

// TestBadFrames checks that a malformed frame ends the link that it arrives over, with a reason,
// and the job of that link, but nothing else.
func TestBadFrames(t *testing.T) {
	raw := func(change func(*wire.Header)) []byte {
		h := wire.Header{Type: wire.TypeAck, Src: 0, Dst: 2}
		change(&h)
		return h.Append(nil)
	}
	b := start(t, tcpNetwork(), nil)
	other := b.join("other", twoClusters...)
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"spoofed source":               {raw(func(h *wire.Header) { h.Src = 1 }), "source 1 from rank 0"},
		"unknown rank":                 {raw(func(h *wire.Header) { h.Dst = 4 }), "for rank 4 of 4"},
		"no rank":                      {raw(func(h *wire.Header) { h.Dst = wire.Nobody }), "for rank 4294967295"},
		"oversized":                    {raw(func(h *wire.Header) { h.Length = 1 << 30 }), "at most"},
		"wrong length":                 {raw(func(h *wire.Header) { h.Length = 1 }), "want 0 to 0"},
		"unknown type":                 {raw(func(h *wire.Header) { h.Type = 200 }), "unknown frame type"},
		"a second join":                {raw(func(h *wire.Header) { h.Type, h.Length = wire.TypeJoin, 100 }), "Join frame in a running job"},
		"text":                         {[]byte("GET / HTTP/1.1\r\nHost: zip\r\nAccept: */*\r\n\r\n......"), "frame"},
		"malformed after valid frames": {append(eager(0, 2, 1, []byte("good")), bytes.Repeat([]byte{0xff}, 100)...), "frame"},
		"bad abort":                    {append(raw(func(h *wire.Header) { h.Type, h.Length, h.BodySum = wire.TypeAbort, 3, wire.Sum([]byte{1, 2, 3}) }), 1, 2, 3), "short frame"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			r := b.join("bad", twoClusters...)
			r[0].send(c.bytes)
			for _, x := range r {
				if name == "malformed after valid frames" && x.Rank == 2 {
					x.expect(wire.TypeEager)
				}
				_, body := x.expect(wire.TypeAbort)
				a, err := wire.ParseAbort(body)
				if err != nil || a.Rank != 0 || a.Code == 0 || !strings.Contains(a.Reason, c.want) {
					t.Errorf("rank %d is told %+v, %v", x.Rank, a, err)
				}
				x.link.Close()
			}
			if s := b.ended(); s.OK || !strings.Contains(s.Reason, "broke the protocol") || s.BadFrames != 1 {
				t.Errorf("summary %+v", s)
			}
			pingPong(t, other[0], other[3])
		})
	}
}

// TestGarbageInsteadOfJoin checks that strangers who send garbage are refused, and that a job on
// the same forwarder is not affected.
func TestGarbageInsteadOfJoin(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	other := b.join("other", twoClusters...)
	for name, p := range map[string][]byte{
		"text":     []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\nand more\r\n"),
		"zeros":    make([]byte, 1000),
		"eager":    eager(0, 1, 1, nil),
		"huge":     data(0, 1, 0, make([]byte, wire.MaxPayload))[:wire.HeaderLen],
		"bad join": wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin}, &wire.Join{Version: wire.Version}),
		"forged": wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin},
			&wire.Join{Version: wire.Version, Job: "other", Cluster: "a", Layout: twoClusters}),
		"incomplete header": make([]byte, 1),
		"bye":               header(wire.TypeBye, 0, 0),
		"join twice":        bytes.Repeat(wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin}, &wire.Join{Version: 77}), 2),
	} {
		l, err := b.dialer.Dial(context.Background(), b.ln.Addr())
		if err != nil {
			t.Fatal(err)
		}
		x := &rank{t: t, link: l}
		x.expect(wire.TypeChallenge)
		x.send(p)
		if name != "incomplete header" {
			_, body := x.expect(wire.TypeRefuse)
			if f, err := wire.ParseRefuse(body); err != nil || f.Reason == "" {
				t.Errorf("%s: refused with %+v, %v", name, f, err)
			}
		}
		l.Close()
	}
	pingPong(t, other[0], other[2])
	for _, x := range other {
		x.bye()
	}
	b.ended()
	b.settled()
}

// TestUnreadAnswersTakeTheJobsMemory checks that answers to pings which a rank does not read are
// charged to its job, so that the rank is no longer read once the job's share is used up.
func TestUnreadAnswersTakeTheJobsMemory(t *testing.T) {
	const share = 64 << 10
	b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), func(c *Config) { c.JobMemory = share })
	r := b.join("j", twoClusters...)
	var pings atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ping := header(wire.TypePing, wire.Nobody, wire.Nobody)
		for r[0].write(ping) == nil && pings.Add(1)*int64(len(ping)) < 8*share {
		}
	}()
	for seen, since := int64(-1), time.Now(); time.Since(since) < time.Second; time.Sleep(time.Millisecond) {
		if n := pings.Load(); n != seen { // the rank is still read
			seen, since = n, time.Now()
		}
	}
	select {
	case <-ended:
		t.Errorf("all of %d pings are read", pings.Load())
	default:
	}
	if used := b.f.memory.Used(); used < share/2 || used > 2*share {
		t.Errorf("the answers to %d pings are charged with %d bytes", pings.Load(), used)
	}
	for _, x := range r {
		x.link.Close()
	}
	b.ended()
	b.settled()
}

// TestPingFlood checks that the number of unread answers is bounded.
func TestPingFlood(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{Buffer: 1000}), func(c *Config) { c.ControlLimit = 20_000; c.Linger = 200 * time.Millisecond })
	r := b.join("j", twoClusters...)
	go func() {
		pings := bytes.Repeat(header(wire.TypePing, wire.Nobody, wire.Nobody), 30)
		for r[0].write(pings) == nil {
		}
	}()
	_, body := r[1].expect(wire.TypeAbort)
	if a, err := wire.ParseAbort(body); err != nil || a.Rank != 0 || !strings.Contains(a.Reason,
		"does not read the answers") {
		t.Errorf("abort %+v, %v", a, err)
	}
	for _, x := range r[1:] {
		x.link.Close()
	}
	b.ended()
	b.settled()
}
