package relay

import "sync"

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
