//go:build openmpi || mpich

package main

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi"
)

// windows checks that a put arrives while its target only reads its memory: rank 0 reads until the
// last rank has written.
func windows(p *mmpi.Process) (any, error) {
	w := p.World()
	win, err := mmpi.NewWindow(w, 16)
	if err != nil {
		return nil, err
	}
	switch w.Rank() {
	case w.Size() - 1:
		for i, b := range []byte{42, 1} { // the value, then a flag that says it is there
			if err := errors.Join(win.Put([]byte{b}, 0, 8*i), win.Flush(0)); err != nil {
				return nil, err
			}
		}
	case 0:
		flag := (*atomic.Uint64)(unsafe.Pointer(&win.Memory()[8]))
		for flag.Load() == 0 {
			if err := win.Sync(); err != nil {
				return nil, err
			}
		}
	}
	value := win.Memory()[0]
	return value, win.Free()
}
