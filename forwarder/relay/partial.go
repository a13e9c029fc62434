package relay

import "github.com/leidenzipper/zipper/wire"

// input is the reading side of a link: it cuts the stream into whole frames. Between reads it keeps
// only a frame that has begun, so an idle link has no buffer.
type input struct {
	head  [wire.HeaderLen]byte // beginning of a header
	nhead int
	part  *buffer // frame whose header is known and whose rest is to come
	need  int     // its whole length

	bulk    bool      // the last frame was one that a pipe could have taken: the next may be, too
	piped   *zerocopy // frame whose head is in a pipe and whose rest is to come
	stalled bool      // nothing went into the pipe last time: is it full?
}

// drop gives up a frame that has begun.
func (in *input) drop(c *Conn) {
	if in.part != nil {
		c.shared.pool.put(in.part)
		in.part = nil
	}
	if in.piped != nil {
		in.piped.end()
		in.piped = nil
	}
	in.nhead = 0
}
