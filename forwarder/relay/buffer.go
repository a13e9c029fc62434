package relay

import (
	"sync"
	"sync/atomic"

	"github.com/leidenzipper/zipper/forwarder/budget"
)

// buffer holds queued bytes: one frame, or several small frames in a row. refs counts the queue
// entries that point into the buffer; the mutex of the output that holds them guards it.
type buffer struct {
	b     []byte // the bytes of the frames; the capacity is that of the buffer's size class
	refs  int
	class int
}

// pool allocates buffers of several sizes, and reuses released ones. It is safe for concurrent use.
type pool struct{ free [len(classes)]sync.Pool }

// get returns an empty buffer with room for n bytes. n must be at most the largest size class.
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

// put releases a buffer, to which no queue entry refers any more, for reuse.
func (p *pool) put(b *buffer) {
	b.b, b.refs = b.b[:0], 0
	p.free[b.class].Put(b)
}

// The bytes of a connection that the forwarder still holds are charged to that connection: its
// frames in queues, with their buffers, and a frame that has arrived in part. While the charge
// exceeds the rest of a budget, the connection is not read (state.go).

// entrySize is the size of a queue entry in bytes, rounded up.
const entrySize = 96

// memory accounts for the bytes that were received over a connection and are still held. It is safe
// for concurrent use.
type memory struct {
	budget.Account
	paused atomic.Bool // whether the connection is not read, for lack of memory; set on the connection's loop
	waking atomic.Bool // whether a call of wake is pending
	wake   func()      // asks the loop to check whether reading can resume
}

// charge charges n received bytes that are held from now on to the connection's memory.
func (m *memory) charge(n int) { m.Take(int64(n)) }

// release releases n bytes that charge has charged. If the connection was not read for lack of
// memory and is under its limits again, release asks its loop to read on.
func (m *memory) release(n int) {
	m.Take(-int64(n))
	if m.paused.Load() && m.Under() && m.waking.CompareAndSwap(false, true) {
		m.wake()
	}
}
