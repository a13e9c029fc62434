package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// The reading side of a rail: frames are cut from the stream, payloads go where they belong.

// input is what has been read and not handled.
type input struct {
	buf  []byte
	r, w int // unread bytes are buf[r:w]

	busy bool    // a payload is coming
	dst  []byte  // its destination, the part not filled yet
	skip int     // bytes after that to throw away
	land landing // what to do when it is there
	bulk bool    // segments are coming: read headers by themselves, so that payload is never copied
}

const inputSize = 64 << 10

// read handles what the link has, without blocking, and returns how many bytes it took.
func (r *rail) read() (moved int, err error) {
	in := &r.in
	dry := false // the last read took all there was
	fill := func(p []byte) (int, error) {
		n, err := r.link.TryRead(p)
		switch {
		case err == transport.ErrAgain:
			dry = true
			return 0, nil
		case err != nil:
			return 0, err
		}
		dry = n < len(p)
		r.fresh = true
		moved += n
		return n, nil
	}
	for r.e.err == nil {
		if in.busy {
			if in.r < in.w {
				k := copy(in.dst, in.buf[in.r:in.w])
				in.dst = in.dst[k:]
				in.r += k
				k = min(in.skip, in.w-in.r)
				in.skip -= k
				in.r += k
			}
			switch {
			case len(in.dst) > 0:
				if dry || moved > turnSize {
					return moved, nil
				}
				n, err := fill(in.dst)
				if err != nil {
					return moved, err
				}
				in.dst = in.dst[n:]
			case in.skip > 0:
				if dry || moved > turnSize {
					return moved, nil
				}
				in.r, in.w = 0, 0
				n, err := fill(in.buf[:min(in.skip, len(in.buf))])
				if err != nil {
					return moved, err
				}
				in.w = n
			default:
				in.busy, in.dst = false, nil
				land := in.land
				in.land = landing{}
				if err := r.e.landed(land); err != nil {
					return moved, breach{err}
				}
			}
			continue
		}
		n, err := r.frame()
		if err != nil {
			return moved, err
		}
		if n > 0 {
			continue
		}
		if dry || moved > turnSize || r.bye == byeAcked {
			return moved, nil
		}
		if in.r > 0 {
			copy(in.buf, in.buf[in.r:in.w])
			in.r, in.w = 0, in.w-in.r
		}
		room := in.buf[in.w:]
		if want := wire.HeaderLen + wire.DataLen; in.bulk && in.w < want {
			room = in.buf[in.w:want]
		}
		if n, err = fill(room); err != nil {
			return moved, err
		}
		in.w += n
	}
	return moved, nil
}

// frame handles the next frame but for its payload, if its head is there, and returns the bytes used.
func (r *rail) frame() (int, error) {
	in := &r.in
	b := in.buf[in.r:in.w]
	if len(b) < wire.HeaderLen {
		return 0, nil
	}
	h, err := wire.ParseHeader(b)
	if err != nil {
		return 0, breach{err}
	}
	payload := h.Payload()
	head := wire.HeaderLen + int(h.Length) - payload
	if head > len(in.buf) {
		return 0, breach{fmt.Errorf("%v frame of %d bytes is too long here", h.Type, h.Length)}
	}
	if len(b) < head {
		in.bulk = in.bulk && h.Type == wire.TypeData
		return 0, nil
	}
	in.bulk = h.Type == wire.TypeData
	in.r += head
	body := b[wire.HeaderLen:head]
	if !h.Type.BetweenRanks() {
		return head, r.control(h, body)
	}
	dst, land, err := r.e.begin(r, h, body, payload)
	if err != nil {
		return 0, breach{fmt.Errorf("%v frame from rank %d: %w", h.Type, h.Src, err)}
	}
	if payload > 0 || land.some() {
		in.busy, in.dst, in.skip, in.land = true, dst, payload-len(dst), land
	}
	return head, nil
}

// control handles a frame of the forwarder.
func (r *rail) control(h wire.Header, body []byte) error {
	if r.peer != nil && h.Type == wire.TypeBye { // the process at the other end is through, and we with it
		r.leaving = true
		r.push(r.e.newControl(wire.TypeByeAck, nil))
		return nil
	}
	switch h.Type {
	case wire.TypePing:
		r.push(r.e.newControl(wire.TypePong, nil))
	case wire.TypePong:
	case wire.TypeByeAck:
		if r.bye != byeSent {
			return breach{errors.New("the forwarder said good-bye unasked")}
		}
		r.bye = byeAcked
	case wire.TypeRailState:
		s, err := wire.ParseRailState(body)
		if err != nil {
			return breach{err}
		}
		return r.e.railState(r, s)
	case wire.TypeBye: // the forwarder shuts down: without another one the job is lost
		return errors.New("the forwarder is shutting down")
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			return breach{err}
		}
		r.e.giveWay(int(a.Rank))
		r.e.fatal(ErrAborted, int(a.Code), abortReason(a))
	default:
		return breach{fmt.Errorf("unexpected %v frame", h.Type)}
	}
	return nil
}

// giveWay lets the cluster's own launcher end this process when the cause is a rank of the same cluster.
func (e *Engine) giveWay(cause int) {
	if cause != e.world.Rank && e.sameCluster(cause) {
		time.Sleep(e.limits.Grace)
	}
}

// abortReason is what the rank says that is told of the end; a reason that a rank is the cause of names that rank.
func abortReason(a wire.Abort) string {
	if a.Rank == wire.Nobody {
		return fmt.Sprintf("job ended by the forwarder: %s", a.Reason)
	}
	return fmt.Sprintf("job ended with exit status %d: %s", a.Code, a.Reason)
}

// breach is a fault of what came over a link rather than of the link.
type breach struct{ error }
