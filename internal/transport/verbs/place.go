//go:build rdma && cgo

package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport"
)

// A piece goes directly into memory of the reader's program if the reader has announced that place.
// Notes are messages in slots:
//
//	expect    number of the place 4 · 0 4 · key 8 · its first byte's offset for the key 8 · bytes 8 · address 8 · key of the memory 4
//	withdraw  number of the place 4: nothing may be put there any more
//	placed    number of the place 4 · bytes 4 · first byte's offset for the key 8 · head of the piece: the body has been written there before
//
// The writer puts every byte of a place once at most, in rising order, and both ends forget the
// place after its last byte. So a peer that repeats a write cannot change bytes that the program
// has already received.
const expectLen, withdrawLen, placedLen = 44, 4, 16

// place is a place in which the peer expects pieces.
type place struct {
	number   uint32
	key      uint64
	from, to int64  // bytes that may still be put there
	base     uint64 // address of byte 0, which may be before the place
	rkey     uint32
}

// expected is a place that was announced to the peer.
type expected struct {
	l      *link
	number uint32
	memory span
	mem    []byte
	// from and to are as in place; mem begins at base.
	from, to int64
	base     int64
}

var _ transport.Placer = (*link)(nil)

// pinned is memory to send from.
type pinned struct {
	l *link
	span
}

func (p *pinned) Release() { p.l.through(p.r.put()) }

// held is the use of a region by a message in flight.
type held struct {
	l *link
	r *region
}

func (h held) Release() { h.l.through(h.r.put()) }

// through handles an error of giving memory back.
func (l *link) through(err error) {
	if err != nil {
		l.broken(err)
	}
}

// registered creates a set of regions in a protection domain.
func registered(pd *verbs.PD, a verbs.Access, u Unmaps) regions {
	return regions{unmaps: u, all: map[*region]struct{}{}, register: func(mem []byte) (registration, error) {
		if !verbs.ForkCopies() {
			return nil, errFork
		}
		mr, err := pd.Register(mem, a)
		if err != nil {
			return nil, err // not a nil *MR
		}
		// If other code in the process has called ibv_fork_init (as UCX does), the library has just
		// hidden these pages from child processes, needlessly.
		all, _ := wholePages(mem)
		if err := unix.Madvise(all, unix.MADV_DOFORK); err != nil {
			return nil, errors.Join(fmt.Errorf("madvise: %w", err), mr.Close())
		}
		return mr, nil
	}}
}

// errFork is the error on old kernels. Pages that are shared with other data of the program would
// be missing in its child processes.
var errFork = errors.New("this kernel does not copy registered pages on fork (Linux 5.12 does), so the program's memory is not registered")

func (l *link) Pin(mem []byte) (transport.Region, error) {
	if !l.ref.Acquire() {
		return nil, transport.ErrClosed
	}
	defer l.ref.Release()
	s, err := l.sources.get(mem)
	if err != nil {
		return nil, err
	}
	return &pinned{l, s}, nil
}

func (l *link) TrySendPinned(head []byte, r transport.Region, off, n int) error {
	p := r.(*pinned)
	return l.piece(head, n, func() (verbs.Range, holder, error) {
		mr, ok := p.r.mr.(*verbs.MR)
		if !ok || p.l != l {
			return verbs.Range{}, nil, errors.New("memory of another link")
		}
		p.r.use()
		return verbs.Range{MR: mr, Off: p.off + off, Len: n}, held{l, p.r}, nil
	})
}

func (l *link) Expect(key uint64, from int64, mem []byte) (transport.Region, error) {
	if !l.ref.Acquire() {
		return nil, transport.ErrClosed
	}
	defer l.ref.Release()
	s, err := l.targets.get(mem)
	if err != nil {
		return nil, err
	}
	x := &expected{l: l, memory: s, mem: mem, base: from, from: from, to: from + int64(len(mem))}
	if err := l.announce(x, key); err != nil {
		l.through(s.r.put())
		return nil, err
	}
	return x, nil
}

// announce tells the peer about a place.
func (l *link) announce(x *expected, key uint64) error {
	if c := l.cause.Load(); c != nil {
		return *c
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if ok, err := l.out.ready(); err != nil {
		return l.failed(err)
	} else if !ok {
		return transport.ErrAgain
	}
	mr := x.memory.r.mr.(*verbs.MR)
	if !l.in.expect(x) {
		return transport.ErrAgain
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, x.number)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, key)
	b = le.AppendUint64(b, uint64(x.from))
	b = le.AppendUint64(b, uint64(len(x.mem)))
	b = le.AppendUint64(b, mr.Addr()+uint64(x.memory.off))
	b = le.AppendUint32(b, mr.RKey())
	if err := l.out.note(noteExpect, b); err != nil {
		l.in.unexpect(x)
		return l.failed(err)
	}
	return nil
}

// Release also tells the peer, if there are bytes that it has not put there.
func (x *expected) Release() {
	l := x.l
	if l.ref.Acquire() {
		if l.in.unexpect(x) {
			l.out.mu.Lock()
			l.out.withdrawn = append(l.out.withdrawn, x.number)
			if l.cause.Load() == nil {
				if _, err := l.out.ready(); err != nil {
					l.broken(err)
				}
			}
			l.out.mu.Unlock()
		}
		l.ref.Release()
	}
	l.through(x.memory.r.put())
}

// expect numbers a place. It returns false if there are too many.
func (r *reader) expect(x *expected) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.expected) >= maxPlaces/2 {
		return false
	}
	r.places++
	x.number = r.places
	r.expected[x.number] = x
	return true
}

// unexpect reports whether the place was still expected.
func (r *reader) unexpect(x *expected) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.expected[x.number]
	delete(r.expected, x.number)
	return ok
}

// note handles a note of the peer. whole says that it is a piece that is in place.
func (r *reader) note(kind, n int, a *arrival) (whole bool, err error) {
	b := r.bytes(a.slot, n)
	le := binary.LittleEndian
	bad := fmt.Errorf("the peer violates the protocol: note %d of %d bytes", kind, n)
	switch {
	case kind == noteExpect && len(b) == expectLen:
		p := place{number: le.Uint32(b), key: le.Uint64(b[8:]), from: int64(le.Uint64(b[16:])),
			base: le.Uint64(b[32:]) - le.Uint64(b[16:]), rkey: le.Uint32(b[40:])}
		n := int64(le.Uint64(b[24:]))
		if p.from < 0 || n <= 0 || p.from+n < p.from || !r.out.expects(p, n) {
			return false, bad
		}
		return false, nil
	case kind == noteWithdraw && len(b) == withdrawLen:
		r.out.removePlace(le.Uint32(b))
		return false, nil
	case kind == notePlaced && len(b) > placedLen:
		number, n, at := le.Uint32(b), int64(le.Uint32(b[4:])), int64(le.Uint64(b[8:]))
		r.mu.Lock()
		defer r.mu.Unlock()
		x := r.expected[number]
		if x == nil || n == 0 || at < x.from || at+n > x.to {
			return false, bad
		}
		a.head, a.body = placedLen, x.mem[at-x.base:][:n]
		a.n = len(b) - placedLen + int(n)
		if x.from = at + n; x.from == x.to {
			delete(r.expected, number)
		}
		return true, nil
	}
	return false, bad
}

// expects adds a place of n bytes that the peer has announced.
func (w *writer) expects(p place, n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.places) >= maxPlaces || slices.ContainsFunc(w.places, func(o place) bool { return o.number == p.number }) {
		return false
	}
	p.to = p.from + n
	w.places = append(w.places, p)
	return true
}

// removePlace removes a place, which may have got its last byte meanwhile.
func (w *writer) removePlace(number uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places = slices.DeleteFunc(w.places, func(o place) bool { return o.number == number })
}

// withdraw tells the peer that nothing may be put into a place of this end any more.
func (w *writer) withdraw(number uint32) error {
	return w.note(noteWithdraw, binary.LittleEndian.AppendUint32(nil, number))
}

// note sends a note, for which there must be room.
func (w *writer) note(kind int, b []byte) error {
	i := int(w.posted % uint64(w.slots))
	return w.postHolding(w.noteIn(kind, i, copy(w.bytes(i, w.size), b)), nil)
}

// noteIn returns the request to send the note of n bytes in a slot.
func (w *writer) noteIn(kind, slot, n int) verbs.Request {
	return verbs.Request{ID: w.posted, Op: verbs.SendImm, Flags: verbs.Signaled,
		Imm: uint32(makeImmediate(kind, n, w.posted)), Local: w.slot(slot, n)}
}

// find returns the index of the place for n bytes at an offset for a key, or -1.
func (w *writer) find(key uint64, at int64, n int) int {
	return slices.IndexFunc(w.places, func(p place) bool { return p.key == key && p.from <= at && at+int64(n) <= p.to })
}

func (l *link) TryPlace(head []byte, b transport.Block, from int, key uint64, at int64) (placed bool, err error) {
	k, ok := b.(*block)
	if !ok {
		return false, l.TryLend(head, b, from)
	}
	if !l.ref.Acquire() {
		return false, transport.ErrClosed
	}
	defer l.ref.Release()
	n := k.n - from
	whole := false
	err = l.put(func() (bool, error) {
		i := l.out.find(key, at, n)
		if whole = i < 0 || n == 0; whole {
			return true, nil
		}
		mr, err := k.l.arena.on(l.d)
		if err != nil {
			return false, err
		}
		return l.out.place(head, i, at, verbs.Range{MR: mr, Off: k.i*k.l.arena.size + from, Len: n}, k)
	})
	if whole && err == nil {
		return false, l.TryLend(head, b, from)
	}
	return err == nil, err
}

// place writes body to the place where the peer expects it and sends the head after it, if there is
// room.
func (w *writer) place(head []byte, i int, at int64, body verbs.Range, k *block) (bool, error) {
	if ok, err := w.ready(); !ok || err != nil {
		return false, err
	}
	p := &w.places[i]
	if len(head)+placedLen > w.size {
		return false, fmt.Errorf("head of %d bytes: too long", len(head))
	}
	// The order matters: a queue pair delivers requests in turn.
	if err := w.qp.Post(verbs.Request{ID: w.posted, Op: verbs.RDMAWrite, Local: body, RemoteAddr: p.base + uint64(at),
		RKey: p.rkey}); err != nil {
		return false, err
	}
	s := int(w.posted % uint64(w.slots))
	le := binary.LittleEndian
	b := le.AppendUint32(w.bytes(s, w.size)[:0], p.number)
	b = le.AppendUint32(b, uint32(body.Len))
	b = append(le.AppendUint64(b, uint64(at)), head...)
	if err := w.postHolding(w.noteIn(notePlaced, s, len(b)), k); err != nil {
		return false, err
	}
	if p.from = at + int64(body.Len); p.from == p.to {
		w.places = slices.Delete(w.places, i, i+1)
	}
	return true, nil
}
