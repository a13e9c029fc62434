package forwarder

import (
	"fmt"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// A segment that comes as a block (transport.Lender) is passed on without copying its payload: the outgoing link sends from where the incoming
// one received. Only its head is copied, because the peer might change it after it has been checked.

// passHead is the head of a Data frame.
const passHead = wire.HeaderLen + wire.DataLen

// passage is a Data frame whose payload is in a block.
type passage struct {
	head  [passHead]byte
	block transport.Block
	f     *Forwarder
	count *counters // of its direction
	bytes int       // of payload
}

// end gives the block back.
func (p *passage) end() {
	p.block.Release()
	p.recycle()
}

// sent is end when the outgoing link has taken the block.
func (p *passage) sent(placed bool) {
	p.count.passed.Add(uint64(p.bytes))
	if placed {
		p.count.placed.Add(uint64(p.bytes))
	}
	p.recycle()
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

func (p *passage) recycle() {
	p.block, p.count = nil, nil
	p.f.passages.Put(p)
}

// pass relays the frame in a block.
func (c *conn) pass(b transport.Block) {
	if c.lingering {
		b.Release()
		return
	}
	p, ok := c.f.passages.Get().(*passage)
	if !ok {
		p = &passage{f: c.f}
	}
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
	d := m.job.table[h.Dst].Load()
	if d == nil || d.lender == nil || m.job.classic != nil || n > d.lender.MaxPiece() {
		buf := p.copy(&c.f.pool)
		if !c.relayOne(buf) {
			c.f.pool.put(buf)
		}
		return
	}
	var count tally
	count.add(&h)
	p.count, p.bytes = m.job.traffic(m.job.clusterOf[h.Src], int(h.Dst)), h.Payload()
	p.count.add(&count)
	if err := d.out.pass(h.Src, p); err != nil {
		c.bad(fmt.Sprintf("from rank %d for rank %d: %v", h.Src, h.Dst, err))
	}
}

// copy makes the frame independent of the block and ends the passage.
func (p *passage) copy(pool *pool) *buffer {
	b := p.block.Bytes()
	buf := pool.get(len(b))
	buf.b = append(append(buf.b, p.head[:]...), b[len(p.head):]...)
	p.end()
	return buf
}

// pass sends a frame from its block, or queues it. A block that its link is short of is not held in the queue: the frame is copied
// then, so that one slow destination does not stop what comes over that link for others.
func (o *output) pass(src uint32, p *passage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		p.end()
		return nil
	}
	if !o.pending() {
		err := o.lend(p)
		switch err {
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
	e := entry{src: src, payload: uint32(payload), control: passHead, end: passHead + payload}
	if p.block.Scarce() {
		e.buf = p.copy(o.pool)
		e.buf.refs++
	} else {
		e.pass = p
	}
	o.bulk.push(e)
	return nil
}

// passNext reports whether the next frame to write is in a block.
func (o *output) passNext() bool {
	return o.current.buf == nil && o.bulkTurn(o.small.n, o.bulk.n, o.skipped) && o.bulk.at(0).pass != nil
}

// passQueued sends the next frame, which is in a block; false if the link takes nothing now.
func (o *output) passQueued() bool {
	e := o.bulk.at(0)
	switch err := o.lend(e.pass); err {
	case nil:
	case transport.ErrAgain:
		return false
	default:
		o.fail(err)
		return false
	}
	done := o.bulk.pop()
	o.skipped = 0
	done.pass = nil
	o.uncharge(done)
	return true
}
