//go:build rdma && cgo

package verbs

import (
	"errors"
	"fmt"
	"sync"

	"github.com/leidenzipper/zipper/cgo/verbs"
)

// reader is the receiving direction.
type reader struct {
	half
	taken uint64 // number of messages that have arrived
	// ready is a ring of messages that have arrived and are not read, with as many entries as
	// slots.
	ready      []arrival
	head, tail uint64 // positions in ready: next to read, next to fill
	off        int    // bytes read of the first one
	freed      int    // slots that are posted again without the peer's knowledge
	batch      int    // number of slots worth a credit message
	armed      bool   // an event was requested and is not yet taken
	flushed    bool   // an error has ended the queue: no message arrives any more
	failed     error  // error of poll

	out *writer // writer of the same link, for notes

	mu      sync.Mutex // guards the fields below, because blocks are given back from any thread
	blocks  []block
	away    int    // number of blocks that have arrived and are not given back
	owed    []int  // indices of blocks that were given back, but not yet to the peer
	credits uint64 // credit messages since the link began
	telling int    // credit messages in flight

	expected map[uint32]*expected // places that were announced to the peer
	places   uint32               // number of the last place
}

// arrival is a message in a slot, or a piece in a block that used up a slot. Or it is a piece whose
// body is in place: then the slot has a note, followed by the piece's head.
type arrival struct {
	// n is the number of bytes to read.
	slot, n int
	block   *block
	head    int // bytes of the note
	body    []byte
}

func (r *reader) open(l *link, o Options) error {
	r.slots, r.slotSize, r.out = o.Slots, o.SlotSize, &l.out
	r.expected = map[uint32]*expected{}
	r.ready = make([]arrival, o.Slots)
	r.blocks = make([]block, o.Blocks)
	for i := range r.blocks {
		r.blocks[i] = block{l: l, i: i}
	}
	return r.half.open(l.d, l.pd, verbs.QPConfig{Sends: o.Slots + o.Blocks, Recvs: o.Slots})
}

// start posts all slots. When the peer, which has peerSlots slots to send from, waits for credit,
// less than a quarter of the smaller ring is missing.
func (r *reader) start(peerSlots int) error {
	r.batch = min(r.slots, peerSlots) / 4
	for i := range r.slots {
		if err := r.repost(i); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) repost(i int) error { return r.qp.PostRecv(uint64(i), r.slot(i, r.slotSize)) }

// poll takes completions: messages, and ends of credit messages. It leaves some only if there are
// messages to read, because an event only announces later ones. A failure is kept, because earlier
// messages may be read first.
func (r *reader) poll() error {
	for r.failed == nil {
		n, err := r.take()
		r.failed = err
		if err != nil || n < len(r.got) || r.head != r.tail {
			if err == nil && r.freed >= r.batch { // no one else reads notes
				err = r.tell()
			}
			return err
		}
	}
	return r.failed
}

func (r *reader) take() (n int, err error) {
	if n, err = r.cq.Poll(r.got[:]); err != nil {
		return n, err
	}
	for i := range r.got[:n] {
		switch c := &r.got[i]; {
		case c.Status != 0:
			r.flushed = true
			if c.Status == verbs.LengthError {
				return n, fmt.Errorf("the peer violates the protocol: a message of more than %d bytes", r.slotSize)
			}
			return n, c.Status
		case !c.Recv:
			r.mu.Lock()
			r.telling--
			r.mu.Unlock()
		default:
			imm := immediate(c.Imm)
			if err := imm.whole(r.taken, c.Len); err != nil {
				return n, err
			}
			r.taken++
			a := arrival{slot: int(c.ID), n: c.Len}
			switch imm.kind() {
			case ofBytes:
			case ofPiece:
				if a.block, err = r.arrived(c, imm.value()); err != nil {
					return n, err
				}
			default:
				whole, err := r.note(imm.kind(), c.Len, &a)
				if err != nil {
					return n, err
				}
				if !whole {
					if err := r.consumed(a.slot); err != nil {
						return n, err
					}
					continue
				}
			}
			r.ready[r.tail%uint64(r.slots)] = a
			r.tail++
		}
	}
	return n, nil
}

// arrived records a piece that the peer has written to a block.
func (r *reader) arrived(c *verbs.Completion, i int) (*block, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.blocks) || r.blocks[i].here || c.Len == 0 || c.Len > r.blocks[i].l.arena.size {
		return nil, fmt.Errorf("the peer violates the protocol: %d bytes in block %d", c.Len, i)
	}
	b := &r.blocks[i]
	b.n, b.here = c.Len, true
	r.away++
	return b, nil
}

func (r *reader) lent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

// read moves available bytes into p.
func (r *reader) read(p []byte) (n int, err error) {
	for n < len(p) {
		if r.head == r.tail {
			if err = r.poll(); r.head == r.tail {
				break
			}
		}
		a := &r.ready[r.head%uint64(r.slots)]
		var k int
		switch head := a.n - len(a.body); {
		case a.block != nil:
			k = copy(p[n:], a.block.Bytes()[r.off:])
		case r.off < head:
			k = copy(p[n:], r.bytes(a.slot, a.head+head)[a.head+r.off:])
		case n > 0: // bytes that are in place are not read together with those before
			return n, r.tell()
		default:
			body := a.body[r.off-head:]
			if start(p) != start(body) {
				err = errors.New("the peer violates the protocol: a piece was written to a wrong place")
			} else {
				k = min(len(p), len(body))
			}
		}
		n += k
		if r.off += k; r.off < a.n {
			if len(a.body) > 0 && n < len(p) && err == nil {
				continue
			}
			break
		}
		b := a.block
		if err = r.shift(); err == nil && b != nil {
			err = r.giveBack(b)
		}
		if err != nil {
			break
		}
	}
	if e := r.tell(); err == nil {
		err = e
	}
	return n, err
}

// shift removes the first arrival, but does not release its block.
func (r *reader) shift() error {
	a := &r.ready[r.head%uint64(r.slots)]
	slot := a.slot
	*a, r.off = arrival{}, 0
	r.head++
	return r.consumed(slot)
}

// consumed posts a slot again.
func (r *reader) consumed(slot int) error {
	r.freed++
	return r.repost(slot)
}

// next takes the first arrival if it is a block of which nothing was read.
func (r *reader) next() (b *block, err error) {
	if r.head == r.tail {
		err = r.poll()
	}
	if r.head != r.tail && r.off == 0 {
		if b = r.ready[r.head%uint64(r.slots)].block; b != nil {
			if err = r.shift(); err == nil {
				err = r.tell()
			}
		}
	}
	return b, err
}

// tell returns credit when it is worth a message.
func (r *reader) tell() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed >= r.batch && r.telling < r.slots {
		if err := r.credit(creditSlots, r.freed); err != nil {
			return err
		}
		r.freed = 0
	}
	return r.settle()
}

// giveBack tells the peer that it may write to a block again. Any thread may call it.
func (r *reader) giveBack(b *block) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.here = false
	r.away--
	r.owed = append(r.owed, b.i)
	return r.settle()
}

// settle sends the credits of blocks as far as there is room, and the rest when messages have
// ended.
func (r *reader) settle() error {
	for len(r.owed) > 0 && r.telling < r.slots+len(r.blocks) {
		if err := r.credit(creditBlock, r.owed[0]); err != nil {
			return err
		}
		r.owed = append(r.owed[:0], r.owed[1:]...)
	}
	return nil
}

func (r *reader) credit(kind, value int) error {
	imm := makeImmediate(kind, value, r.credits)
	r.credits++
	r.telling++
	return r.qp.Post(verbs.Request{Op: verbs.SendImm, Flags: verbs.Signaled, Imm: uint32(imm)})
}

// arm asks for an event with the next completion.
func (r *reader) arm() error {
	if r.armed { // if the event has arrived already, the descriptor is readable
		return nil
	}
	if err := r.cq.Notify(false); err != nil {
		return err
	}
	r.armed = true
	return nil
}

// disarm takes the event, if it has arrived. The caller must look for completions again.
func (r *reader) disarm() (bool, error) {
	got, err := r.ch.Event()
	if got {
		r.armed = false
	}
	return got, err
}
