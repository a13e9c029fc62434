//go:build rdma && cgo

package verbs

import (
	"fmt"

	"github.com/leidenzipper/zipper/cgo/verbs"
)

// reader is the receiving direction.
type reader struct {
	half
	ready      []arrival // ring of messages that have come and are not read; as many places as slots
	head, tail uint64    // of it: next to read, next to fill
	off        int       // bytes read of the first one
	freed      int       // slots that are posted again and of which the peer does not know
	telling    int       // credit messages on their way
	batch      int       // slots worth a credit message
	armed      bool      // an event is asked for and not yet taken
	flushed    bool      // an error has ended the queue: no message comes any more
}

// arrival is a message in a slot.
type arrival struct{ slot, n int }

func (r *reader) open(d *device, slots, slotSize int) error {
	r.slots, r.slotSize = slots, slotSize
	r.ready = make([]arrival, slots)
	return r.half.open(d, verbs.QPConfig{Sends: slots, Recvs: slots})
}

// start posts all slots. The peer, which has this many slots to send from, lacks less than a quarter of the smaller
// ring when it waits for credit.
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

// poll takes completions: messages, and ends of credit messages.
func (r *reader) poll() error {
	n, err := r.cq.Poll(r.got[:])
	if err != nil {
		return err
	}
	for i := range r.got[:n] {
		switch c := &r.got[i]; {
		case c.Status != 0:
			r.flushed = true
			if c.Status == verbs.LengthError {
				return fmt.Errorf("the peer breaks the rules: a message of more than %d bytes", r.slotSize)
			}
			return c.Status
		case !c.Recv:
			r.telling--
		default:
			r.ready[r.tail%uint64(r.slots)] = arrival{int(c.ID), c.Len}
			r.tail++
		}
	}
	return nil
}

// read moves what is there into p.
func (r *reader) read(p []byte) (n int, err error) {
	for n < len(p) {
		if r.head == r.tail {
			if err = r.poll(); r.head == r.tail {
				break
			}
		}
		a := r.ready[r.head%uint64(r.slots)]
		k := copy(p[n:], r.bytes(a.slot, a.n)[r.off:])
		n += k
		if r.off += k; r.off < a.n {
			break
		}
		r.off = 0
		r.head++
		if e := r.repost(a.slot); e != nil {
			err = e
			break
		}
		r.freed++
	}
	if e := r.tell(); err == nil {
		err = e
	}
	return n, err
}

// tell gives credit back when it is worth a message.
func (r *reader) tell() error {
	if r.freed < r.batch || r.telling == r.slots {
		return nil
	}
	if err := r.qp.Post(verbs.Request{Op: verbs.SendImm, Flags: verbs.Signaled, Imm: uint32(r.freed)}); err != nil {
		return err
	}
	r.freed = 0
	r.telling++
	return nil
}

// arm asks for an event with the next completion.
func (r *reader) arm() error {
	if r.armed { // and if it has come already, the descriptor says so
		return nil
	}
	if err := r.cq.Notify(false); err != nil {
		return err
	}
	r.armed = true
	return nil
}

// disarm takes the event away, if it has come. Look for completions again after it.
func (r *reader) disarm() (bool, error) {
	got, err := r.ch.Event()
	if got {
		r.armed = false
	}
	return got, err
}
