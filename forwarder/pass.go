package forwarder

import (
	"fmt"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// A segment that comes as a block (transport.Lender) or through a pipe (pipe.go) is passed on without copying its payload: the outgoing link sends from where
// the incoming one received. Only its head is copied, because the peer might change it after it has been checked.

// passHead is the head of a Data frame.
const passHead = wire.HeaderLen + wire.DataLen

// passage is a Data frame whose payload is in a block, or which is in a pipe as a whole.
type passage struct {
	head  [passHead]byte
	block transport.Block
	pipe  *transport.Pipe
	last  *transport.Pipe // which is filled: pipe, or a second one, because pieces as small as a network's packets take a place each
	f     *Forwarder
	count *counters // of its direction
	bytes int       // of payload
}

func (f *Forwarder) passage() *passage {
	if p, ok := f.passages.Get().(*passage); ok {
		return p
	}
	return &passage{f: f}
}

// end gives the block or the pipe back.
func (p *passage) end() {
	if p.block != nil {
		p.block.Release()
	}
	p.recycle()
}

// sent is end when the outgoing link has taken it: a block then belongs to that.
func (p *passage) sent(placed bool) {
	p.count.passed.Add(uint64(p.bytes))
	if placed {
		p.count.placed.Add(uint64(p.bytes))
	}
	p.recycle()
}

func (p *passage) recycle() {
	if p.last != p.pipe {
		p.f.pipes.put(p.last)
	}
	if p.pipe != nil {
		p.f.pipes.put(p.pipe)
	}
	p.block, p.pipe, p.last, p.count = nil, nil, nil, nil
	p.f.passages.Put(p)
}

// left is how much of a frame in pipes is not there, yet or any more.
func (p *passage) left() int {
	n := passHead + p.bytes - p.pipe.Len()
	if p.last != p.pipe {
		n -= p.last.Len()
	}
	return n
}

// widen takes a second pipe if the first one has no more places.
func (p *passage) widen() bool {
	if p.last != p.pipe {
		return false
	}
	more := p.f.pipes.get(p.f.cfg.pipeSize)
	if more == nil {
		return false
	}
	p.last = more
	return true
}

// scarce tells that what holds it is needed by others.
func (p *passage) scarce() bool {
	if p.pipe != nil {
		return p.f.pipes.scarce()
	}
	return p.block.Scarce()
}

// fits reports whether a link can take it as it is.
func (p *passage) fits(d *conn) bool {
	if p.pipe != nil {
		return d.piper != nil
	}
	return d.lender != nil && passHead+p.bytes <= d.lender.MaxPiece()
}

// begun reports whether a part has been written.
func (p *passage) begun() bool { return p.pipe != nil && p.left() > 0 }

// send gives the frame to the link: one in a block as a whole or not at all, what is in a pipe as far as the link takes it (then ErrAgain).
func (o *output) send(p *passage) error {
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

// lend gives the frame to the link, which puts the payload into the receive that it belongs to, if that has told the link where it is.
func (o *output) lend(p *passage) error {
	if o.placer == nil {
		err := o.lender.TryLend(p.head[:], p.block, passHead)
		if err == nil {
			p.sent(false)
		}
		return err
	}
	d, err := wire.ParseData(p.head[wire.HeaderLen:])
	if err != nil {
		return err // cannot be: the head is whole
	}
	placed, err := o.placer.TryPlace(p.head[:], p.block, passHead, d.Receiver, int64(d.Offset))
	if err == nil {
		p.sent(placed)
	}
	return err
}

// pass relays the frame in a block.
func (c *conn) pass(b transport.Block) {
	if c.lingering {
		b.Release()
		return
	}
	p := c.f.passage()
	p.block = b
	n := len(b.Bytes())
	copy(p.head[:], b.Bytes())
	m := c.member.Load()
	h, err := wire.ParseHeader(p.head[:])
	if err == nil && (h.Type != wire.TypeData || wire.HeaderLen+int(h.Length) != n) {
		err = fmt.Errorf("%v frame of %d bytes in a block with %d", h.Type, wire.HeaderLen+int(h.Length), n)
	}
	if err == nil {
		err = c.allowed(&h, m)
	}
	if err != nil {
		p.end()
		c.bad(err.Error())
		return
	}
	if m == nil {
		m = c.member.Load()
	}
	p.bytes = h.Payload()
	c.passOn(p, &h, m)
}

// passOn relays a frame that has been checked.
func (c *conn) passOn(p *passage, h *wire.Header, m *member) {
	d := m.job.table[h.Dst].Load()
	if d == nil || m.job.classic != nil || !p.fits(d) {
		buf, err := p.copy(&c.f.pool)
		if err != nil {
			c.bad(err.Error())
			return
		}
		if !c.relayOne(buf) {
			c.f.pool.put(buf)
		}
		return
	}
	if p.pipe != nil {
		c.loop.prio.moved += p.bytes
	}
	var count tally
	count.add(h)
	p.count = m.job.traffic(m.job.clusterOf[h.Src], int(h.Dst))
	p.count.add(&count)
	if err := d.out.pass(h.Src, p); err != nil {
		c.bad(fmt.Sprintf("from rank %d for rank %d: %v", h.Src, h.Dst, err))
	}
}

// copy makes the frame, or what is there of it, independent of the block or the pipe and ends the passage.
func (p *passage) copy(pool *pool) (*buffer, error) {
	defer p.end()
	buf := pool.get(passHead + p.bytes)
	if p.pipe == nil {
		buf.b = append(append(buf.b, p.head[:]...), p.block.Bytes()[passHead:]...)
		return buf, nil
	}
	n := p.pipe.Len()
	buf.b = buf.b[:passHead+p.bytes-p.left()]
	if err := p.pipe.Read(buf.b[:n]); err != nil {
		return buf, err
	}
	return buf, p.last.Read(buf.b[n:])
}

// pass sends a frame from its block or pipe, or queues it. A block that its link is short of is not held in the queue, nor a pipe when few are left: the
// frame is copied then, so that one slow destination does not stop what goes to others.
func (o *output) pass(src uint32, p *passage) error {
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
	if err := o.charge(src, payload, passHead); err != nil {
		p.end()
		return err
	}
	e := entry{src: src, payload: uint32(payload), control: passHead, end: passHead + payload, pass: p}
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
		e.pass, e.buf = nil, buf
		e.buf.refs++
	}
	o.bulk.push(e)
	return nil
}

// passNext reports whether what is next to write is in a block or a pipe.
func (o *output) passNext() bool {
	return o.current.pass != nil || o.current.buf == nil && o.bulkTurn(o.small.n, o.bulk.n, o.skipped) && o.bulk.at(0).pass != nil
}

// passQueued sends what is next, which is in a block or a pipe; false if the link takes no more now.
func (o *output) passQueued() bool {
	if o.current.pass == nil {
		p := o.bulk.at(0).pass
		err := o.send(p)
		if err == transport.ErrAgain && !p.begun() {
			return false
		}
		o.current = o.bulk.pop()
		o.skipped = 0
		return o.passed(err)
	}
	return o.passed(o.send(o.current.pass))
}

// passed notes what came of writing the current frame.
func (o *output) passed(err error) bool {
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
