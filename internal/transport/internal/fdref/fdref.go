// Package fdref guards file descriptors against use after close: a number that the kernel has given
// to another file meanwhile must never be read or written by mistake.
package fdref

import "sync/atomic"

const closed = 1 << 62

// Ref counts the calls that use a set of descriptors. A new one is open and unused. Safe for
// concurrent use once Free is set.
type Ref struct {
	n atomic.Int64
	// Free closes the descriptors. It is called once.
	Free func()
}

// Acquire reports whether the descriptors may be used; the caller must Release then (and only
// then).
func (r *Ref) Acquire() bool {
	if r.n.Add(1)&closed == 0 {
		return true
	}
	r.Release()
	return false
}

// Release ends a use. The last one after Close calls Free.
func (r *Ref) Release() {
	if r.n.Add(-1) == closed && r.n.CompareAndSwap(closed, closed|1<<61) {
		r.Free()
	}
}

// Close forbids further use and calls Free at once or when the last running use ends. It reports
// false, and does nothing, when it was called before.
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
