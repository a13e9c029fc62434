// Package idtable has a table of pointers by small numbers that readers use without a lock.
package idtable

import "sync/atomic"

// Table maps numbers to pointers. Its zero value is empty. Set must be called by one goroutine at a
// time; Get may be called by any at any time. Both take constant time: a change writes one entry,
// and the table is copied only when its size doubles.
type Table[T any] struct {
	places atomic.Pointer[[]atomic.Pointer[T]]
}

// Set sets the entry of number id, 0 or more. nil removes it.
func (t *Table[T]) Set(id int32, v *T) {
	p := t.places.Load()
	if p == nil || int(id) >= len(*p) {
		if v == nil {
			return
		}
		larger := make([]atomic.Pointer[T], max(8, 2*int(id)))
		if p != nil {
			for i := range *p {
				larger[i].Store((*p)[i].Load())
			}
		}
		p = &larger
		larger[id].Store(v)
		t.places.Store(p)
		return
	}
	(*p)[id].Store(v)
}

// Get returns the entry of number id, or nil if there is none.
func (t *Table[T]) Get(id int32) *T {
	p := t.places.Load()
	if p == nil || id < 0 || int(id) >= len(*p) {
		return nil
	}
	return (*p)[id].Load()
}
