package relay

import (
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A segment that comes as a block (transport.Lender) or through a pipe (pipe.go) is forwarded
// without copying its payload: the outgoing link sends from where the incoming one received. Only
// its head is copied, because the peer might change it after it has been checked.

// dataHead is the head of a Data frame.
const dataHead = wire.HeaderLen + wire.DataLen

// zerocopy is a Data frame whose payload is in a block, or which is in a pipe as a whole.
type zerocopy struct {
	head  [dataHead]byte
	block transport.Block
	pipe  *transport.Pipe
	// the one that is filled: pipe, or a second, because pieces as small as packets take a place
	// each
	last  *transport.Pipe
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
