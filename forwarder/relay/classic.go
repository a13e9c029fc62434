package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Classic relays a job's frames as the original middleware did: one transfer at a time for all
// ranks and both directions, and store and forward of whole messages. A transfer begins with the
// CTS that lets the sender start and ends with the receiver's Fin; a CTS that arrives during a
// transfer waits for its turn. All of this runs on the forwarder's one loop. Unlike the original,
// the handshake is end to end rather than between a rank and the forwarder.
type Classic struct {
	busy             bool
	sender, receiver uint32
	handle           uint64         // the sender's handle of the current transfer
	left             uint64         // the number of bytes of the current message that have not arrived
	store            []byte         // the frames of the current message that are stored
	waiting          [][]byte       // the CTS frames of the transfers that wait, oldest first
	held             map[uint32]int // the number of bytes in waiting from each rank, by rank
	// the maximum of held for one source in bytes; a source above it violates the protocol
	limit int
}

// NewClassic returns a relay without a transfer. The CTS frames of one rank that wait may take at
// most limit bytes.
func NewClassic(limit int) *Classic { return &Classic{held: map[uint32]int{}, limit: limit} }

// relay relays the whole frames in b, which arrived over connection c, one after the other.
func (s *Classic) relay(c *Conn, r *Route, b []byte) {
	for len(b) > 0 {
		h, err := wire.ParseHeader(b)
		if err != nil {
			return // unreachable: the reader has parsed it
		}
		n := wire.HeaderLen + int(h.Length)
		s.one(c, r, &h, b[:n])
		b = b[n:]
	}
}

// one relays one frame: it queues a CTS, stores Data of the current transfer, and sends all other
// frames at once. The receiver's Fin ends the transfer.
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

// next sends the oldest CTS that waits, and so starts its transfer, unless a transfer is in
// progress. It skips a CTS whose sender or receiver has departed.
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

// send sends the frames in b, from rank src, over the connection of rank dst, and drops them if
// that rank has departed.
func send(c *Conn, r *Route, src, dst uint32, b []byte) {
	if d := r.Table[dst].Load(); d != nil {
		if _, err := d.out.write(c.worker.one, &c.memory, src, b, nil); err != nil {
			c.Bad(err.Error())
		}
	}
}
