package pt2pt

import (
	"runtime"
	"testing"
)

// TestLitmusCell checks on processors with a weak memory order that the result of an operation is
// complete as soon as its cell is done. An emulator on x86-64 has that processor's strong order.
func TestLitmusCell(t *testing.T) {
	const cells, rounds = 4096, 50
	list := make([]Cell, cells)
	start, ended := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		for round := range rounds {
			<-start
			for i := range list {
				c := &list[i]
				c.Source, c.Tag, c.Bytes = int32(round), int32(i), int64(i*round)
				c.Finish()
			}
			ended <- struct{}{}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for round := range rounds {
		clear(list)
		start <- struct{}{}
		for i := cells - 1; i >= 0; i-- {
			c := &list[i]
			for !c.Done() {
			}
			if c.Source != int32(round) || c.Tag != int32(i) || c.Bytes != int64(i*round) {
				t.Fatalf("round %d: cell %d is done, and has %+v", round, i, *c)
			}
		}
		<-ended
	}
}
