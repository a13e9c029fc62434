package boot

import (
	"sync"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// channels are what the joins of a sealed job have made for links that the engine has not taken
// yet.
type channels struct {
	mu sync.Mutex
	of map[transport.Link]*seal.Channel
}

// keep is dial.Dialer.Sealed.
func (s *channels) keep(l transport.Link, c *seal.Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[transport.Link]*seal.Channel{}
	}
	s.of[l] = c
}

// take gives what was kept for a link.
func (s *channels) take(l transport.Link) *seal.Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[l]
	delete(s.of, l)
	return c
}

// keys are what the engine of a sealed job needs; nil if the job is not sealed.
func (s *channels) keys(p *seal.Party, layout *wire.Layout) *sealing.Keys {
	if p == nil {
		return nil
	}
	return &sealing.Keys{Party: p, Members: layout.Keys, Channel: s.take}
}
