package forwarder

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

func cts(src, dst int, sender, bytes uint64) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: wire.TypeCTS, Src: uint32(src), Dst: uint32(dst)},
		&wire.CTS{Sender: sender, Receiver: 1, Bytes: bytes})
}

func fin(src, dst int, sender uint64) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: wire.TypeFin, Src: uint32(src), Dst: uint32(dst)},
		&wire.Fin{Sender: sender})
}

func (b *bench) dialClassic(id handshake.Identity) (*rank, error) {
	id.Protocol = Classic
	return b.dial(id)
}

// joinClassic joins both ranks of a job of two clusters.
func (b *bench) joinClassic(layout []wire.Cluster) (r0, r1 *rank) {
	b.t.Helper()
	first := make(chan *rank)
	go func() {
		r, err := b.dialClassic(identity("j", "a", 0, layout...))
		if err != nil {
			b.t.Error(err)
		}
		first <- r
	}()
	r1, err := b.dialClassic(identity("j", "b", 0, layout...))
	if err != nil {
		b.t.Fatal(err)
	}
	return <-first, r1
}

// TestClassic checks that a message is stored whole before it is forwarded, and that a second
// transfer, even in the other direction, waits for the end of the first.
func TestClassic(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{}), func(c *Config) { c.Protocol = Classic })
	if b.f.cfg.Loops != 1 {
		t.Errorf("%d loops", b.f.cfg.Loops)
	}
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	if _, err := b.dial(identity("plain", "a", 0, layout...)); err == nil ||
		!strings.Contains(err.Error(), "protocol") {
		t.Errorf("a job without the protocol: %v", err)
	}
	r0, r1 := b.joinClassic(layout)
	// Rank 1 lets rank 0 send 20 bytes, rank 0 lets rank 1 send 10.
	r1.send(cts(1, 0, 7, 20))
	r0.expect(wire.TypeCTS)
	r0.send(cts(0, 1, 9, 10))
	r0.send(data(0, 1, 0, pattern(15, 1)))
	// A frame sent behind both arrives first: the CTS and the half message wait.
	r0.send(eager(0, 1, 1, nil))
	r1.expect(wire.TypeEager)
	r0.send(data(0, 1, 15, pattern(5, 2)))
	if _, p := r1.expect(wire.TypeData); !bytes.Equal(p[wire.DataLen:], pattern(15, 1)) {
		t.Error("first piece changed")
	}
	if _, p := r1.expect(wire.TypeData); !bytes.Equal(p[wire.DataLen:], pattern(5, 2)) {
		t.Error("second piece changed")
	}
	r0.send(eager(0, 1, 2, nil))
	r1.expect(wire.TypeEager) // still no CTS: the first transfer is not over
	r1.send(fin(1, 0, 7))
	r0.expect(wire.TypeFin)
	r1.expect(wire.TypeCTS)
	r1.send(data(1, 0, 0, pattern(10, 3)))
	r0.expect(wire.TypeData)
	r0.send(fin(0, 1, 9))
	r1.expect(wire.TypeFin)
	r0.bye()
	r1.bye()
	if s := b.ended(); !s.OK || s.Traffic[0].PayloadBytes != 20 || s.Traffic[1].PayloadBytes != 10 {
		t.Errorf("%+v", s)
	}
}

// TestClassicFlood checks that a rank that starts more and more transfers and ends none is
// disconnected before their list fills the memory.
func TestClassicFlood(t *testing.T) {
	b := start(t, memoryNetwork(memnet.Options{}), func(c *Config) { c.Protocol, c.ControlLimit = Classic, 10_000 })
	r0, r1 := b.joinClassic([]wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}})
	frame := cts(1, 0, 7, 20)
	for range 10_000/len(frame) + 1 { // the first does not wait
		r1.send(frame)
	}
	r1.send(header(wire.TypePing, wire.Nobody, wire.Nobody))
	r1.expect(wire.TypePong)
	r1.send(frame)
	r0.expect(wire.TypeCTS)
	_, body := r0.expect(wire.TypeAbort)
	if a, err := wire.ParseAbort(body); err != nil || a.Rank != 1 || !strings.Contains(a.Reason,
		"too many transfers wait") {
		t.Errorf("%+v, %v", a, err)
	}
	r0.link.Close()
	r1.link.Close()
	if s := b.ended(); s.OK {
		t.Errorf("%+v", s)
	}
}
