package relay

import "github.com/leidenzipper/zipper/internal/wire"

// input is the reading side of a link: it splits the stream into whole frames. Between reads it
// keeps only an incomplete frame, so an idle link has no buffer.
type input struct {
	head  [wire.HeaderLen]byte // the beginning of an incomplete header
	nhead int                  // the number of bytes in head
	part  *buffer              // the frame whose header is known and whose rest has not arrived
	need  int                  // the length of part in bytes when it is complete
	read  uint64               // the number of bytes that were read from the link

	bulk  bool      // whether the last frame was large enough for a pipe, so the next may be too
	piped *zerocopy // the frame whose head is in a pipe and whose rest has not arrived
	// whether the last attempt to fill the pipe moved no bytes, so the pipe may be full
	stalled bool
}

// begun returns the position in the link's stream at which the incomplete frame begins, or read if
// there is none.
func (in *input) begun() uint64 {
	have := in.nhead
	switch {
	case in.part != nil:
		have = len(in.part.b)
	case in.piped != nil:
		have = dataHead + in.piped.bytes - in.piped.left()
	}
	return in.read - uint64(have)
}

// keep stores p, the beginning of a frame of need bytes, until the rest arrives. Before a
// connection has its route, it takes hardly more memory than the bytes that have arrived.
func (in *input) keep(c *Conn, p []byte, need int) {
	room := need
	if c.route.Load() == nil {
		room = min(need, len(p)+1) // a link's TryRead needs room for a byte
	}
	in.part, in.need = c.shared.pool.get(room), need
	in.part.b = append(in.part.b, p...)
	c.memory.charge(cap(in.part.b))
}

// grow moves the incomplete frame to a larger buffer, because it fills its present one.
func (in *input) grow(c *Conn) {
	old := in.part
	in.part = c.shared.pool.get(min(in.need, cap(old.b)+1))
	in.part.b = append(in.part.b, old.b...)
	c.memory.charge(cap(in.part.b) - cap(old.b))
	c.shared.pool.put(old)
}

// drop discards the incomplete frame, and releases its memory.
func (in *input) drop(c *Conn) {
	if in.part != nil {
		c.memory.release(cap(in.part.b))
		c.shared.pool.put(in.part)
		in.part = nil
	}
	if in.piped != nil {
		in.piped.end()
		in.piped = nil
	}
	in.nhead = 0
}
