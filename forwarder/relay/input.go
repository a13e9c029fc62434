package relay

import "github.com/leidenzipper/zipper/internal/wire"

// fill reads from the link once, and handles the frames that are complete. It returns full if more
// input may be available at once.
func (in *input) fill(c *Conn) (full bool, err error) {
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
			c.lastRead, c.pinged = c.Now(), false
			in.read += uint64(len(b.Bytes()))
			c.forwardBlock(b)
			return true, nil
		}
	}
	p := c.worker.buf
	if in.bulk {
		p = p[:dataHead]
	}
	have := copy(p, in.head[:in.nhead])
	n, err := c.link.TryRead(p[have:])
	if err != nil {
		return false, err
	}
	c.lastRead, c.pinged = c.Now(), false
	in.read += uint64(n)
	in.nhead = 0
	full = have+n == len(p) || c.lender != nil // the next piece may be a block
	if in.bulk && have+n == dataHead && in.begin(c, p) {
		return in.pipe(c)
	}
	in.split(c, p[:have+n])
	return full || in.part != nil, nil
}

// finish reads the rest of an incomplete frame into the buffer that has its beginning, and handles
// the frame once it is complete. It returns full if more input may be available at once.
func (in *input) finish(c *Conn) (full bool, err error) {
	buf := in.part
	have := len(buf.b)
	n, err := c.link.TryRead(buf.b[have:min(in.need, cap(buf.b))])
	if err != nil {
		return false, err
	}
	c.lastRead, c.pinged = c.Now(), false
	in.read += uint64(n)
	buf.b = buf.b[:have+n]
	if len(buf.b) < in.need {
		if len(buf.b) == cap(buf.b) {
			in.grow(c)
		}
		return false, nil
	}
	in.part = nil
	c.memory.release(cap(buf.b)) // relayOne charges it again if the frame is queued
	if !c.heeded() || !c.relayOne(buf) {
		c.shared.pool.put(buf)
	}
	return true, nil
}

// split handles the frames in p. Consecutive frames for the same rank are relayed with one write.
func (in *input) split(c *Conn, p []byte) {
	off := 0
	run := run{c: c, route: c.route.Load()}
	for c.heeded() {
		h, err := wire.ParseHeader(p[off:])
		if err == wire.ErrShort {
			break
		}
		if err == nil {
			err = c.allowed(&h, run.route)
		}
		if err != nil {
			run.flush(p)
			c.Bad(err.Error())
			return
		}
		in.bulk = c.pipeable(&h)
		end := off + wire.HeaderLen + int(h.Length)
		if end > len(p) {
			run.flush(p)
			if !c.heeded() {
				return
			}
			in.keep(c, p[off:], end-off)
			return
		}
		if h.Type.BetweenRanks() {
			run.add(p, &h, off, end)
		} else {
			run.flush(p)
			c.own(&h, p[off:end], in.read-uint64(len(p)-off))
			run.route = c.route.Load()
		}
		off = end
	}
	run.flush(p)
	if c.heeded() {
		in.nhead = copy(in.head[:], p[off:])
	}
}
