//go:build rdma && cgo

package verbs

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/transporttest"
)

// TestHostileCredit: a peer that gives back more than it was sent loses its link.
func TestHostileCredit(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	if err := b.in.qp.Post(verbs.Request{Op: verbs.SendImm, Flags: verbs.Signaled, Imm: uint32(b.in.slots)}); err != nil {
		t.Fatal(err)
	}
	go func() { // reads all that comes until the link ends
		for transporttest.ReadFull(b, make([]byte, 1000)) == nil {
		}
	}()
	var err error
	for i := 0; err == nil && i < 100; i++ { // until the writer looks for credit
		err = transporttest.WriteFull(a, make([]byte, 100_000))
	}
	if err == nil || !strings.Contains(err.Error(), "breaks the rules") {
		t.Errorf("got %v", err)
	}
}

// TestHostilePieces: a peer that writes to a block which is not free, or to none, loses its link; what is outside of its blocks is out of its reach.
func TestHostilePieces(t *testing.T) {
	write := func(l *link, imm uint32, at uint64, key uint32) error {
		return l.out.qp.Post(verbs.Request{Op: verbs.RDMAWriteImm, Flags: verbs.Signaled, Local: l.out.slot(0, 100), Imm: imm, RemoteAddr: at, RKey: key})
	}
	for name, post := range map[string]func(a, b *link) error{
		"no block": func(a, b *link) error { return write(a, 1000, a.out.remote.addr, a.out.remote.key) },
		"twice": func(a, b *link) error {
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
		"outside": func(a, b *link) error {
			return write(a, 0, a.out.remote.addr+uint64(len(b.arena.mem)), a.out.remote.key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Options{}, Options{})
			if err := post(a, b); err != nil {
				t.Fatal(err)
			}
			if err := transporttest.ReadFull(b, make([]byte, 1000)); err == nil || strings.Contains(err.Error(), "not ready") {
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
		if err := transporttest.ReadFull(b, make([]byte, 1000)); err == nil || strings.Contains(err.Error(), "not ready") {
			t.Errorf("got %v", err)
		}
		if s := string(d.arena.mem[:9]); s != "untouched" {
			t.Errorf("another link's memory is now %q", s)
		}
	})
}

// TestHostileNotes: a peer that puts what was not expected, or expects in a way that cannot be, loses its link.
func TestHostileNotes(t *testing.T) {
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	expect := func(number uint32, from, n uint64) []byte {
		return u32(u64(u64(u64(u64(u32(u32(nil, number), 0), 1), from), n), 4096), 1)
	}
	for name, note := range map[string]struct {
		kind  uint32
		notes [][]byte
	}{
		"unknown":         {1<<31 + 77, [][]byte{{1, 2, 3, 4}}},
		"short":           {noteExpect, [][]byte{expect(1, 0, 10)[:40]}},
		"empty place":     {noteExpect, [][]byte{expect(1, 0, 0)}},
		"endless place":   {noteExpect, [][]byte{expect(1, 1<<62, 1<<62)}},
		"before 0":        {noteExpect, [][]byte{expect(1, 1<<63, 10)}},
		"the same number": {noteExpect, [][]byte{expect(1, 0, 10), expect(1, 0, 10)}},
		"nowhere":         {notePlaced, [][]byte{append(u64(u32(u32(nil, 7), 10), 0), 1)}},
		"no head":         {notePlaced, [][]byte{u64(u32(u32(nil, 7), 10), 0)}},
		"behind its end":  {notePlaced, [][]byte{append(u64(u32(u32(nil, 1), 11), 0), 1)}},
		"withdraws":       {noteWithdraw, [][]byte{{1, 2, 3}}},
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
			if err := transporttest.ReadFull(b, make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "breaks the rules") {
				t.Errorf("got %v", err)
			}
		})
	}
}
