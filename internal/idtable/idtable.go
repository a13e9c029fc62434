// Package idtable has a table of things by small numbers that readers need no lock for.
package idtable

import "sync/atomic"

// Table gives the thing with a number. Its zero value is empty. Set is called by one goroutine at a
// time, Get by any at any time. Both take constant time: a change writes one place, and the table
// is copied only when it has to be twice as large.
type Table[T any] struct {
	places atomic.Pointer[[]atomic.Pointer[T]]
}

// Set puts the thing with number id, 0 or more, there; nil: there is none.
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

// Get gives the thing with number id; nil if there is none.
func (t *Table[T]) Get(id int32) *T {
	p := t.places.Load()
	if p == nil || id < 0 || int(id) >= len(*p) {
		return nil
	}
	return (*p)[id].Load()
}
