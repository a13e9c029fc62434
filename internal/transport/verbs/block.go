//go:build rdma && cgo

package verbs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport"
)

// arena is the memory of a link's blocks. It outlives the link while blocks of it are lent.
//
// It is registered several times: in the protection domain of the link's receiving queue pair, so
// that this link's peer can write to it, and no other peer can (link); and in the domains of the
// devices that send from it, without remote access (keys).
type arena struct {
	mem  []byte
	size int // size of a block in bytes
	refs atomic.Int32

	mu   sync.Mutex
	keys []key
}

// key is a registration for sending. It holds a reference to the device.
type key struct {
	d  *device
	mr *verbs.MR
}

// newArena maps n blocks. The arena has one reference.
func newArena(n, size int) (*arena, error) {
	m, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n*size, err)
	}
	a := &arena{mem: m, size: size}
	a.refs.Store(1)
	return a, nil
}

// on returns the registration for sending with a device, which is made when it is first used.
func (a *arena) on(d *device) (*verbs.MR, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.keys {
		if k.d == d {
			return k.mr, nil
		}
	}
	if !d.retain() {
		return nil, d.lost()
	}
	mr, err := d.pd.Register(a.mem, verbs.LocalWrite)
	if err != nil {
		return nil, errors.Join(err, d.release())
	}
	a.keys = append(a.keys, key{d, mr})
	return mr, nil
}

// release removes a reference. The last call frees the memory.
func (a *arena) release() error {
	if a.refs.Add(-1) > 0 {
		return nil
	}
	var errs []error
	for _, k := range a.keys {
		errs = append(errs, k.mr.Close(), k.d.release())
	}
	return errors.Join(append(errs, unix.Munmap(a.mem))...)
}

// block is a place in an arena to which the peer of the link writes.
type block struct {
	l *link
	// i is the index of the block, and n the number of bytes in it.
	i, n int
	here bool // whether it has arrived and is not given back; guarded by the reader's mutex
}

var _ transport.Block = (*block)(nil)

func (b *block) Bytes() []byte {
	at := b.i * b.l.arena.size
	return b.l.arena.mem[at : at+b.n : at+b.n]
}

func (b *block) Scarce() bool { return 2*b.l.in.lent() >= len(b.l.in.blocks) }

func (b *block) Release() {
	l := b.l
	if l.ref.Acquire() { // otherwise the peer no longer writes to it
		if err := l.in.giveBack(b); err != nil {
			l.broken(err)
		}
		l.ref.Release()
	}
	_ = l.arena.release() // freeing failed: there is nothing to do
}

var _ transport.Lender = (*link)(nil)

func (l *link) MaxPiece() int { return int(l.out.remote.size) }

func (l *link) TryBorrow() (transport.Block, error) {
	if !l.ref.Acquire() {
		return nil, transport.ErrClosed
	}
	defer l.ref.Release()
	var b *block
	err := l.get(func() (_ bool, err error) {
		b, err = l.in.next()
		return l.in.head != l.in.tail || b != nil, err
	})
	if b == nil || err != nil {
		return nil, err // not a nil *block
	}
	l.arena.refs.Add(1)
	return b, nil
}

func (l *link) TrySend(head, body []byte) error {
	return l.piece(head, len(body), func() (verbs.Range, holder, error) {
		// The place in this end's memory that belongs to the peer's block is free when the block
		// is.
		a, i := l.out.own, l.out.free[0]
		if a == nil {
			var err error
			if a, err = newArena(int(l.out.remote.n), int(l.out.remote.size)); err != nil {
				return verbs.Range{}, nil, err
			}
			l.out.own = a
		}
		mr, err := a.on(l.d)
		if err != nil {
			return verbs.Range{}, nil, err
		}
		at := int(i) * a.size
		return verbs.Range{MR: mr, Off: at, Len: copy(a.mem[at:at+a.size], body)}, nil, nil
	})
}

func (l *link) TryLend(head []byte, b transport.Block, from int) error {
	k, ok := b.(*block)
	if !ok {
		err := l.TrySend(head, b.Bytes()[from:])
		if err == nil {
			b.Release()
		}
		return err
	}
	return l.piece(head, k.n-from, func() (verbs.Range, holder, error) {
		a := k.l.arena
		mr, err := a.on(l.d)
		return verbs.Range{MR: mr, Off: k.i*a.size + from, Len: k.n - from}, k, err
	})
}

// piece writes a piece of len(head) and n bytes when there is room for it. body returns the memory
// of the n bytes.
func (l *link) piece(head []byte, n int, body func() (verbs.Range, holder, error)) error {
	if len(head)+n > l.MaxPiece() {
		return fmt.Errorf("%s: piece of %d bytes, %d at most", l.remote, len(head)+n, l.MaxPiece())
	}
	if !l.ref.Acquire() {
		return transport.ErrClosed
	}
	defer l.ref.Release()
	return l.put(func() (bool, error) { return l.out.piece(head, body) })
}
