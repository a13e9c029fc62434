package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Classic relays a job's frames as the original middleware did: one transfer at a time for all
// ranks and both directions, a message stored whole before it is sent on. A transfer begins with
// the CTS that lets the sender go and ends with the receiver's Fin; a CTS that comes meanwhile
// waits for its turn. All of it on the forwarder's one loop. What is different from the original:
// the handshake goes end to end rather than to the forwarder.
type Classic struct {
	busy             bool
	sender, receiver uint32
	handle           uint64 // of the send
	left             uint64 // bytes to come
	store            []byte // frames that have come
	waiting          [][]byte
	held             map[uint32]int // bytes of these by their source,
	limit            int            // at most for one; who has more breaks the protocol
}

// NewClassic begins with no transfer. One rank may have at most limit bytes of CTS frames that
// wait.
func NewClassic(limit int) *Classic { return &Classic{held: map[uint32]int{}, limit: limit} }

// relay takes whole frames from c.
func (s *Classic) relay(c *Conn, r *Route, b []byte) {
	for len(b) > 0 {
		h, err := wire.ParseHeader(b)
		if err != nil {
			return // cannot be: the reader has parsed it
		}
		n := wire.HeaderLen + int(h.Length)
		s.one(c, r, &h, b[:n])
		b = b[n:]
	}
}

func (s *Classic) one(c *Conn, r *Route, h *wire.Header, frame []byte) {
	switch h.Type {
	case wire.TypeCTS:
		if s.held[h.Src] += len(frame); s.held[h.Src] > s.limit {
			c.Bad(fmt.Sprintf("from rank %d for rank %d: too many transfers wait for their turn (over %d bytes of CTS frames)", h.Src, h.Dst, s.limit))
			return
		}
		s.waiting = append(s.waiting, append([]byte(nil), frame...))
		s.next(c, r)
		return
	case wire.TypeData:
		if s.busy && h.Src == s.sender && h.Dst == s.receiver {
			s.store = append(s.store, frame...)
			s.left -= min(s.left, uint64(h.Payload()))
			if s.left == 0 || len(s.store) >= storeLimit {
				send(c, r, s.sender, s.receiver, s.store)
				s.store = s.store[:0]
			}
			return
		}
	}
	send(c, r, h.Src, h.Dst, frame)
	if h.Type == wire.TypeFin && s.busy && h.Src == s.receiver && h.Dst == s.sender {
		if f, err := wire.ParseFin(frame[wire.HeaderLen:]); err == nil && f.Sender == s.handle {
			s.busy = false
			s.next(c, r)
		}
	}
}

// next begins a transfer if none is under way.
func (s *Classic) next(c *Conn, r *Route) {
	for !s.busy && len(s.waiting) > 0 {
		frame := s.waiting[0]
		s.waiting = s.waiting[1:]
		h := wire.ParsedHeader(frame)
		s.held[h.Src] -= len(frame)
		cts, err := wire.ParseCTS(frame[wire.HeaderLen:])
		if err != nil || r.Table[h.Dst].Load() == nil || r.Table[h.Src].Load() == nil {
			continue // the sender or the receiver is gone
		}
		s.busy, s.sender, s.receiver, s.handle, s.left = true, h.Dst, h.Src, cts.Sender, cts.Bytes
		send(c, r, h.Src, h.Dst, frame)
	}
}

// send puts frames on the link of a rank.
func send(c *Conn, r *Route, src, dst uint32, b []byte) {
	if d := r.Table[dst].Load(); d != nil {
		if _, err := d.out.write(c.worker.one, &c.memory, src, b, nil); err != nil {
			c.Bad(err.Error())
		}
	}
}
