package fdref

import (
	"sync"
	"sync/atomic"
	"testing"
)

// However uses and closes fall together: Free is called once, never during a use, and nobody uses
// what is freed.
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
