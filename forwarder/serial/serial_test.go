package serial

import (
	"slices"
	"sync"
	"testing"
)

// TestFunctionsKeepTheirOrder checks that functions that may block run one after the other, in the
// order in which they were given, and that a queue without functions runs the next one.
func TestFunctionsKeepTheirOrder(t *testing.T) {
	var q Queue
	var began, ended, want []int // not protected: the race detector finds two functions that run at a time
	aside := func(work, done func()) {
		go func() {
			work()
			done()
		}()
	}
	for range 2 {
		var all sync.WaitGroup
		gate := make(chan bool)
		for i := range 100 {
			want = append(want, i)
			all.Add(1)
			q.Do(aside, func() {
				if i == 0 {
					<-gate
				}
				began = append(began, i)
			}, func() {
				ended = append(ended, i)
				all.Done()
			})
		}
		q.Do(aside, func() {}, nil)
		close(gate)
		all.Wait()
	}
	if !slices.Equal(began, want) || !slices.Equal(ended, want) {
		t.Errorf("the order is %v, and %v of the ends", began, ended)
	}
}
