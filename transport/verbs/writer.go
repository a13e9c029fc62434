//go:build rdma && cgo

package verbs

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/cgo/verbs"
)

// half is what the two directions of a link have in common: a queue pair with a completion queue and channel of
// its own, and a ring of slots in registered memory.
type half struct {
	ch       *verbs.CompChannel
	cq       *verbs.CQ
	qp       *verbs.QP
	mr       *verbs.MR // of the link
	off      int       // of the ring in mr
	slots    int
	slotSize int
	got      [32]verbs.Completion
}

// open makes the parts. After an error close frees what was made.
func (h *half) open(d *device, c verbs.QPConfig) (err error) {
	if h.ch, err = d.ctx.NewCompChannel(); err != nil {
		return err
	}
	if h.cq, err = d.ctx.NewCQ(c.Sends+c.Recvs, h.ch); err != nil {
		return err
	}
	c.SendCQ, c.RecvCQ = h.cq, h.cq
	h.qp, err = d.pd.NewQP(c)
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
	return errors.Join(errs...)
}

func (h *half) slot(i, n int) verbs.Range {
	return verbs.Range{MR: h.mr, Off: h.off + i*h.slotSize, Len: n}
}

func (h *half) bytes(i, n int) []byte {
	at := h.off + i*h.slotSize
	return h.mr.Bytes()[at : at+n]
}

// writer is the sending direction. Counters count messages since the link began.
//
//	completed ≤ posted ≤ allowed ≤ posted + window, posted − completed ≤ slots
type writer struct {
	half
	window    uint64 // the peer's receive slots
	size      int    // bytes of a message: the smaller of both slot sizes
	posted    uint64
	completed uint64
	allowed   uint64 // credit
}

// open makes the queue pair. It never has more messages on their way than it has slots, and a credit message gives
// at least one back, so as many receives are enough for credit.
func (w *writer) open(d *device, slots, slotSize int) error {
	w.slots, w.slotSize = slots, slotSize
	return w.half.open(d, verbs.QPConfig{Sends: slots, Recvs: slots, Inline: 64})
}

// start posts the receives for credit; the peer has told how many receives it posts.
func (w *writer) start(peerSlots, peerSize int) error {
	w.window, w.size = uint64(min(peerSlots, w.slots)), min(w.slotSize, peerSize)
	w.allowed = w.window
	for range w.slots {
		if err := w.qp.PostRecv(0, verbs.Range{}); err != nil {
			return err
		}
	}
	return nil
}

// room is how many messages may be sent now.
func (w *writer) room() int {
	return int(min(w.allowed-w.posted, uint64(w.slots)-(w.posted-w.completed)))
}

// poll takes completions: ends of sends, and credit. It reports whether there were some.
func (w *writer) poll() (bool, error) {
	n, err := w.cq.Poll(w.got[:])
	if err != nil {
		return false, err
	}
	for i := range w.got[:n] {
		switch c := &w.got[i]; {
		case c.Status != 0:
			return true, c.Status
		case !c.Recv:
			w.completed = c.ID + 1
		case !c.HasImm || c.Len != 0 || uint64(c.Imm) > w.window-(w.allowed-w.posted) || c.Imm == 0:
			return true, fmt.Errorf("the peer breaks the rules: credit for %d slots, %d of %d are in use", c.Imm, w.posted+w.window-w.allowed, w.window)
		default:
			w.allowed += uint64(c.Imm)
			if err := w.qp.PostRecv(0, verbs.Range{}); err != nil {
				return true, err
			}
		}
	}
	return n > 0, nil
}

// send copies what it can of bufs into slots and posts them.
func (w *writer) send(bufs [][]byte) (n int, err error) {
	k, off := 0, 0 // next byte to send: bufs[k][off]
	for {
		for k < len(bufs) && off == len(bufs[k]) {
			k, off = k+1, 0
		}
		if k == len(bufs) {
			return n, nil
		}
		if w.room() == 0 {
			if _, err := w.poll(); err != nil {
				return n, err
			}
			if w.room() == 0 {
				return n, nil
			}
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
	if err := w.qp.Post(verbs.Request{ID: w.posted, Op: verbs.Send, Flags: f, Local: w.slot(i, m)}); err != nil {
		return err
	}
	w.posted++
	return nil
}
