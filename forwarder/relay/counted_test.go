package relay

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestSendCounted checks that the first Count goes with the last frames before Running, and that
// another Count follows only if bytes have been sent in between.
func TestSendCounted(t *testing.T) {
	f := newFixture(t)
	layout := wire.AppendFrame(nil, wire.Control(wire.TypeLayout), nil)
	for i, between := range [][]byte{nil, frame(wire.TypePing)} {
		c := f.ctl[i].conn
		if err := c.SendCounted(layout); err != nil {
			t.Fatal(err)
		}
		want := []wire.Type{wire.TypeLayout, wire.TypeCount}
		if between != nil {
			if err := c.Send(between); err != nil {
				t.Fatal(err)
			}
			want = append(want, wire.TypePing, wire.TypeCount)
		}
		c.Run(&Route{Rank: uint32(i), Allowed: onlyType(wire.TypeBye)})
		p := make([]byte, 1000)
		n, err := f.ranks[i].TryRead(p)
		if err != nil {
			t.Fatal(err)
		}
		var counted wire.Counted
		at := 0
		for _, w := range want {
			h, err := wire.ParseHeader(p[at:n])
			if err != nil || h.Type != w {
				t.Fatalf("rank %d: %v, %v; want %v", i, h.Type, err, w)
			}
			body := p[at+wire.HeaderLen : at+wire.HeaderLen+int(h.Length)]
			if h.Type == wire.TypeCount {
				x, err := wire.ParseCount(body)
				if err == nil {
					err = counted.Take(x, uint64(at))
				}
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
			at += wire.HeaderLen + len(body)
		}
		if at != n {
			t.Errorf("rank %d: %d bytes more", i, n-at)
		}
	}
}
