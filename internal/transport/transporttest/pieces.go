package transporttest

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
)

// lenders opens two links.
func lenders(t *testing.T, setup Setup) (from, to, from2, to2 transport.Lender) {
	d, a := connect(t, setup)
	d2, a2 := connect(t, setup)
	return d.(transport.Lender), a.(transport.Lender), d2.(transport.Lender), a2.(transport.Lender)
}

// SendPiece sends one piece. It waits in the way that transport.Link requires.
func SendPiece(l transport.Lender, head, body []byte) error {
	return whenWritable(l, func() error { return l.TrySend(head, body) })
}

func whenWritable(l transport.Link, try func() error) error {
	for {
		err := try()
		if err != transport.ErrAgain {
			return err
		}
		if !ready(l.WriteFD(), unix.POLLOUT, Patience) {
			return errPatience
		}
	}
}

// borrow waits for the bytes that are next to read. It returns a piece, or nil for other bytes.
func borrow(l transport.Lender) (transport.Block, error) {
	for {
		b, err := l.TryBorrow()
		if err != transport.ErrAgain {
			return b, err
		}
		if !l.Arm() && !ready(l.FD(), unix.POLLIN, Patience) {
			return nil, errPatience
		}
	}
}

// pieces sends small bytes and pieces in turn through two links. A piece that arrives over the
// first link is lent to the second.
func pieces(t *testing.T, setup Setup) {
	from, via, out, to := lenders(t, setup)
	const rounds = 60
	most := from.MaxPiece()
	var small, large [rounds][]byte
	for i := range rounds {
		small[i] = random(1+i*37%500, uint64(i))
		large[i] = random(most-i*most/(2*rounds), uint64(1000+i))
	}
	failed := make(chan error, 2)
	go func() { // the sender
		for i := range rounds {
			if err := WriteFull(from, small[i]); err != nil {
				failed <- err
				return
			}
			if err := SendPiece(from, large[i][:20], large[i][20:]); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	go func() { // the relay in between
		failed <- func() error {
			for i := range rounds {
				b := make([]byte, len(small[i]))
				if err := ReadFull(via, b); err != nil {
					return err
				}
				if err := WriteFull(out, b); err != nil {
					return err
				}
				k, err := borrow(via)
				if err != nil {
					return err
				}
				if k == nil {
					return errors.New("a piece that came is not lent")
				}
				head := append([]byte(nil), k.Bytes()[:33]...)
				if err := whenWritable(out, func() error { return out.TryLend(head, k, len(head)) }); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for i := range rounds {
		got := make([]byte, len(small[i])+len(large[i]))
		if err := ReadFull(to, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, append(small[i][:len(small[i]):len(small[i])], large[i]...)) {
			t.Fatalf("round %d: changed", i)
		}
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

// outside returns n bytes of mapped memory that the Go runtime does not manage.
func outside(t *testing.T, n int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(m); err != nil {
			t.Error(err)
		}
	})
	return m
}

// placed sends pieces from the sender's memory through a relay into the reader's: into places that
// the reader expects, and as ordinary pieces where it does not, or no longer.
func placed(t *testing.T, setup Setup) {
	first, via, second, last := lenders(t, setup)
	from, out, to := first.(transport.Placer), second.(transport.Placer), last.(transport.Placer)
	const head = 48
	n := from.MaxPiece() - head
	source, target := outside(t, 4*n+100), outside(t, 4*n+100)
	copy(source, random(len(source), 3))
	region, err := from.Pin(source[7:])
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	settle := func() { // wait until the notes of the reader have arrived
		t.Helper()
		must(WriteFull(to, []byte{1}))
		must(ReadFull(out, make([]byte, 1)))
	}
	// pass sends n bytes from offset off of the source for a key, and reads them at into.
	pass := func(key uint64, off, n int, into []byte, inPlace bool) {
		t.Helper()
		h := random(head, uint64(off))
		must(whenWritable(from, func() error { return from.TrySendPinned(h, region, off-7, n) }))
		k, err := borrow(via)
		if err != nil || k == nil {
			t.Fatalf("borrow: %v %v", k, err)
		}
		put := false
		must(whenWritable(out, func() error {
			put, err = out.TryPlace(k.Bytes()[:head], k, head, key, int64(off))
			return err
		}))
		if put != inPlace {
			t.Errorf("%d bytes at %d for %d: in place: %v", n, off, key, put)
		}
		got := make([]byte, head)
		must(ReadFull(to, got))
		must(ReadFull(to, into[:n]))
		if !bytes.Equal(got, h) || !bytes.Equal(into[:n], source[off:off+n]) {
			t.Fatalf("%d bytes at %d for %d: changed", n, off, key)
		}
	}
	all, err := to.Expect(5, 100, target[100:100+3*n])
	must(err)
	settle()
	aside := make([]byte, n)
	pass(5, 100, n, target[100:], true)
	pass(6, 100, n, aside, false)       // another key
	pass(5, 100, n, aside, false)       // a second time
	pass(5, 99, n, aside, false)        // before the place
	pass(5, 100+2*n+1, n, aside, false) // behind the end of the place
	must(WriteFull(out, []byte("between")))
	must(ReadFull(to, make([]byte, 7)))
	pass(5, 100+n+1, n, target[100+n+1:], true) // with a gap
	all.Release()
	settle()
	pass(5, 100+2*n, n, aside, false) // no longer expected
	whole, err := to.Expect(5, int64(n), target[n:2*n])
	must(err)
	settle()
	pass(5, n, n/2, target[n:], true)
	pass(5, n+n/2, n-n/2, target[n+n/2:], true)
	pass(5, n, n, aside, false) // all its bytes have arrived
	whole.Release()
	region.Release()
	if region, err = from.Pin(source[7:]); err != nil {
		t.Fatal(err)
	}
	left, err := to.Expect(9, 0, target)
	must(err)
	settle()
	// Bytes that are in place cannot be read to another place.
	must(whenWritable(from, func() error { return from.TrySendPinned(make([]byte, head), region, 0, n) }))
	k, err := borrow(via)
	if err != nil || k == nil {
		t.Fatalf("borrow: %v %v", k, err)
	}
	if put, err := out.TryPlace(k.Bytes()[:head], k, head, 9, 0); !put || err != nil {
		t.Fatal(put, err)
	}
	must(ReadFull(to, make([]byte, head)))
	if err := ReadFull(to, aside); err == nil || err == errPatience {
		t.Errorf("read to another place: %v", err)
	}
	for _, l := range []transport.Link{from, via, out, to} {
		l.Close()
	}
	region.Release()
	left.Release()
	if _, err := from.Pin(source); err == nil {
		t.Error("pinned after the end")
	}
	if _, err := to.Expect(1, 0, target); err == nil {
		t.Error("expected after the end")
	}
}

// piecesHeld checks that blocks which are not released hold up the sender, report that they are
// scarce, and outlive their link.
func piecesHeld(t *testing.T, setup Setup) {
	from, to, _, _ := lenders(t, setup)
	body := random(from.MaxPiece()-1, 5)
	var held []transport.Block
	sent := 0
	for {
		err := from.TrySend(body[:1], body[1:])
		if err == transport.ErrAgain {
			break
		}
		if err != nil || sent == 10000 {
			t.Fatalf("%d pieces on their way: %v", sent, err)
		}
		sent++
	}
	for range sent {
		b, err := borrow(to)
		if err != nil || b == nil {
			t.Fatalf("borrow: %v %v", b, err)
		}
		held = append(held, b)
	}
	if !held[0].Scarce() {
		t.Errorf("all of %d are held, and not scarce", sent)
	}
	if err := from.TrySend(nil, body); err != transport.ErrAgain {
		t.Fatalf("one more: %v", err)
	}
	held[0].Release()
	if err := SendPiece(from, nil, body); err != nil {
		t.Fatalf("after a release: %v", err)
	}
	if err := from.TrySend(nil, make([]byte, from.MaxPiece()+1)); err == nil || err == transport.ErrAgain {
		t.Errorf("a piece that is too long: %v", err)
	}
	to.Close()
	from.Close()
	for _, b := range held[1:] {
		if !bytes.Equal(b.Bytes(), body) {
			t.Error("changed")
		}
		b.Release()
	}
}
