package relay

import (
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A segment that arrives as a block (transport.Lender) or through a pipe (pipe.go) is forwarded
// without a copy of its payload: the outgoing link sends from where the incoming one received. Only
// its head is copied, because the peer might change the head after it has been checked.

// dataHead is the length of the head of a Data frame.
const dataHead = wire.HeaderLen + wire.DataLen

// zerocopy is a Data frame whose payload is in a block, or which is entirely in a pipe.
type zerocopy struct {
	head  [dataHead]byte  // the header, and the body without the payload, of the frame
	block transport.Block // the memory block of the link with the frame, or nil
	pipe  *splice.Pipe    // the pipe with the beginning of the frame, or nil
	// last is the pipe that is being filled: pipe, or a second one, because small pieces, such as
	// packets, take one slot each.
	last  *splice.Pipe
	r     *Relay    // the Relay to which the pipes are returned
	count *counters // the counters of the traffic between the clusters of sender and receiver
	bytes int       // the length of the payload in bytes
}

// zerocopy returns an unused value of type zerocopy, for a frame to be forwarded without a copy.
func (r *Relay) zerocopy() *zerocopy {
	if p, ok := r.zerocopies.Get().(*zerocopy); ok {
		return p
	}
	return &zerocopy{r: r}
}

// end releases the frame's block or pipes, and p itself for reuse.
func (p *zerocopy) end() {
	if p.block != nil {
		p.block.Release()
	}
	p.recycle()
}

// sent ends the frame because the outgoing link has accepted it; a block then belongs to the link.
// placed says that the link has written the payload to the receive buffer.
func (p *zerocopy) sent(placed bool) {
	p.count.passed.Add(uint64(p.bytes))
	if placed {
		p.count.placed.Add(uint64(p.bytes))
	}
	p.recycle()
}

// recycle releases the frame's pipes, and p itself, for reuse.
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

// left returns the number of bytes of a frame that are not in its pipes: either not yet or no
// longer.
func (p *zerocopy) left() int {
	n := dataHead + p.bytes - p.pipe.Len()
	if p.last != p.pipe {
		n -= p.last.Len()
	}
	return n
}

// widen adds a second pipe to the frame, because the first one has no more slots. It returns false
// if the frame has two already, or no pipe is free.
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

// scarce reports whether few blocks or pipes are free, so that the frame must not keep its own
// while it waits.
func (p *zerocopy) scarce() bool {
	if p.pipe != nil {
		return p.r.pipes.scarce()
	}
	return p.block.Scarce()
}

// fits reports whether the link of connection d can send the frame without a copy: the link
// supports pipes if the frame is in a pipe; otherwise it supports blocks, and the frame is no
// longer than its largest piece.
func (p *zerocopy) fits(d *Conn) bool {
	if p.pipe != nil {
		return d.piper != nil
	}
	return d.lender != nil && dataHead+p.bytes <= d.lender.MaxPiece()
}

// begun reports whether a part of the frame in a pipe has been written.
func (p *zerocopy) begun() bool { return p.pipe != nil && p.left() > 0 }

// copy copies the frame, or those of its bytes that have arrived, to a buffer from pool. It
// releases p with its block or pipes for reuse, so that the caller must not use p afterwards.
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
