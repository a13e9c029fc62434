package relay

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestBulkFramesSpreadOverTrunk checks that small frames stay on the connection of the table, in
// order, and that bulk frames go over the others: over the first while less than a burst is queued
// for it, then over the next.
func TestBulkFramesSpreadOverTrunk(t *testing.T) {
	f, g := newFixture(t), newFixture(t)
	f.run()
	f.ctl[1].conn.Spread([]*Conn{g.ctl[0].conn, g.ctl[1].conn}, 1000)
	both := append(eagerFrame(10), dataFrame(100)...)
	both = append(append(both, eagerFrame(20)...), dataFrame(200)...)
	if n, err := f.ranks[0].TryWrite(both); n != len(both) || err != nil {
		t.Fatal(n, err)
	}
	f.settle()
	if n := f.reads(t, 1); n != len(eagerFrame(10))+len(eagerFrame(20)) {
		t.Errorf("%d bytes of small frames", n)
	}
	g.settle()
	a, b := g.reads(t, 0), g.reads(t, 1)
	if a != len(dataFrame(100))+len(dataFrame(200)) || b != 0 {
		t.Errorf("%d and %d bytes of bulk", a, b)
	}
	// The first accepts no more, so the second gets the rest.
	rest := 0
	for range 16 {
		p := dataFrame(300)
		if n, err := f.ranks[0].TryWrite(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
		f.settle()
		g.settle()
		rest += g.reads(t, 1)
	}
	if rest == 0 {
		t.Error("nothing over the second")
	}
	if q := g.ctl[0].conn.Queued(); q < 1000 || q > 1000+len(dataFrame(300)) {
		t.Errorf("%d bytes wait for the one that does not read", q)
	}
	f.ctl[1].conn.Spread(nil, 0)
	f.from(t, 0, wire.TypeEager, 0, 1, 10)
	if n := f.reads(t, 1); n != len(eagerFrame(10)) {
		t.Errorf("%d bytes, without a trunk", n)
	}
}

func eagerFrame(payload int) []byte {
	h := wire.Header{Type: wire.TypeEager, Dst: 1, Length: uint32(wire.EnvelopeLen + payload)}
	return append(h.Append(nil), make([]byte, h.Length)...)
}

func dataFrame(payload int) []byte {
	h := wire.Header{Type: wire.TypeData, Dst: 1, Length: uint32(wire.DataLen + payload)}
	return append(new(wire.Data).Append(h.Append(nil)), make([]byte, payload)...)
}
