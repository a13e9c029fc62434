// Package unmaps reads the notes of libmmpi-unmaps.so (preload/unmaps.c): memory that the program
// has returned to the system. That library is loaded if the process was started with it in
// LD_PRELOAD, as zipper exec does if registrations are to be cached.
package unmaps

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include "unmaps.h"

static zu_list *zu_find(void) { return dlsym(RTLD_DEFAULT, ZU_SYMBOL); }
*/
import "C"

import (
	"errors"
	"sync/atomic"
)

// Library is the file to preload, next to the other libraries of MMPI.
const Library = "libmmpi-unmaps.so"

// List is the notes of this process. It is safe for concurrent use.
type List struct{ l *C.zu_list }

// Find returns the process's list.
func Find() (*List, error) {
	l := C.zu_find()
	if l == nil {
		return nil, errors.New(Library + ", which watches the program's memory, is not loaded: start the program by zipper run, join or exec, or preload it")
	}
	return &List{l}, nil
}

// Since calls f for each range that was noted after the first `seen` notes, from its first byte to
// the one after its last, or for the whole address space if some notes have been overwritten or are
// being written. It returns the number of notes.
func (x *List) Since(seen uint64, f func(from, to uintptr)) uint64 {
	count := load(&x.l.count)
	if count == seen {
		return count
	}
	if count-seen > C.ZU_NOTES {
		f(0, ^uintptr(0))
		return count
	}
	for ; seen != count; seen++ {
		n := &x.l.note[seen%C.ZU_NOTES]
		number := load(&n.number)
		from, to := load(&n.from), load(&n.to)
		if number != seen+1 || load(&n.number) != number {
			f(0, ^uintptr(0))
			return count
		}
		f(uintptr(from), uintptr(to))
	}
	return count
}

func load(v *C.uint64_t) uint64 { return atomic.LoadUint64((*uint64)(v)) }
