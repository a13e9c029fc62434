// Package sparse has tables by rank that take memory for those ranks only of which there is
// something: a process of a job of a hundred thousand talks to few of them.
package sparse

import "iter"

// pageSize is how many entries in a row get memory together.
const pageSize = 64

// Table has an entry for each number from 0 on, the zero value until it is set. Not safe for
// concurrent use.
type Table[T any] struct{ pages []*page[T] }

type page[T any] [pageSize]T

// New makes a table for numbers below n.
func New[T any](n int) Table[T] {
	return Table[T]{make([]*page[T], (n+pageSize-1)/pageSize)}
}

// Get gives the entry of a number that the table is for.
func (t *Table[T]) Get(i int) (v T) {
	if p := t.pages[i/pageSize]; p != nil {
		return p[i%pageSize]
	}
	return v
}

// Set sets it.
func (t *Table[T]) Set(i int, v T) {
	p := t.pages[i/pageSize]
	if p == nil {
		p = new(page[T])
		t.pages[i/pageSize] = p
	}
	p[i%pageSize] = v
}

// All gives the entries that may have been set, in order, and zero values between them.
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
