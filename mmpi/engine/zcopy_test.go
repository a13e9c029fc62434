package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
)

// zcopyLink is a pieceLink that records the memory registered with it.
type zcopyLink struct {
	*pieceLink
	live     map[*zcopyRegion]bool // the regions not released yet
	calls    []string              // the registrations, as "pin OFFSET+BYTES", by offset in buf
	buf      []byte                // the memory of the program
	fail     error                 // the error of the next Pin or Expect; nil: they succeed
	inPlace  int                   // the number of bytes sent in place
	released int                   // the number of regions released
}

type zcopyRegion struct {
	l   *zcopyLink
	mem []byte
}

func (r *zcopyRegion) Release() {
	if !r.l.live[r] {
		panic("released twice")
	}
	delete(r.l.live, r)
	r.l.released++
}

func (l *zcopyLink) know(what string, mem []byte) (transport.Region, error) {
	if l.fail != nil {
		return nil, l.fail
	}
	off := cap(l.buf) - cap(mem)
	l.calls = append(l.calls, fmt.Sprintf("%s %d+%d", what, off, len(mem)))
	r := &zcopyRegion{l, mem}
	l.live[r] = true
	return r, nil
}

func (l *zcopyLink) Pin(mem []byte) (transport.Region, error) { return l.know("pin", mem) }
func (l *zcopyLink) Expect(key uint64, from int64, mem []byte) (transport.Region, error) {
	return l.know(fmt.Sprintf("expect @%d", from), mem)
}

func (l *zcopyLink) TrySendPinned(head []byte, r transport.Region, off, n int) error {
	p := r.(*zcopyRegion)
	if !l.live[p] {
		panic("sent from released memory")
	}
	err := l.TrySend(head, p.mem[off:off+n])
	if err == nil {
		l.inPlace += n
	}
	return err
}

func (l *zcopyLink) TryPlace([]byte, transport.Block, int, uint64, int64) (bool, error) {
	return false, transport.ErrAgain
}

// part is the number of bytes of a message that are registered at a time (package link).
const part = 4 << 20

// zcopies returns two processes whose links can register memory; warn may be nil.
func zcopies(t *testing.T, warn func(string)) (*fabric, [2]*zcopyLink) {
	var l [2]*zcopyLink
	f := newFabric(t, []int{1, 1}, Limits{Eager: 500, DataWindow: 1 << 20, Segment: 1000}, func(rank int, cfg *Config) {
		l[rank] = &zcopyLink{pieceLink: &pieceLink{memLink: cfg.Links[0].(*memLink), places: 1 << 30},
			live: map[*zcopyRegion]bool{}}
		cfg.Links[0], cfg.ZcopyFrom, cfg.Warn = l[rank], 5000, warn
	})
	return f, l
}

// exchange sends n bytes from rank 0 to rank 1.
func exchange(t *testing.T, f *fabric, l [2]*zcopyLink, c []*Comm, kind, n int) {
	t.Helper()
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i * 7 / 5)
	}
	got := make([]byte, n)
	for i, b := range [][]byte{want, got} {
		l[i].buf, l[i].calls, l[i].inPlace, l[i].released = b, nil, 0, 0
	}
	var sent, received Cell
	if err := f.engines[0].Isend(c[0], kind, want, 1, 1, false, &sent); err != nil {
		t.Fatal(err)
	}
	if err := f.engines[1].Irecv(c[1], kind, got, 0, 1, &received); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if !sent.Done() || !received.Done() || sent.Err() != nil || received.Err() != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes: %+v %+v", n, sent, received)
	}
	for i := range l {
		if len(l[i].live) > 0 {
			t.Errorf("rank %d: %d regions are left", i, len(l[i].live))
		}
	}
}

// TestLargeMessagesGoInPlace checks that large messages of the program are sent and received in
// place, in parts, with the receive one part ahead, and that others are copied.
func TestLargeMessagesGoInPlace(t *testing.T) {
	f, l := zcopies(t, nil)
	c := f.world(1)
	n := 2*part + 1500
	exchange(t, f, l, c, KindP2P, n)
	// Segments of 1000 bytes: one lies across the border of the first part, the one at 8388000
	// across that of the second.
	if want := []string{fmt.Sprintf("pin 0+%d", part), fmt.Sprintf("pin 4194000+%d", part),
		fmt.Sprintf("pin %d+%d", 4194000+part/1000*1000, n-4194000-part/1000*1000)}; !slices.Equal(l[0].calls, want) ||
		l[0].inPlace != n {
		t.Errorf("sender: %q, want %q; %d of %d bytes in place", l[0].calls, want, l[0].inPlace, n)
	}
	if want := []string{fmt.Sprintf("expect @0 0+%d", part), fmt.Sprintf("expect @%d %d+%d", part, part, part),
		fmt.Sprintf("expect @%d %d+1500", 2*part, 2*part)}; !slices.Equal(l[1].calls, want) {
		t.Errorf("receiver: %q, want %q", l[1].calls, want)
	}
	for _, x := range []struct{ kind, n int }{{KindP2P, 4999}, {KindCollective, 100_000}, {KindInternal, 100_000}} {
		exchange(t, f, l, c, x.kind, x.n)
		if len(l[0].calls)+len(l[1].calls) > 0 {
			t.Errorf("kind %d, %d bytes: %q %q", x.kind, x.n, l[0].calls, l[1].calls)
		}
	}
}

// TestUnregisteredMemoryIsCopied checks that memory that cannot be registered is copied, that each
// process warns the user once, and that a link that cannot register memory now is asked again.
func TestUnregisteredMemoryIsCopied(t *testing.T) {
	var warnings []string
	f, l := zcopies(t, func(s string) { warnings = append(warnings, s) })
	c := f.world(1)
	l[1].fail = transport.ErrAgain
	exchange(t, f, l, c, KindP2P, 20_000)
	l[0].fail, l[1].fail = errors.New("ulimit -l"), errors.New("ulimit -l")
	for range 2 {
		exchange(t, f, l, c, KindP2P, 20_000)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "ulimit -l") {
		t.Errorf("%q", warnings)
	}
	if l[0].inPlace != 0 {
		t.Error("sent in place")
	}
}

// TestFailedJobReleasesRegions checks that links release their regions when the job fails in the
// middle of a message.
func TestFailedJobReleasesRegions(t *testing.T) {
	f, l := zcopies(t, nil)
	c := f.world(1)
	buf := make([]byte, 3_000_000)
	l[0].buf, l[1].buf = buf, buf
	l[0].places = 100
	var sent, received Cell
	if err := f.engines[0].Isend(c[0], KindP2P, buf, 1, 1, false, &sent); err != nil {
		t.Fatal(err)
	}
	if err := f.engines[1].Irecv(c[1], KindP2P, make([]byte, len(buf)), 0, 1, &received); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if received.Done() || len(l[0].live) != 1 || len(l[1].live) != 1 {
		t.Fatalf("%d and %d regions", len(l[0].live), len(l[1].live))
	}
	for i, e := range f.engines {
		f.eof[i] = true
		e.Progress(0)
		if len(l[i].live) != 0 || f.natives[i].failed == "" {
			t.Errorf("rank %d: %d regions are left", i, len(l[i].live))
		}
	}
}

// TestLostRailReleasesItsRegions checks that the region of a lost rail's link is released, that
// those of other rails stay, and that the message arrives.
func TestLostRailReleasesItsRegions(t *testing.T) {
	var l [2]*zcopyLink // the links of rank 0
	const size = 30_000
	sent, got := pattern(1, size), make([]byte, size)
	register := func(rank int, cfg *Config) {
		for i := 0; rank == 0 && i < len(l); i++ {
			pieces := &pieceLink{memLink: cfg.Links[i].(*memLink), places: 3}
			l[i] = &zcopyLink{pieceLink: pieces, live: map[*zcopyRegion]bool{}, buf: sent}
			cfg.Links[i], cfg.ZcopyFrom = l[i], 5000
		}
	}
	n := newRailNet(t, []int{1, 1}, Limits{Eager: 500, DataWindow: 1 << 20, Segment: 1000},
		netOptions{rails: 2, change: register}, func(string, ...any) {})
	var in, out Cell
	if err := n.engines[1].Irecv(n.engines[1].p2p.CommOf(1), KindP2P, got, 0, 1, &in); err != nil {
		t.Fatal(err)
	}
	if err := n.engines[0].Isend(n.engines[0].p2p.CommOf(1), KindP2P, sent, 1, 1, false, &out); err != nil {
		t.Fatal(err)
	}
	n.settle()
	if in.Done() || len(l[0].live) != 1 || len(l[1].live) != 1 || l[0].inPlace == 0 {
		t.Fatalf("%d and %d regions, %d bytes in place, done %v", len(l[0].live), len(l[1].live), l[0].inPlace,
			in.Done())
	}
	n.lose(n.strands[0][0])
	n.engines[0].Progress(0)
	if len(l[0].live) != 0 || len(l[1].live) != 1 {
		t.Fatalf("after the loss: %d and %d regions", len(l[0].live), len(l[1].live))
	}
	l[1].places = 100
	n.settle()
	if !in.Done() || !out.Done() || !bytes.Equal(got, sent) || len(l[1].live) != 0 {
		t.Errorf("done %v and %v, %d regions are left", in.Done(), out.Done(), len(l[1].live))
	}
}
