// Package fdref guards file descriptors against use after close, when the kernel may have given
// their numbers to other files.
package fdref

import "sync/atomic"

const closed = 1 << 62

// Ref counts the calls that use a set of descriptors. A new Ref is open and unused. It is safe for
// concurrent use once Free is set.
type Ref struct {
	n atomic.Int64
	// Free closes the descriptors. It is called once.
	Free func()
}

// Acquire reports whether the descriptors may be used. Only then the caller must call Release.
func (r *Ref) Acquire() bool {
	if r.n.Add(1)&closed == 0 {
		return true
	}
	r.Release()
	return false
}

// Release ends a use. The last call after Close calls Free.
func (r *Ref) Release() {
	if r.n.Add(-1) == closed && r.n.CompareAndSwap(closed, closed|1<<61) {
		r.Free()
	}
}

// Close forbids further use. It calls Free at once, or when the last running use ends. It returns
// false, and does nothing, if it was called before.
func (r *Ref) Close() bool {
	for {
		n := r.n.Load()
		if n&closed != 0 {
			return false
		}
		if r.n.CompareAndSwap(n, n|closed) {
			r.n.Add(1)
			r.Release()
			return true
		}
	}
}
