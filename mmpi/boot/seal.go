package boot

import (
	"sync"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// channels has the encryption channels of a sealed job's links that the engine has not taken yet.
type channels struct {
	mu sync.Mutex
	of map[transport.Link]*seal.Channel
}

// keep implements dial.Dialer.Sealed.
func (s *channels) keep(l transport.Link, c *seal.Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[transport.Link]*seal.Channel{}
	}
	s.of[l] = c
}

// take removes and returns the channel of a link.
func (s *channels) take(l transport.Link) *seal.Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[l]
	delete(s.of, l)
	return c
}

// keys returns the keys for the engine of a sealed job, or nil if the job is not sealed.
func (s *channels) keys(p *seal.Party, layout *wire.Layout) *sealing.Keys {
	if p == nil {
		return nil
	}
	return &sealing.Keys{Party: p, Members: layout.Keys, Channel: s.take}
}
