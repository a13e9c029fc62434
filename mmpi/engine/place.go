package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/transport"
)

// Over a link that can (transport.Placer) large messages of the program are sent from its memory and received into it. The memory is made known to the
// link in parts: a receive is one part ahead of what has come, a send makes one known when it begins with it, so that neither holds up the
// message, other traffic or much memory for long. What could not be made known is copied.

// part is how many bytes are made known at a time.
const part = 4 << 20

// pin is a part of a request's buffer that a rail's link knows.
type pin struct {
	rail     *rail
	from, to int64
	region   transport.Region
}

// inPlace reports whether a message of so many bytes may be sent from, or received into, where the request has it: buffers of the program are
// that are not Go's. Those of collectives and windows may be scratch memory.
func (e *Engine) inPlace(q *Request, bytes int64) bool {
	return e.placeFrom > 0 && bytes >= int64(e.placeFrom) && q.kind == KindP2P && !q.copied
}

// piece sends the segment at hand as one piece.
func (r *rail) piece() error {
	s := &r.seg
	if q := s.req; q != nil && r.placer != nil && r.e.inPlace(q, q.clear) {
		if p := r.e.pinned(r, q, s.offset, len(s.data)); p != nil {
			return r.placer.TrySendPinned(s.head, p.region, int(s.offset-p.from), len(s.data))
		}
	}
	return r.lender.TrySend(s.head, s.data)
}

// pinned gives the part of a send that n bytes at an offset lie in, as the rail's link knows it; nil: it does not.
func (e *Engine) pinned(r *rail, q *Request, offset int64, n int) *pin {
	i := 0
	for ; i < len(q.pins); i++ {
		if p := &q.pins[i]; p.rail == r {
			if p.from <= offset && offset+int64(n) <= p.to {
				return p
			}
			break
		}
	}
	from := offset - offset%part // the same for each sending of the buffer: it may be known still
	if from+part < offset+int64(n) {
		from = offset
	}
	to := min(from+part, q.clear)
	region, err := r.placer.Pin(q.buf[from:to])
	if err != nil {
		e.copies(q, err)
		return nil
	}
	p := pin{r, from, to, region}
	if i == len(q.pins) {
		q.pins = append(q.pins, p)
	} else {
		q.pins[i].region.Release()
		q.pins[i] = p
	}
	return &q.pins[i]
}

// expect makes the next parts of a receive known to the link that they come over, if it is the only one: what came a second time over another, after a loss,
// would be written into memory that is the program's again.
func (e *Engine) expect(q *Request) {
	if e.several(q.peer) || !e.inPlace(q, q.clear) {
		return
	}
	r := e.way(q.peer)
	if r == nil || r.placer == nil {
		return
	}
	for q.expected < q.clear && len(q.pins) < 2 {
		to := min(q.expected+part, q.clear)
		region, err := r.placer.Expect(q.handle(), q.expected, q.buf[q.expected:to])
		if errors.Is(err, transport.ErrAgain) {
			return
		}
		if err != nil {
			e.copies(q, err)
			return
		}
		q.pins = append(q.pins, pin{r, q.expected, to, region})
		q.expected = to
	}
}

// arrived takes away the parts of a receive that are whole, and makes others known.
func (e *Engine) arrived(q *Request) {
	if e.placeFrom == 0 || q.moved == q.clear {
		return
	}
	for len(q.pins) > 0 && q.pins[0].to <= q.moved {
		q.pins[0].region.Release()
		q.pins = append(q.pins[:0], q.pins[1:]...)
	}
	q.expected = max(q.expected, q.moved)
	e.expect(q)
}

// unpin takes away what links know of a request.
func (q *Request) unpin() {
	for _, p := range q.pins {
		p.region.Release()
	}
	clear(q.pins)
	q.pins = q.pins[:0]
}

// unpinRail takes away what the link of a lost rail knows.
func (e *Engine) unpinRail(r *rail) {
	for _, q := range e.requests {
		q.pins = slices.DeleteFunc(q.pins, func(p pin) bool {
			if p.rail == r {
				p.region.Release()
			}
			return p.rail == r
		})
	}
}

// copies: the rest of the message is copied. The user is told why, once.
func (e *Engine) copies(q *Request, why error) {
	q.copied = true
	if errors.Is(why, transport.ErrClosed) || e.toldCopies || e.warn == nil {
		return
	}
	e.toldCopies = true
	e.warn(fmt.Sprintf("large messages are copied, because the program's memory cannot be registered: %v", why))
}
