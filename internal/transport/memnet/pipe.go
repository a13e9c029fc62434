package memnet

import (
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/internal/evfd"
)

// pipe is one direction of a link.
type pipe struct {
	mu       sync.Mutex
	changed  sync.Cond
	delay    time.Duration
	capacity int
	partial  *rand.Rand

	arrived  []packet // packets to be read
	here     int      // number of bytes in arrived
	flying   []packet // packets in flight, in order
	inFlight int      // number of bytes in flying
	places   int      // number of places for pieces in flight, arrived or borrowed
	pieces   int      // number of places in use
	starved  bool     // a piece found no place
	held     bool     // nothing arrives
	eof      bool     // the writer's close has arrived
	failure  error
	reader   bool // the reader has closed
	writer   bool // the writer has closed

	// The descriptors are -1 until requested. Their state is that of canRead and canWrite.
	readable, writable evfd.FD
	raised, blocked    bool
}

// packet is one write in flight. Without bytes it is the end of the stream.
type packet struct {
	due   time.Time
	b     []byte
	piece bool // the packet is a piece of which nothing was read
}

func (p *pipe) canRead() bool { return p.here > 0 || p.eof || p.failure != nil || p.reader }
func (p *pipe) canWrite() bool {
	return p.room() > 0 && !p.starved || p.reader || p.failure != nil || p.writer
}
func (p *pipe) room() int { return p.capacity - p.here - p.inFlight }

// update updates descriptors and wakes waiters. The caller holds mu.
func (p *pipe) update() {
	if want := p.canRead(); p.readable >= 0 && want != p.raised {
		p.raised = want
		if want {
			p.readable.Raise()
		} else {
			p.readable.Lower()
		}
	}
	if want := !p.canWrite(); p.writable >= 0 && want != p.blocked {
		p.blocked = want
		if want {
			p.writable.Block()
		} else {
			p.writable.Lower()
		}
	}
	p.changed.Broadcast()
}

func (p *pipe) part(n int) int {
	if p.partial != nil && n > 1 {
		return 1 + p.partial.IntN(n)
	}
	return n
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.reader:
		return 0, transport.ErrClosed
	case p.failure != nil:
		return 0, p.failure
	case p.here > 0 && len(b) > 0:
		most := p.part(min(len(b), p.here))
		n := 0
		for n < most {
			m := &p.arrived[0]
			if m.piece {
				m.piece = false
				p.free()
			}
			k := copy(b[n:most], m.b)
			n += k
			if m.b = m.b[k:]; len(m.b) == 0 {
				p.arrived = p.arrived[1:]
			}
		}
		p.here -= n
		p.update()
		return n, nil
	case p.eof:
		return 0, io.EOF
	}
	return 0, transport.ErrAgain
}

func (p *pipe) write(bufs [][]byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starved = false
	defer p.update()
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	switch {
	case p.writer:
		return 0, transport.ErrClosed
	case p.failure != nil:
		return 0, p.failure
	case p.reader && !p.held: // otherwise this end has not noticed it yet
		return 0, io.ErrClosedPipe
	case total == 0:
		return 0, nil
	case p.room() <= 0:
		return 0, transport.ErrAgain
	}
	n := p.part(min(total, p.room()))
	m := make([]byte, 0, n)
	for _, b := range bufs {
		m = append(m, b[:min(len(b), n-len(m))]...)
	}
	p.launch(m, false)
	return n, nil
}

// launch puts bytes, or the end of the stream, in flight.
func (p *pipe) launch(b []byte, piece bool) {
	p.flying = append(p.flying, packet{time.Now().Add(p.delay), b, piece})
	p.inFlight += len(b)
	if p.delay > 0 {
		time.AfterFunc(p.delay, p.land)
	} else {
		p.landDue()
	}
	p.update()
}

func (p *pipe) land() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.landDue()
	p.update()
}

func (p *pipe) landDue() {
	now := time.Now()
	for !p.held && len(p.flying) > 0 && !p.flying[0].due.After(now) {
		m := p.flying[0]
		p.flying = p.flying[1:]
		p.inFlight -= len(m.b)
		if p.eof = m.b == nil; !p.eof && !p.reader {
			p.arrived = append(p.arrived, m)
			p.here += len(m.b)
		}
	}
}

func (p *pipe) closeReader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader = true
	p.arrived, p.here = nil, 0
	p.update()
	if p.readable >= 0 {
		p.readable.Close()
		p.readable = -1
	}
}

func (p *pipe) closeWriter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writer {
		return
	}
	p.writer = true
	p.launch(nil, false)
	if p.writable >= 0 {
		p.writable.Close()
		p.writable = -1
	}
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
	p.update()
}

func (p *pipe) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	p.landDue()
	p.update()
}

// wait blocks until ready returns true.
func (p *pipe) wait(ready func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !ready() {
		p.changed.Wait()
	}
}

// descriptor returns one of the pipe's descriptors, made now if necessary; -1 after close.
func (p *pipe) descriptor(fd *evfd.FD, gone *bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *fd < 0 && !*gone {
		e, err := evfd.New()
		if err != nil {
			panic(err) // out of descriptors: a test cannot continue
		}
		*fd = e
		p.update()
	}
	return int(*fd)
}
