package relay

import (
	"sync"

	"github.com/leidenzipper/zipper/internal/transport"
)

// pipes are kept for reuse. Safe for concurrent use.
type pipes struct {
	mu    sync.Mutex
	free  []*transport.Pipe
	used  int
	none  bool // the system gives no more
	ended bool
}

// get returns an empty pipe, made for size bytes if there is none yet, or nil: then the frame is
// copied.
func (p *pipes) get(size int) *transport.Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		pipe := p.free[n-1]
		p.free = p.free[:n-1]
		p.used++
		return pipe
	}
	if p.used == MaxPipes || p.none {
		return nil
	}
	pipe, err := transport.NewPipe(size)
	if err != nil {
		p.none = true
		return nil
	}
	p.used++
	return pipe
}

func (p *pipes) put(pipe *transport.Pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	if pipe.Len() > 0 || p.ended {
		pipe.Close()
		return
	}
	p.free = append(p.free, pipe)
}

// scarce tells that pipes had better not wait in queues.
func (p *pipes) scarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used > MaxPipes/2
}

func (p *pipes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, pipe := range p.free {
		pipe.Close()
	}
	p.free = nil
}
