package relay

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// In a sealed job frames for the forwarder itself, and its own, are sealed with keys of the link.
// Those between ranks are not the forwarder's to open. A Ping or Pong that was sent before the
// other end knew of the keys may still come as it is, until the first sealed frame.

// sealing is a connection's channel; without one nothing is sealed.
type sealing struct {
	channel atomic.Pointer[seal.Channel]
	mu      sync.Mutex // numbers rise in the order in which frames are written
	came    bool       // a sealed frame; the connection's loop's
}

// Seal has what is sent from now on sealed, but for frames that belong to no running job; nil:
// nothing changes. Any thread, before Run.
func (c *Conn) Seal(ch *seal.Channel) {
	if ch != nil {
		c.sealing.channel.Store(ch)
	}
}

// sealed calls write with a frame of the forwarder's own, as it goes over the link.
func (c *Conn) sealed(frame []byte, write func(frame []byte) error) error {
	if c.sealing.channel.Load() != nil {
		c.sealing.mu.Lock()
		defer c.sealing.mu.Unlock()
	}
	return c.seal(frame, write)
}

// seal is sealed with sealing.mu, if there is a channel.
func (c *Conn) seal(frame []byte, write func(frame []byte) error) error {
	ch := c.sealing.channel.Load()
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

// opened gives the body of a frame for the forwarder itself.
func (c *Conn) opened(h *wire.Header, frame []byte) (body []byte, err error) {
	ch := c.sealing.channel.Load()
	switch sealed := h.Flags&wire.FlagSealed != 0; {
	case !sealed && (ch == nil || !h.Type.Sealable()):
	case !sealed && !c.sealing.came && (h.Type == wire.TypePing || h.Type == wire.TypePong):
	case !sealed:
		return nil, fmt.Errorf("%v frame: %w", h.Type, errNotSealed)
	case ch == nil:
		return nil, fmt.Errorf("%v frame: it is sealed, its job is not", h.Type)
	default:
		if body, err = ch.Open(frame, wire.HeaderLen); err != nil {
			return nil, fmt.Errorf("%v frame: %w", h.Type, err)
		}
		c.sealing.came = true
		return body, nil
	}
	if err = h.Verify(frame[wire.HeaderLen:]); err != nil {
		return nil, fmt.Errorf("%v frame: %w", h.Type, err)
	}
	return frame[wire.HeaderLen:], nil
}
