package relay

import "github.com/leidenzipper/zipper/internal/wire"

// input is the reading side of a link: it cuts the stream into whole frames. Between reads it keeps
// only a frame that has begun, so an idle link has no buffer.
type input struct {
	head  [wire.HeaderLen]byte // beginning of a header
	nhead int
	part  *buffer // frame whose header is known and whose rest is to come
	need  int     // its whole length
	read  uint64  // bytes from the link

	bulk    bool      // the last frame was one that a pipe could have taken: the next may be, too
	piped   *zerocopy // frame whose head is in a pipe and whose rest is to come
	stalled bool      // nothing went into the pipe last time: is it full?
}

// begun is where the frame that has come in part begins, in bytes of the link; without one: read.
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

// keep keeps the beginning of a frame of so many bytes. Of a stranger it has no more memory than it
// has sent.
func (in *input) keep(c *Conn, p []byte, need int) {
	room := need
	if c.route.Load() == nil {
		room = len(p)
	}
	in.part, in.need = c.shared.pool.get(room), need
	in.part.b = append(in.part.b, p...)
	c.memory.took(cap(in.part.b))
}

// grow gives a frame that has filled its buffer a larger one.
func (in *input) grow(c *Conn) {
	old := in.part
	in.part = c.shared.pool.get(min(in.need, cap(old.b)+1))
	in.part.b = append(in.part.b, old.b...)
	c.memory.took(cap(in.part.b) - cap(old.b))
	c.shared.pool.put(old)
}

// drop gives up a frame that has begun.
func (in *input) drop(c *Conn) {
	if in.part != nil {
		c.memory.gave(cap(in.part.b))
		c.shared.pool.put(in.part)
		in.part = nil
	}
	if in.piped != nil {
		in.piped.end()
		in.piped = nil
	}
	in.nhead = 0
}
