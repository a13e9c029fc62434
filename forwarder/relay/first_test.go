package relay

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestQueuedFramesPrecedeOthers checks that nothing overtakes the frames that were queued before
// Running: neither a Count nor bulk frames, however long these have waited. The peer would refuse
// them, because it is not Running before those frames arrive.
func TestQueuedFramesPrecedeOthers(t *testing.T) {
	f := newFixture(t)
	c := f.ctl[1].conn
	for range 3 {
		if err := c.Send(wire.AppendFrame(nil, wire.Control(wire.TypePing), filling{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Send(wire.AppendFrame(nil, wire.Control(wire.TypeReady), &wire.Ready{})); err != nil {
		t.Fatal(err)
	}
	c.out.skipped = bulkShare
	table := make([]atomic.Pointer[Conn], 2)
	counts := NewCounts(2, []int{0, 1})
	for i := range table {
		table[i].Store(f.ctl[i].conn)
		f.ctl[i].conn.Run(&Route{Rank: uint32(i), Table: table, Counts: counts, Allowed: onlyType(wire.TypeBye)})
	}
	p := dataFrame(300)
	if n, err := f.ranks[0].TryWrite(p); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
	f.now = f.now.Add(3 * time.Second) // a Count is due
	f.settle()
	var types []wire.Type
	for b := f.bytes(t, 1); len(b) > 0; {
		h := wire.ParsedHeader(b)
		types = append(types, h.Type)
		b = b[wire.HeaderLen+int(h.Length):]
	}
	want := []wire.Type{wire.TypePing, wire.TypePing, wire.TypePing, wire.TypeReady, wire.TypeData}
	for i, x := range want {
		if i >= len(types) || types[i] != x {
			t.Fatalf("%v came, want %v", types, want)
		}
	}
	f.now = f.now.Add(3 * time.Second)
	f.settle()
	if n := f.reads(t, 1); n != wire.HeaderLen+wire.CountLen {
		t.Errorf("%d bytes came afterwards, want a Count", n)
	}
}

// filling fills a Ping.
type filling struct{}

// Append adds it.
func (filling) Append(b []byte) []byte { return append(b, make([]byte, 600)...) }

// bytes reads what a rank gets.
func (f *fixture) bytes(t *testing.T, rank int) (all []byte) {
	t.Helper()
	p := make([]byte, 4096)
	for {
		n, err := f.ranks[rank].TryRead(p)
		if err != nil {
			return all
		}
		all = append(all, p[:n]...)
		f.settle()
	}
}
