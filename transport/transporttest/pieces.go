package transporttest

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/transport"
)

// lenders connects two links if the transport has large pieces.
func lenders(t *testing.T, setup Setup) (from, to, from2, to2 transport.Lender, ok bool) {
	d, a := connect(t, setup)
	if _, ok := d.(transport.Lender); !ok {
		return nil, nil, nil, nil, false
	}
	d2, a2 := connect(t, setup)
	return d.(transport.Lender), a.(transport.Lender), d2.(transport.Lender), a2.(transport.Lender), true
}

// SendPiece sends one piece, waiting as the contract says.
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

// borrow waits for what is next to read: a piece or, nil, something else.
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

// pieces sends small bytes and pieces in turn through two links: what comes over the first as a piece is lent to the second.
func pieces(t *testing.T, setup Setup) {
	from, via, out, to, ok := lenders(t, setup)
	if !ok {
		return
	}
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
	go func() { // the one between
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

// piecesHeld: blocks that are not released hold up the sender, say that they are scarce, and outlive their link.
func piecesHeld(t *testing.T, setup Setup) {
	from, to, _, _, ok := lenders(t, setup)
	if !ok {
		return
	}
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
