//go:build rdma && cgo

package verbs

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leidenzipper/zipper/cgo/verbs"
)

// half is the common part of the two directions of a link: a queue pair with a completion queue and
// channel of its own, and a ring of slots in registered memory.
type half struct {
	ch       *verbs.CompChannel
	cq       *verbs.CQ
	qp       *verbs.QP
	mr       *verbs.MR // registration of the ring
	slots    int
	slotSize int
	got      [32]verbs.Completion
}

// open creates the parts. After an error close frees the created ones.
func (h *half) open(d *device, pd *verbs.PD, c verbs.QPConfig) (err error) {
	if h.ch, err = d.ctx.NewCompChannel(); err != nil {
		return err
	}
	if h.cq, err = d.ctx.NewCQ(c.Sends+c.Recvs, h.ch); err != nil {
		return err
	}
	c.SendCQ, c.RecvCQ = h.cq, h.cq
	h.qp, err = pd.NewQP(c)
	return err
}

func (h *half) close() error {
	var errs []error
	if h.qp != nil {
		errs = append(errs, h.qp.Close())
	}
	if h.cq != nil {
		errs = append(errs, h.cq.Close())
	}
	if h.ch != nil {
		errs = append(errs, h.ch.Close())
	}
	if h.mr != nil {
		errs = append(errs, h.mr.Close())
	}
	return errors.Join(errs...)
}

func (h *half) slot(i, n int) verbs.Range {
	return verbs.Range{MR: h.mr, Off: i * h.slotSize, Len: n}
}

func (h *half) bytes(i, n int) []byte {
	at := i * h.slotSize
	return h.mr.Bytes()[at : at+n]
}

// writer is the sending direction. Counters count messages since the link began; a piece is a
// message, too.
//
//	completed ≤ posted ≤ allowed ≤ posted + window, posted − completed ≤ slots
type writer struct {
	mu sync.Mutex // guards all fields, because the writing thread and keep take completions
	half
	window    uint64 // number of the peer's receive slots
	size      int    // bytes of a message: the smaller of both slot sizes
	posted    uint64
	completed uint64
	allowed   uint64 // number of messages that the credit allows
	credits   uint64 // credit messages that have arrived

	remote remoteBlocks
	free   []uint32 // indices of the peer's blocks that may be written to
	// wrote has for each block of the peer the number of messages that had been posted with the
	// last piece written to it.
	wrote []uint64
	// own is memory to send pieces from that are not in a block here. It is as large as the peer's,
	// and made when needed.
	own *arena
	// lent has for each slot the further memory that its message is sent from.
	lent  []holder
	lents int  // number of its entries in flight
	armed bool // an event was requested and is not yet taken

	places []place // places where the peer expects pieces
	// withdrawn has places of this end whose withdrawal the peer has not been told yet.
	withdrawn []uint32
}

// holder is memory that is held while the adapter reads from it.
type holder interface{ Release() }

// open makes the queue pair. It never has more messages in flight than it has slots. A credit
// message returns at least one slot, or a block, so as many receives are enough for credit. A
// message may have a write before it.
func (w *writer) open(d *device, o Options) error {
	w.slots, w.slotSize = o.Slots, o.SlotSize
	w.lent = make([]holder, o.Slots)
	return w.half.open(d, d.pd, verbs.QPConfig{Sends: 2 * o.Slots, Recvs: o.Slots + maxBlocks, Inline: 64})
}

// start posts the receives for credit. peer has the number of receives that the peer posts.
func (w *writer) start(peer *hello) error {
	w.window, w.size = uint64(min(int(peer.slots), w.slots)), min(w.slotSize, int(peer.slotSize))
	w.allowed = w.window
	w.remote, w.wrote = peer.blocks, make([]uint64, peer.blocks.n)
	for i := range peer.blocks.n {
		w.free = append(w.free, i)
	}
	for range w.slots + int(peer.blocks.n) {
		if err := w.qp.PostRecv(0, verbs.Range{}); err != nil {
			return err
		}
	}
	return nil
}

// room returns the number of messages that may be sent now.
func (w *writer) room() int {
	return int(min(w.allowed-w.posted, uint64(w.slots)-(w.posted-w.completed)))
}

// poll takes all completions: ends of sends, and credit. It reports whether there were any.
func (w *writer) poll() (some bool, err error) {
	for n := len(w.got); n == len(w.got); {
		if n, err = w.take(); err != nil {
			return true, err
		}
		some = some || n > 0
	}
	return some, nil
}

func (w *writer) take() (n int, err error) {
	if n, err = w.cq.Poll(w.got[:]); err != nil {
		return n, err
	}
	for i := range w.got[:n] {
		switch c := &w.got[i]; {
		case c.Status != 0:
			return n, c.Status
		case !c.Recv:
			w.finished(c.ID)
		default:
			if err := w.credit(c); err != nil {
				return n, err
			}
			if err := w.qp.PostRecv(0, verbs.Range{}); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// finished records that the peer has received a message.
func (w *writer) finished(id uint64) {
	w.completed = id + 1
	if i := id % uint64(w.slots); w.lent[i] != nil {
		w.lent[i].Release()
		w.lent[i] = nil
		w.lents--
	}
}

// credit adds the credit of a message.
func (w *writer) credit(c *verbs.Completion) error {
	imm := immediate(c.Imm)
	if err := imm.whole(w.credits, c.Len); err != nil {
		return err
	}
	w.credits++
	switch i := uint32(imm.value()); {
	case imm.kind() == creditBlock:
		if i < w.remote.n && !slices.Contains(w.free, i) {
			w.free = append(w.free, i)
			return nil
		}
	case imm.kind() == creditSlots && i != 0 && uint64(i) <= w.window-(w.allowed-w.posted):
		w.allowed += uint64(i)
		return nil
	}
	return fmt.Errorf("the peer violates the protocol: credit %#x, %d of %d slots and %d of %d blocks are in use", c.Imm,
		w.posted+w.window-w.allowed, w.window, int(w.remote.n)-len(w.free), w.remote.n)
}

// notify asks for an event with the next completion. The caller must look for completions again.
func (w *writer) notify() error {
	if w.armed {
		return nil
	}
	w.armed = true
	return w.cq.Notify(false)
}

// event takes completions after an event, and asks for the next event while blocks wait to be given
// back.
func (w *writer) event() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	_, err := w.poll()
	if err == nil && w.lents > 0 {
		if err = w.notify(); err == nil {
			_, err = w.poll()
		}
	}
	return err
}

// piece writes head and the bytes from body into a block of the peer, if there is room for it.
func (w *writer) piece(head []byte, body func() (verbs.Range, holder, error)) (bool, error) {
	if ok, err := w.ready(); !ok || err != nil {
		return false, err
	}
	if !w.vacant() {
		if _, err := w.poll(); err != nil || !w.vacant() {
			return false, err
		}
	}
	more, b, err := body()
	if err != nil {
		return false, err
	}
	at := int(w.posted % uint64(w.slots))
	r := verbs.Request{ID: w.posted, Op: verbs.RDMAWriteImm, Flags: verbs.Signaled,
		Local: w.slot(at, copy(w.bytes(at, w.slotSize), head)), More: more,
		Imm:        uint32(makeImmediate(ofPiece, int(w.free[0]), w.posted)),
		RemoteAddr: w.remote.addr + uint64(w.free[0])*uint64(w.remote.size), RKey: w.remote.key}
	if r.Local.Len < len(head) || r.Local.Len+more.Len > int(w.remote.size) {
		return false, fmt.Errorf("piece of %d and %d bytes: too long", len(head), more.Len)
	}
	if err := w.postHolding(r, b); err != nil {
		return false, err
	}
	w.wrote[w.free[0]] = w.posted
	w.free = append(w.free[:0], w.free[1:]...)
	return true, nil
}

// vacant reports whether the next piece has a block. The peer may give one back before the adapter
// knows that the last piece in it has arrived. Until then the adapter needs the memory of that
// piece, which belongs to the block (TrySend), for a retransmission.
func (w *writer) vacant() bool { return len(w.free) > 0 && w.wrote[w.free[0]] <= w.completed }

// postHolding posts a message, and holds its memory until the peer has received it.
func (w *writer) postHolding(r verbs.Request, b holder) error {
	if b != nil { // it may complete at once
		if err := w.notify(); err != nil {
			return err
		}
	}
	if err := w.qp.Post(r); err != nil {
		return err
	}
	if b != nil {
		w.lent[w.posted%uint64(w.slots)] = b
		w.lents++
	}
	w.posted++
	return nil
}

// ready sends notes that are due, and then reports whether there is room for a message.
func (w *writer) ready() (bool, error) {
	for {
		if w.room() == 0 {
			if _, err := w.poll(); err != nil || w.room() == 0 {
				return false, err
			}
		}
		if len(w.withdrawn) == 0 {
			return true, nil
		}
		if err := w.withdraw(w.withdrawn[0]); err != nil {
			return false, err
		}
		w.withdrawn = append(w.withdrawn[:0], w.withdrawn[1:]...)
	}
}

// send copies as much of bufs as possible into slots and posts them.
func (w *writer) send(bufs [][]byte) (n int, err error) {
	k, off := 0, 0 // next byte to send: bufs[k][off]
	for {
		for k < len(bufs) && off == len(bufs[k]) {
			k, off = k+1, 0
		}
		if k == len(bufs) {
			return n, nil
		}
		if ok, err := w.ready(); !ok || err != nil {
			return n, err
		}
		i := int(w.posted % uint64(w.slots))
		p := w.bytes(i, w.size)
		m := 0
		for k < len(bufs) && m < len(p) {
			c := copy(p[m:], bufs[k][off:])
			if m, off = m+c, off+c; off == len(bufs[k]) {
				k, off = k+1, 0
			}
		}
		if err := w.post(i, m); err != nil {
			return n, err
		}
		n += m
	}
}

// post sends the first m bytes of a slot.
func (w *writer) post(i, m int) error {
	f := verbs.Signaled
	if m <= w.qp.Inline() {
		f |= verbs.SendInline
	}
	if err := w.qp.Post(verbs.Request{ID: w.posted, Op: verbs.SendImm, Flags: f, Local: w.slot(i, m),
		Imm: uint32(makeImmediate(ofBytes, m, w.posted))}); err != nil {
		return err
	}
	w.posted++
	return nil
}
