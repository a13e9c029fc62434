package relay

import (
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
	"github.com/leidenzipper/zipper/internal/wire"
)

// This file has the part of output that writes frames without a copy: from a block or out of a
// pipe.

// forward writes a frame from its block or pipe, or queues it. The frame is copied before it is
// queued if the link is short of blocks or few pipes are left, so that one slow destination does
// not block frames to others.
func (o *output) forward(from *memory, src uint32, p *zerocopy) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		p.end()
		return nil
	}
	if !o.pending() {
		switch err := o.send(p); err {
		case nil:
			return nil
		case transport.ErrAgain:
			o.arm(true)
		default:
			p.end()
			o.fail(err)
			return nil
		}
	}
	payload := p.bytes
	if err := o.charge(src, payload, dataHead); err != nil {
		p.end()
		return err
	}
	e := entry{src: src, payload: uint32(payload), control: dataHead, end: dataHead + payload, zc: p}
	o.noteQueued(&e)
	switch {
	case p.begun():
		o.current = e
		o.current.book(from, e.end)
		return nil
	case p.scarce():
		buf, err := p.copy(o.pool)
		if err != nil {
			o.uncharge(e)
			return err
		}
		e.zc, e.buf = nil, buf
		e.buf.refs++
		e.book(from, cap(buf.b))
	default:
		e.book(from, e.end)
	}
	o.bulk.push(e)
	return nil
}

// zerocopyNext reports whether the next frame to write is in a block or a pipe, rather than in a
// buffer.
func (o *output) zerocopyNext() bool {
	return o.current.zc != nil || o.current.buf == nil && o.count.buf == nil && o.bulkTurn(0, 0, o.skipped) && o.bulk.at(0).zc != nil
}

// forwardQueued writes the next frame, which must be in a block or a pipe (zerocopyNext). It
// returns true if all of the frame is written, and false if the link accepts no more now or has
// failed.
func (o *output) forwardQueued() bool {
	if o.current.zc == nil {
		p := o.bulk.at(0).zc
		err := o.send(p)
		if err == transport.ErrAgain && !p.begun() {
			return false
		}
		o.current = o.bulk.pop()
		o.skipped = 0
		return o.forwarded(err)
	}
	return o.forwarded(o.send(o.current.zc))
}

// forwarded handles err, the result of writing the current frame: it removes a written frame, and
// fails the link after an error. It returns false if the frame is not written.
func (o *output) forwarded(err error) bool {
	switch err {
	case nil:
	case transport.ErrAgain:
		return false
	default:
		o.fail(err)
		return false
	}
	o.uncharge(o.current)
	o.current = entry{}
	return true
}

// send passes the frame to the link. It passes a block as a whole or not at all, and of a pipe as
// many bytes as the link accepts; it returns ErrAgain if bytes are left.
func (o *output) send(p *zerocopy) error {
	if p.pipe == nil {
		return o.lend(p)
	}
	for _, pipe := range [...]*splice.Pipe{p.pipe, p.last} {
		for pipe.Len() > 0 {
			n, err := o.piper.TryDrain(pipe)
			if err != nil {
				return err
			}
			o.sent += uint64(n)
		}
	}
	p.sent(false)
	return nil
}

// lend passes a frame in a block to the link. The link writes the payload to the receive buffer
// that it belongs to, if the receiver has announced that buffer. It returns ErrAgain if the link
// has no room.
func (o *output) lend(p *zerocopy) error {
	n := uint64(dataHead + p.bytes)
	if o.placer == nil {
		err := o.lender.TryLend(p.head[:], p.block, dataHead)
		if err == nil {
			o.sent += n
			p.sent(false)
		}
		return err
	}
	d, err := wire.ParseData(p.head[wire.HeaderLen:])
	if err != nil {
		return err // unreachable: the head is complete
	}
	placed, err := o.placer.TryPlace(p.head[:], p.block, dataHead, d.Receiver, int64(d.Offset))
	if err == nil {
		o.sent += n
		p.sent(placed)
	}
	return err
}
