package relay

import (
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A large segment goes from one socket to another through a pipe (splice.Link) without a copy
// to this process and back. Its head is read and checked as usual, and then put into the pipe
// before the payload. As everywhere, a frame is sent only when all of it has arrived, so that no
// slow source blocks an output.

// pipeable reports whether a frame with header h, which arrives over the connection, could be
// forwarded through a pipe without a copy.
func (c *Conn) pipeable(h *wire.Header) bool {
	n := h.Rest()
	return c.piper != nil && h.Type == wire.TypeData && n >= c.shared.cfg.PipeFrom && n <= pipeTo
}

// begin gets a pipe for the frame whose head is p. It returns false if the frame has to be read
// into memory instead, which also reports an invalid head.
func (in *input) begin(c *Conn, p []byte) bool {
	h, err := wire.ParseHeader(p)
	r := c.route.Load()
	if err != nil || r == nil || !c.heeded() || !c.pipeable(&h) || c.allowed(&h, r) != nil || r.Classic != nil {
		return false
	}
	if d := r.Table[h.Dst].Load(); d == nil || d.piper == nil {
		return false
	}
	pipe := c.shared.pipes.get(c.shared.cfg.PipeSize)
	if pipe == nil {
		return false
	}
	if pipe.Write(p) != nil {
		c.shared.pipes.put(pipe)
		return false
	}
	in.piped = c.shared.zerocopy()
	in.piped.pipe, in.piped.last, in.piped.bytes = pipe, pipe, h.Rest()
	copy(in.piped.head[:], p)
	in.stalled = false
	return true
}

// pipe moves the rest of a frame from the link into the frame's pipe, and forwards the frame once
// it is complete. It returns full if more input may be available at once.
func (in *input) pipe(c *Conn) (full bool, err error) {
	p := in.piped
	n, err := c.piper.TryFill(p.last, p.left())
	if err == transport.ErrAgain && in.stalled {
		in.stalled = false
		if p.widen() {
			return true, nil
		}
		return true, in.spill(c)
	}
	in.stalled = err == transport.ErrAgain
	if err != nil {
		return false, err
	}
	c.lastRead, c.pinged = c.Now(), false
	in.read += uint64(n)
	if n == 0 || p.left() > 0 {
		return false, nil
	}
	in.piped = nil
	if !c.heeded() {
		p.end()
		return true, nil
	}
	h := wire.ParsedHeader(p.head[:])
	c.forward(p, &h, c.route.Load())
	return true, nil
}

// spill moves the frame from its pipes, which have no slots for so many small pieces, to a buffer.
func (in *input) spill(c *Conn) error {
	p := in.piped
	in.piped = nil
	in.need = dataHead + p.bytes
	var err error
	in.part, err = p.copy(&c.shared.pool)
	c.memory.charge(cap(in.part.b))
	return err
}
