package forwarder

import (
	"fmt"

	"github.com/leidenzipper/zipper/wire"
)

// input is the reading side of a link: it cuts the stream into whole frames. Between reads it keeps only a frame
// that has begun, so an idle link has no buffer.
type input struct {
	head  [wire.HeaderLen]byte // beginning of a header
	nhead int
	part  *buffer // frame whose header is known and whose rest is to come
	need  int     // its whole length

	bulk    bool     // the last frame was one that a pipe could have taken: the next may be, too
	piped   *passage // frame whose head is in a pipe and whose rest is to come
	stalled bool     // nothing went into the pipe last time: is it full?
}

// fill reads once and handles the whole frames. full: there may be more to read at once.
func (in *input) fill(c *conn) (full bool, err error) {
	if in.part != nil {
		return in.finish(c)
	}
	if in.piped != nil {
		return in.pipe(c)
	}
	if c.lender != nil && in.nhead == 0 {
		b, err := c.lender.TryBorrow()
		if err != nil {
			return false, err
		}
		if b != nil {
			c.heard, c.pinged = c.loop.now, false
			c.pass(b)
			return true, nil
		}
	}
	p := c.loop.buf
	if in.bulk {
		p = p[:passHead]
	}
	have := copy(p, in.head[:in.nhead])
	n, err := c.link.TryRead(p[have:])
	if err != nil {
		return false, err
	}
	c.heard, c.pinged = c.loop.now, false
	in.nhead = 0
	full = have+n == len(p) || c.lender != nil // a block may be next
	if in.bulk && have+n == passHead && in.begin(c, p) {
		return in.pipe(c)
	}
	in.split(c, p[:have+n])
	return full || in.part != nil, nil
}

// finish reads the rest of a frame straight to where its beginning is.
func (in *input) finish(c *conn) (full bool, err error) {
	buf := in.part
	have := len(buf.b)
	n, err := c.link.TryRead(buf.b[have:in.need])
	if err != nil {
		return false, err
	}
	c.heard, c.pinged = c.loop.now, false
	buf.b = buf.b[:have+n]
	if len(buf.b) < in.need {
		return false, nil
	}
	in.part = nil
	if c.lingering || !c.relayOne(buf) {
		c.f.pool.put(buf)
	}
	return true, nil
}

// split handles the frames in p: runs of frames for the same rank are relayed with one write.
func (in *input) split(c *conn, p []byte) {
	off := 0
	run := run{c: c, m: c.member.Load()}
	for !c.lingering && !c.ended {
		h, err := wire.ParseHeader(p[off:])
		if err == wire.ErrShort {
			break
		}
		if err == nil {
			err = c.allowed(&h, run.m)
		}
		if err != nil {
			run.flush(p)
			c.bad(err.Error())
			return
		}
		in.bulk = c.pipeable(&h)
		end := off + wire.HeaderLen + int(h.Length)
		if end > len(p) {
			run.flush(p)
			if c.lingering || c.ended {
				return
			}
			in.part, in.need = c.f.pool.get(end-off), end-off
			in.part.b = append(in.part.b, p[off:]...)
			return
		}
		if h.Type.BetweenRanks() {
			run.add(p, &h, off, end)
		} else {
			run.flush(p)
			c.control(&h, p[off+wire.HeaderLen:end])
			run.m = c.member.Load()
		}
		off = end
	}
	run.flush(p)
	if !c.lingering && !c.ended {
		in.nhead = copy(in.head[:], p[off:])
	}
}

// allowed checks a header before anything is done, or memory taken, for the frame.
func (c *conn) allowed(h *wire.Header, m *member) error {
	if m == nil {
		if m = c.running(); m == nil {
			switch h.Type {
			case wire.TypeJoin, wire.TypeRefuse, wire.TypePong, wire.TypePing, wire.TypeChallenge, wire.TypeBridge, wire.TypeReady:
				return nil // the exchange knows which of them may come
			}
			return fmt.Errorf("%v frame before the job is complete", h.Type)
		}
	}
	if m.bridge != nil {
		return m.bridge.allowed(h)
	}
	if !h.Type.BetweenRanks() {
		switch h.Type {
		case wire.TypeAbort, wire.TypeBye, wire.TypePing, wire.TypePong:
			return nil
		}
		return fmt.Errorf("%v frame in a running job", h.Type)
	}
	if h.Src != m.rank {
		return fmt.Errorf("%v frame with source %d from rank %d", h.Type, h.Src, m.rank)
	}
	if int64(h.Dst) >= int64(len(m.job.table)) {
		return fmt.Errorf("%v frame for rank %d of %d", h.Type, h.Dst, len(m.job.table))
	}
	return nil
}

// running returns the link's place in its job, or nil. The first frames may come while another loop is still
// busy with starting the job: the lock waits for that.
func (c *conn) running() *member {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.member.Load()
}

// drop gives up a frame that has begun.
func (in *input) drop(c *conn) {
	if in.part != nil {
		c.f.pool.put(in.part)
		in.part = nil
	}
	if in.piped != nil {
		in.piped.end()
		in.piped = nil
	}
	in.nhead = 0
}
