package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// A segment that comes as a block (transport.Lender) or through a pipe (pipe.go) is forwarded without copying
// its payload: the outgoing link sends from where the incoming one received. Only its head is copied, because
// the peer might change it after it has been checked.

// dataHead is the head of a Data frame.
const dataHead = wire.HeaderLen + wire.DataLen

// zerocopy is a Data frame whose payload is in a block, or which is in a pipe as a whole.
type zerocopy struct {
	head  [dataHead]byte
	block transport.Block
	pipe  *transport.Pipe
	last  *transport.Pipe // the one that is filled: pipe, or a second, because pieces as small as packets take a place each
	r     *Relay
	count *counters // of its direction
	bytes int       // of payload
}

func (r *Relay) zerocopy() *zerocopy {
	if p, ok := r.zerocopies.Get().(*zerocopy); ok {
		return p
	}
	return &zerocopy{r: r}
}

// end gives the block or the pipe back.
func (p *zerocopy) end() {
	if p.block != nil {
		p.block.Release()
	}
	p.recycle()
}

// sent is end when the outgoing link has taken it: a block then belongs to that.
func (p *zerocopy) sent(placed bool) {
	p.count.passed.Add(uint64(p.bytes))
	if placed {
		p.count.placed.Add(uint64(p.bytes))
	}
	p.recycle()
}

func (p *zerocopy) recycle() {
	if p.last != p.pipe {
		p.r.pipes.put(p.last)
	}
	if p.pipe != nil {
		p.r.pipes.put(p.pipe)
	}
	p.block, p.pipe, p.last, p.count = nil, nil, nil, nil
	p.r.zerocopies.Put(p)
}

// left is how much of a frame in pipes is not there, yet or any more.
func (p *zerocopy) left() int {
	n := dataHead + p.bytes - p.pipe.Len()
	if p.last != p.pipe {
		n -= p.last.Len()
	}
	return n
}

// widen takes a second pipe if the first one has no more places.
func (p *zerocopy) widen() bool {
	if p.last != p.pipe {
		return false
	}
	more := p.r.pipes.get(p.r.cfg.PipeSize)
	if more == nil {
		return false
	}
	p.last = more
	return true
}

// scarce tells that what holds it is needed by others.
func (p *zerocopy) scarce() bool {
	if p.pipe != nil {
		return p.r.pipes.scarce()
	}
	return p.block.Scarce()
}

// fits reports whether a link can take it as it is.
func (p *zerocopy) fits(d *Conn) bool {
	if p.pipe != nil {
		return d.piper != nil
	}
	return d.lender != nil && dataHead+p.bytes <= d.lender.MaxPiece()
}

// begun reports whether a part has been written.
func (p *zerocopy) begun() bool { return p.pipe != nil && p.left() > 0 }

// send gives the frame to the link: one in a block as a whole or not at all, what is in a pipe as far as the
// link takes it (then ErrAgain).
func (o *output) send(p *zerocopy) error {
	if p.pipe == nil {
		return o.lend(p)
	}
	for _, pipe := range [...]*transport.Pipe{p.pipe, p.last} {
		for pipe.Len() > 0 {
			if _, err := o.piper.TryDrain(pipe); err != nil {
				return err
			}
		}
	}
	p.sent(false)
	return nil
}

// lend gives the frame to the link, which puts the payload into the receive that it belongs to, if that has
// told the link where it is.
func (o *output) lend(p *zerocopy) error {
	if o.placer == nil {
		err := o.lender.TryLend(p.head[:], p.block, dataHead)
		if err == nil {
			p.sent(false)
		}
		return err
	}
	d, err := wire.ParseData(p.head[wire.HeaderLen:])
	if err != nil {
		return err // cannot be: the head is whole
	}
	placed, err := o.placer.TryPlace(p.head[:], p.block, dataHead, d.Receiver, int64(d.Offset))
	if err == nil {
		p.sent(placed)
	}
	return err
}

// forwardBlock relays the frame in a block.
func (c *Conn) forwardBlock(b transport.Block) {
	if !c.live() {
		b.Release()
		return
	}
	p := c.shared.zerocopy()
	p.block = b
	n := len(b.Bytes())
	copy(p.head[:], b.Bytes())
	r := c.route.Load()
	h, err := wire.ParseHeader(p.head[:])
	if err == nil && (h.Type != wire.TypeData || wire.HeaderLen+int(h.Length) != n) {
		err = fmt.Errorf("%v frame of %d bytes in a block with %d", h.Type, wire.HeaderLen+int(h.Length), n)
	}
	if err == nil {
		err = c.allowed(&h, r)
	}
	if err != nil {
		p.end()
		c.Bad(err.Error())
		return
	}
	if r == nil {
		r = c.route.Load()
	}
	p.bytes = h.Payload()
	c.forward(p, &h, r)
}

// forward relays a frame that has been checked.
func (c *Conn) forward(p *zerocopy, h *wire.Header, r *Route) {
	d := r.Table[h.Dst].Load()
	if d == nil || r.Classic != nil || !p.fits(d) {
		buf, err := p.copy(&c.shared.pool)
		if err != nil {
			c.Bad(err.Error())
			return
		}
		if !c.relayOne(buf) {
			c.shared.pool.put(buf)
		}
		return
	}
	if p.pipe != nil {
		c.worker.Loop.Moved(p.bytes)
	}
	var count tally
	count.add(h)
	p.count = r.Counts.between(h.Src, h.Dst)
	p.count.add(&count)
	if err := d.out.forward(h.Src, p); err != nil {
		c.Bad(fmt.Sprintf("from rank %d for rank %d: %v", h.Src, h.Dst, err))
	}
}

// copy makes the frame, or what is there of it, independent of the block or the pipe and ends it.
func (p *zerocopy) copy(pool *pool) (*buffer, error) {
	defer p.end()
	buf := pool.get(dataHead + p.bytes)
	if p.pipe == nil {
		buf.b = append(append(buf.b, p.head[:]...), p.block.Bytes()[dataHead:]...)
		return buf, nil
	}
	n := p.pipe.Len()
	buf.b = buf.b[:dataHead+p.bytes-p.left()]
	if err := p.pipe.Read(buf.b[:n]); err != nil {
		return buf, err
	}
	return buf, p.last.Read(buf.b[n:])
}

// forward sends a frame from its block or pipe, or queues it. A block that its link is short of is not held in
// the queue, nor a pipe when few are left: the frame is copied then, so that one slow destination does not stop
// what goes to others.
func (o *output) forward(src uint32, p *zerocopy) error {
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
	switch {
	case p.begun():
		o.current = e
		return nil
	case p.scarce():
		buf, err := p.copy(o.pool)
		if err != nil {
			o.uncharge(e)
			return err
		}
		e.zc, e.buf = nil, buf
		e.buf.refs++
	}
	o.bulk.push(e)
	return nil
}

// zerocopyNext reports whether what is next to write is in a block or a pipe.
func (o *output) zerocopyNext() bool {
	return o.current.zc != nil || o.current.buf == nil && o.bulkTurn(o.small.n, o.bulk.n, o.skipped) && o.bulk.at(0).zc != nil
}

// forwardQueued sends what is next, which is in a block or a pipe; false if the link takes no more now.
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

// forwarded notes what came of writing the current frame.
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
