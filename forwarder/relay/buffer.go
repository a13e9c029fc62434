package relay

import (
	"sync"
	"sync/atomic"

	"github.com/leidenzipper/zipper/forwarder/budget"
)

// buffer holds queued bytes. It belongs to one frame, or to several small ones in a row; refs
// counts the queue entries that point into it and is guarded by the mutex of the output that holds
// them.
type buffer struct {
	b     []byte // len: bytes in use
	refs  int
	class int
}

// pool hands out buffers. Safe for concurrent use.
type pool struct{ free [len(classes)]sync.Pool }

// get returns an empty buffer with room for n bytes, n at most the largest class.
func (p *pool) get(n int) *buffer {
	for c, size := range classes {
		if n <= size {
			if b, ok := p.free[c].Get().(*buffer); ok {
				return b
			}
			return &buffer{b: make([]byte, 0, size), class: c}
		}
	}
	panic("forwarder: buffer larger than a frame") // wire.ParseHeader bounds every frame
}

func (p *pool) put(b *buffer) {
	b.b, b.refs = b.b[:0], 0
	p.free[b.class].Put(b)
}

// What is kept of what came over a connection is booked to it: its frames that wait in queues, with
// the buffers that they are in, and the frame that has come in part. While that is more than what
// is left of a budget the connection is not read (state.go).

// entrySize is what a queue's entry itself takes, in bytes, and a little more.
const entrySize = 96

// memory is what is kept of what came over a connection. Safe for concurrent use.
type memory struct {
	budget.Account
	paused atomic.Bool // the connection is not read; set on its loop
	waking atomic.Bool // wake has been called
	wake   func()      // has the loop look whether it is to be read again
}

// took books n bytes.
func (m *memory) took(n int) { m.Take(int64(n)) }

// gave gives them back.
func (m *memory) gave(n int) {
	m.Take(-int64(n))
	if m.paused.Load() && m.Under() && m.waking.CompareAndSwap(false, true) {
		m.wake()
	}
}
