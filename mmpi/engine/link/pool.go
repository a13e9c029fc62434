package link

import "math/bits"

// Pool keeps byte buffers by size class, so that the steady path allocates nothing. Not safe for
// concurrent use.
type Pool struct {
	free [poolClasses][][]byte
	kept int // bytes in free
}

const (
	poolSmallest = 7 // 128 bytes
	poolClasses  = 15
)

func poolClass(n int) int {
	if n <= 1<<poolSmallest {
		return 0
	}
	return bits.Len(uint(n-1)) - poolSmallest
}

// Get gives n bytes with arbitrary contents.
func (p *Pool) Get(n int) []byte {
	c := poolClass(n)
	if c >= poolClasses {
		return make([]byte, n)
	}
	if l := len(p.free[c]); l > 0 {
		b := p.free[c][l-1]
		p.free[c][l-1] = nil
		p.free[c] = p.free[c][:l-1]
		p.kept -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<(c+poolSmallest))
}

// Put gives back what Get gave.
func (p *Pool) Put(b []byte) {
	c := poolClass(cap(b))
	if cap(b) == 0 || c >= poolClasses || cap(b) != 1<<(c+poolSmallest) || p.kept+cap(b) > poolKeep {
		return
	}
	p.kept += cap(b)
	p.free[c] = append(p.free[c], b[:0])
}
