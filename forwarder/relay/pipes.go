package relay

import (
	"sync"

	"github.com/leidenzipper/zipper/internal/transport/splice"
)

// pipes has the pipes (of the kernel) through which large frames are forwarded, and keeps free ones
// for reuse. It is safe for concurrent use.
type pipes struct {
	mu    sync.Mutex
	free  []*splice.Pipe
	used  int  // the number of pipes in use
	none  bool // whether the system has refused a pipe
	ended bool // whether close has been called
}

// get returns an empty pipe, and makes one for size bytes if none is free. It returns nil if there
// are too many or the system refuses one; the frame is copied then.
func (p *pipes) get(size int) *splice.Pipe {
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
	pipe, err := splice.NewPipe(size)
	if err != nil {
		p.none = true
		return nil
	}
	p.used++
	return pipe
}

// put releases a pipe for reuse. It closes the pipe if bytes are left in it.
func (p *pipes) put(pipe *splice.Pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	if pipe.Len() > 0 || p.ended {
		pipe.Close()
		return
	}
	p.free = append(p.free, pipe)
}

// scarce reports whether so many pipes are in use that a frame which must wait in a queue is to be
// copied out of its pipe.
func (p *pipes) scarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used > MaxPipes/2
}

// close closes the free pipes, and causes put to close the others.
func (p *pipes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, pipe := range p.free {
		pipe.Close()
	}
	p.free = nil
}
