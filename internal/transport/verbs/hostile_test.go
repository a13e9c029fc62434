//go:build rdma && cgo

package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

// TestHostileCredit checks that a peer which gives back more credit than it got loses its link. It
// gives back one slot more than there are, because all of them may be in use when the writer looks.
func TestHostileCredit(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	if err := b.in.qp.Post(verbs.Request{Op: verbs.SendImm, Flags: verbs.Signaled,
		Imm: uint32(makeImmediate(creditSlots, b.in.slots+1, b.in.credits))}); err != nil {
		t.Fatal(err)
	}
	if err := flood(a, b); err == nil || !strings.Contains(err.Error(), "violates the protocol") {
		t.Errorf("got %v", err)
	}
}

// flood writes from a to b until an error ends it, or until the writer must have looked for credit
// many times.
func flood(a, b *link) (err error) {
	go func() {
		for transporttest.ReadFull(b, make([]byte, 1000)) == nil {
		}
	}()
	for i := 0; err == nil && i < 100; i++ {
		err = transporttest.WriteFull(a, make([]byte, 100_000))
	}
	return err
}

// TestHostilePieces checks that a peer which writes to a block that is not free, or does not exist,
// loses its link, and that it cannot write outside of its blocks.
func TestHostilePieces(t *testing.T) {
	write := func(l *link, block int, at uint64, key uint32) error {
		l.out.mu.Lock()
		defer l.out.mu.Unlock()
		return l.out.postHolding(verbs.Request{ID: l.out.posted, Op: verbs.RDMAWriteImm, Flags: verbs.Signaled,
			Local: l.out.slot(0, 100),
			Imm:   uint32(makeImmediate(ofPiece, block, l.out.posted)), RemoteAddr: at, RKey: key}, nil)
	}
	for name, post := range map[string]func(a, b *link) error{
		"no block": func(a, b *link) error { return write(a, 1000, a.out.remote.addr, a.out.remote.key) },
		"block used twice": func(a, b *link) error {
			if err := write(a, 0, a.out.remote.addr, a.out.remote.key); err != nil {
				return err
			}
			for { // the block is not given back
				k, err := b.TryBorrow()
				if err == transport.ErrAgain {
					continue
				}
				if k == nil || err != nil {
					return fmt.Errorf("borrow: %v, %v", k, err)
				}
				return write(a, 0, a.out.remote.addr, a.out.remote.key)
			}
		},
		"outside the region": func(a, b *link) error {
			return write(a, 0, a.out.remote.addr+uint64(len(b.arena.mem)), a.out.remote.key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Options{}, Options{})
			if err := post(a, b); err != nil {
				t.Fatal(err)
			}
			if err := transporttest.ReadFull(b, make([]byte, 1000)); err == nil ||
				strings.Contains(err.Error(), "not ready") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("another link's", func(t *testing.T) {
		a, b := pair(t, Options{}, Options{})
		c, d := pair(t, Options{}, Options{})
		copy(d.arena.mem, "untouched")
		if err := write(a, 0, c.out.remote.addr, c.out.remote.key); err != nil {
			t.Fatal(err)
		}
		if err := transporttest.ReadFull(b, make([]byte, 1000)); err == nil ||
			strings.Contains(err.Error(), "not ready") {
			t.Errorf("got %v", err)
		}
		if s := string(d.arena.mem[:9]); s != "untouched" {
			t.Errorf("another link's memory is now %q", s)
		}
	})
}

// TestHostileNotes checks that a peer which puts unexpected bytes, or sends invalid notes of
// places, loses its link.
func TestHostileNotes(t *testing.T) {
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	expect := func(number uint32, from, n uint64) []byte {
		return u32(u64(u64(u64(u64(u32(u32(nil, number), 0), 1), from), n), 4096), 1)
	}
	for name, note := range map[string]struct {
		kind  int
		notes [][]byte
	}{
		"unknown note":                {7, [][]byte{{1, 2, 3, 4}}},
		"short note":                  {noteExpect, [][]byte{expect(1, 0, 10)[:40]}},
		"empty place":                 {noteExpect, [][]byte{expect(1, 0, 0)}},
		"endless place":               {noteExpect, [][]byte{expect(1, 1<<62, 1<<62)}},
		"negative offset":             {noteExpect, [][]byte{expect(1, 1<<63, 10)}},
		"number used twice":           {noteExpect, [][]byte{expect(1, 0, 10), expect(1, 0, 10)}},
		"unknown place":               {notePlaced, [][]byte{append(u64(u32(u32(nil, 7), 10), 0), 1)}},
		"note without head":           {notePlaced, [][]byte{u64(u32(u32(nil, 7), 10), 0)}},
		"beyond the end of the place": {notePlaced, [][]byte{append(u64(u32(u32(nil, 1), 11), 0), 1)}},
		"short withdrawal":            {noteWithdraw, [][]byte{{1, 2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Options{}, Options{})
			mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Munmap(mem)
			r, err := b.Expect(1, 0, mem[:10]) // its number is 1
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			for _, n := range note.notes {
				a.out.mu.Lock()
				err := a.out.note(note.kind, n)
				a.out.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := transporttest.ReadFull(b, make([]byte, 1)); err == nil ||
				!strings.Contains(err.Error(), "violates the protocol") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestDamagedMessageEndsTheLink checks that a message which is lost, repeated or cut ends the link
// before any of it is read, and that lost credit does so, too.
func TestDamagedMessageEndsTheLink(t *testing.T) {
	const want = "lost, repeated or truncated"
	for name, k := range map[string]struct {
		post func(w *writer) error
		good int // bytes that arrive before
	}{
		"lost": {func(w *writer) error { w.posted++; return w.post(1, 100) }, 0},
		"repeated": {func(w *writer) error {
			err := w.post(1, 100)
			w.posted--
			return errors.Join(err,
				w.post(1, 100))
		}, 100},
		"truncated": {func(w *writer) error {
			r := w.noteIn(ofBytes, 1, 100)
			r.Local = w.slot(1, 36)
			return w.postHolding(r, nil)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Options{}, Options{})
			a.out.mu.Lock()
			err := k.post(&a.out)
			a.out.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if err := transporttest.ReadFull(b, make([]byte, k.good)); err != nil {
				t.Fatal(err)
			}
			if err := transporttest.ReadFull(b, make([]byte, 1)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("credit", func(t *testing.T) {
		a, b := pair(t, Options{}, Options{})
		b.in.credits++
		if err := flood(a, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	})
}

// TestHeldUntilArrived checks that a piece's memory is not reused before the adapter knows that the
// piece has arrived, although the peer, which has it, has given its block back.
func TestHeldUntilArrived(t *testing.T) {
	a, b := pair(t, Options{Blocks: 1}, Options{Blocks: 1})
	if err := b.in.qp.Fail(); err != nil { // it acknowledges nothing
		t.Fatal(err)
	}
	if err := a.TrySend([]byte("head"), []byte("first")); err != nil {
		t.Fatal(err)
	}
	a.out.mu.Lock()
	err := a.out.credit(&verbs.Completion{HasImm: true, Imm: uint32(makeImmediate(creditBlock, 0, a.out.credits))})
	a.out.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.TrySend([]byte("head"), []byte("second")); err != transport.ErrAgain {
		t.Errorf("got %v", err)
	}
	if s := string(a.out.own.mem[:5]); s != "first" {
		t.Errorf("the adapter would now send %q", s)
	}
}
