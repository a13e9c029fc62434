package fdref

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestFreeOnce checks for any order of uses and closes that Free is called once and never during a
// use, and that no call uses a freed set.
func TestFreeOnce(t *testing.T) {
	for range 300 {
		var freed, using atomic.Int32
		r := Ref{Free: func() {
			if using.Load() != 0 {
				t.Error("freed while in use")
			}
			freed.Add(1)
		}}
		var wg sync.WaitGroup
		var closed atomic.Int32
		for range 3 {
			wg.Go(func() {
				for r.Acquire() {
					using.Add(1)
					if freed.Load() != 0 {
						t.Error("used after it was freed")
					}
					using.Add(-1)
					r.Release()
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				if r.Close() {
					closed.Add(1)
				}
			})
		}
		wg.Wait()
		if freed.Load() != 1 || closed.Load() != 1 {
			t.Fatalf("freed %d times, closed %d times", freed.Load(), closed.Load())
		}
	}
}
