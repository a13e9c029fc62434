// Package sparse has tables by rank that only use memory for ranks with an entry. A process of a
// job of a hundred thousand ranks communicates with few of them.
package sparse

import "iter"

// pageSize is the number of consecutive entries that are allocated together.
const pageSize = 64

// Table has an entry for each number from 0 on, which is the zero value until it is set. It is not
// safe for concurrent use.
type Table[T any] struct{ pages []*page[T] }

type page[T any] [pageSize]T

// New returns a table for numbers below n.
func New[T any](n int) Table[T] {
	return Table[T]{make([]*page[T], (n+pageSize-1)/pageSize)}
}

// Get returns the entry of number i, which must be below n.
func (t *Table[T]) Get(i int) (v T) {
	if p := t.pages[i/pageSize]; p != nil {
		return p[i%pageSize]
	}
	return v
}

// Set sets the entry of number i, which must be below n.
func (t *Table[T]) Set(i int, v T) {
	p := t.pages[i/pageSize]
	if p == nil {
		p = new(page[T])
		t.pages[i/pageSize] = p
	}
	p[i%pageSize] = v
}

// All returns the entries that may have been set, in order, and zero values between and after them,
// also for numbers from n on.
func (t *Table[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for k, p := range t.pages {
			if p == nil {
				continue
			}
			for i, v := range p {
				if !yield(k*pageSize+i, v) {
					return
				}
			}
		}
	}
}
