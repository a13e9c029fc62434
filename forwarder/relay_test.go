package forwarder

import (
	"bytes"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

func TestRelay(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.join("j", twoClusters...)
	for i, x := range r {
		if int(x.Rank) != i || x.TagUB != 1<<28 || x.Namesake || x.Libraries[0] != "lib-a" {
			t.Fatalf("layout of %d: %+v", i, x.Layout)
		}
	}
	payload := uint64(0)
	for _, size := range []int{0, 1, 1000, 64 << 10, 256 << 10, wire.MaxPayload} {
		for src := range 2 {
			for dst := 2; dst < 4; dst++ {
				want := pattern(size, src)
				done := make(chan error, 1)
				go func() { done <- r[src].write(eager(src, dst, 1, want)) }()
				h, body := r[dst].expect(wire.TypeEager)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if h.Src != uint32(src) || h.Dst != uint32(dst) || !bytes.Equal(body[wire.EnvelopeLen:], want) {
					t.Fatalf("size %d from %d to %d: got %+v", size, src, dst, h)
				}
				payload += uint64(size)
			}
		}
	}
	for _, x := range r {
		x.bye()
	}
	s := b.ended()
	want := []Traffic{{From: "a", To: "b", Messages: 24, PayloadBytes: payload,
		HeaderBytes: 24 * (wire.HeaderLen + wire.EnvelopeLen), Frames: 24}, {From: "b", To: "a"}}
	if !s.OK || s.Job != "j" || len(s.Traffic) != 2 || s.Traffic[0] != want[0] || s.Traffic[1] != want[1] {
		t.Errorf("summary %+v, want traffic %+v", s, want)
	}
}
