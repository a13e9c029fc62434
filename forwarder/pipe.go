package forwarder

import (
	"sync"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// A large segment goes from one socket to another through a pipe (transport.Piper) and is not copied to this process and back. Its head is read and
// checked as always, and then put into the pipe before the payload. As everywhere, a frame goes out only when all of it is here, so that no slow
// source holds an output.

const (
	pipeFrom = 96 << 10  // bytes of payload from which on a pipe pays: a whole segment (docs/measurements.md)
	pipeTo   = 640 << 10 // and what two may take: the longest segment of a fast flow, and what is left of a message after it
	pipeSize = 1 << 20   // of a pipe: a place for each page. That is as much as an ordinary user may give one
	maxPipes = 32        // half of what an ordinary user may have: 16384 pages
)

// pipes are kept for reuse. Safe for concurrent use.
type pipes struct {
	mu    sync.Mutex
	free  []*transport.Pipe
	used  int
	none  bool // the system gives no more
	ended bool
}

// get returns an empty pipe, made for size bytes if there is none yet, or nil: then the frame is copied.
func (p *pipes) get(size int) *transport.Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		pipe := p.free[n-1]
		p.free = p.free[:n-1]
		p.used++
		return pipe
	}
	if p.used == maxPipes || p.none {
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
	return p.used > maxPipes/2
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

// pipeable reports whether a frame from the link could go through a pipe.
func (c *conn) pipeable(h *wire.Header) bool {
	n := h.Payload()
	return c.piper != nil && h.Type == wire.TypeData && n >= c.f.cfg.pipeFrom && n <= pipeTo
}

// begin takes a pipe for the frame whose head is p; false: it is to be read in the usual way, which also says what is wrong with it.
func (in *input) begin(c *conn, p []byte) bool {
	h, err := wire.ParseHeader(p)
	m := c.member.Load()
	if err != nil || m == nil || c.lingering || !c.pipeable(&h) || c.allowed(&h, m) != nil || m.job.classic != nil {
		return false
	}
	if d := m.job.table[h.Dst].Load(); d == nil || d.piper == nil {
		return false
	}
	pipe := c.f.pipes.get(c.f.cfg.pipeSize)
	if pipe == nil {
		return false
	}
	if pipe.Write(p) != nil {
		c.f.pipes.put(pipe)
		return false
	}
	in.piped = c.f.passage()
	in.piped.pipe, in.piped.last, in.piped.bytes = pipe, pipe, h.Payload()
	copy(in.piped.head[:], p)
	in.stalled = false
	return true
}

// pipe moves the rest of a frame into its pipe.
func (in *input) pipe(c *conn) (full bool, err error) {
	p := in.piped
	n, err := c.piper.TryFill(p.last, p.left())
	if err == transport.ErrAgain && in.stalled {
		in.stalled = false
		if p.widen() {
			return true, nil
		}
		return true, in.spill(c)
	}
	in.stalled = err == transport.ErrAgain
	if err != nil {
		return false, err
	}
	c.heard, c.pinged = c.loop.now, false
	if n == 0 || p.left() > 0 {
		return false, nil
	}
	in.piped = nil
	if c.lingering {
		p.end()
		return true, nil
	}
	h, err := wire.ParseHeader(p.head[:])
	if err != nil {
		p.end()
		return false, err // cannot be: begin has parsed it
	}
	c.passOn(p, &h, c.member.Load())
	return true, nil
}

// spill goes on without pipes, which have no place for so many small pieces.
func (in *input) spill(c *conn) error {
	p := in.piped
	in.piped = nil
	in.need = passHead + p.bytes
	var err error
	in.part, err = p.copy(&c.f.pool)
	return err
}
