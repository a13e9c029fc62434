package relay

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// In a sealed job, frames from and to the forwarder itself are sealed with keys of the link. The
// forwarder cannot open frames between ranks. A Ping or Pong that was sent before the peer had the
// keys may arrive unsealed until the first sealed frame.

// sealing has the keys with which frames of a connection between its two ends are sealed (encrypted
// and authenticated). Without a channel nothing is sealed.
type sealing struct {
	channel atomic.Pointer[seal.Channel] // the keys and counters for sealing frames; nil: frames are not sealed
	// held while a frame is sealed and written, so that numbers rise in the order of writing
	mu         sync.Mutex
	sealedSeen bool // whether a sealed frame has arrived; used on the connection's loop only
}

// Seal causes frames to be sealed with the keys in ch from now on, except for those that belong to
// no running job. It does nothing if ch is nil. It may be called on any thread, before Run.
func (s *sealing) Seal(ch *seal.Channel) {
	if ch != nil {
		s.channel.Store(ch)
	}
}

// sealed seals a frame that the forwarder itself sends, if the connection has keys, and calls write
// with it. It returns the error of write.
func (s *sealing) sealed(frame []byte, write func(frame []byte) error) error {
	if s.channel.Load() != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return s.seal(frame, write)
}

// seal encrypts a frame that the forwarder itself sends, if the connection has keys, and calls
// write with it. It returns the error of write. The caller holds sealing.mu, or the connection has
// no keys.
func (s *sealing) seal(frame []byte, write func(frame []byte) error) error {
	ch := s.channel.Load()
	h, err := wire.ParseHeader(frame)
	if ch == nil || err != nil || !h.Type.Sealable() {
		return write(frame)
	}
	h = h.Sealed()
	b, err := ch.Seal(make([]byte, 0, len(frame)+wire.SealLen), h.Append(nil), frame[wire.HeaderLen:])
	if err != nil {
		return err
	}
	return write(b)
}

var errNotSealed = errors.New("it is not sealed, as its job is")

// opened returns the body of a frame for the forwarder itself, or an error if the frame is not
// authentic.
func (s *sealing) opened(h *wire.Header, frame []byte) (body []byte, err error) {
	ch := s.channel.Load()
	switch is := h.Flags&wire.FlagSealed != 0; {
	case !is && (ch == nil || !h.Type.Sealable()):
	case !is && !s.sealedSeen && (h.Type == wire.TypePing || h.Type == wire.TypePong):
	case !is:
		return nil, fmt.Errorf("%v frame: %w", h.Type, errNotSealed)
	case ch == nil:
		return nil, fmt.Errorf("%v frame: it is sealed, its job is not", h.Type)
	default:
		if body, err = ch.Open(frame, wire.HeaderLen); err != nil {
			return nil, fmt.Errorf("%v frame: %w", h.Type, err)
		}
		s.sealedSeen = true
		return body, nil
	}
	if err = h.Verify(frame[wire.HeaderLen:]); err != nil {
		return nil, fmt.Errorf("%v frame: %w", h.Type, err)
	}
	return frame[wire.HeaderLen:], nil
}
