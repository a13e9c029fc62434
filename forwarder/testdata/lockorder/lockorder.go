// Package lockorder has a mutex that panics when a goroutine takes locks in another order than that
// of their levels. TestLockOrder builds the forwarder with it in place of sync.Mutex.
package lockorder

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

// Planted is the number of the inversion that is on, from 1; 0: none is.
var Planted, _ = strconv.Atoi(os.Getenv("ZIPPER_INVERSION"))

// Level is a lock's place in the order, as the length of an array type.
type Level interface {
	~[0]byte | ~[1]byte | ~[2]byte | ~[3]byte | ~[4]byte | ~[5]byte | ~[6]byte | ~[7]byte
}

// Mutex is a lock of a level. A goroutine that takes one may hold only locks of lower levels.
type Mutex[L Level] struct{ mu sync.Mutex }

// held has the levels of the locks that each goroutine holds.
var held = struct {
	sync.Mutex
	by map[uint64][]int
}{by: map[uint64][]int{}}

// Lock checks the order and takes the lock.
func (m *Mutex[L]) Lock() {
	var l L
	me := goroutine()
	held.Lock()
	for _, h := range held.by[me] {
		if h >= len(l) {
			held.Unlock()
			panic(fmt.Sprintf("lock order: level %d is taken while level %d is held", len(l), h))
		}
	}
	held.by[me] = append(held.by[me], len(l))
	held.Unlock()
	m.mu.Lock()
}

// Unlock gives the lock back.
func (m *Mutex[L]) Unlock() {
	m.mu.Unlock()
	var l L
	me := goroutine()
	held.Lock()
	defer held.Unlock()
	list := held.by[me]
	for i, h := range list {
		if h == len(l) {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if held.by[me] = list; len(list) == 0 {
		delete(held.by, me)
	}
}

// goroutine returns the number of the goroutine that runs.
func goroutine() uint64 {
	var b [64]byte
	field := bytes.Fields(b[:runtime.Stack(b[:], false)])[1]
	n, err := strconv.ParseUint(string(field), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
