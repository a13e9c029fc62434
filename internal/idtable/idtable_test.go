package idtable

import (
	"sync"
	"testing"
)

func TestTable(t *testing.T) {
	var table Table[int32]
	for _, id := range []int32{-1, 0, 5} {
		if table.Get(id) != nil {
			t.Errorf("an empty table has %d", id)
		}
	}
	const n = 1000
	table.Set(n, nil)
	for id := range int32(n) {
		table.Set(id, &id)
	}
	for id := range int32(n) {
		if got := table.Get(id); got == nil || *got != id {
			t.Fatalf("%d gives %v", id, got)
		}
	}
	table.Set(7, nil)
	if table.Get(7) != nil || table.Get(8) == nil || table.Get(n) != nil || table.Get(1<<20) != nil {
		t.Error("after taking 7 out")
	}
}

// TestReaders checks that an entry stays readable while others change.
func TestReaders(t *testing.T) {
	var table Table[int32]
	first := int32(0)
	table.Set(0, &first)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if table.Get(0) != &first {
					t.Error("the first is gone")
					return
				}
			}
		})
	}
	for id := range int32(5000) {
		table.Set(id+1, &id)
		if id%3 == 0 {
			table.Set(id+1, nil)
		}
	}
	close(stop)
	readers.Wait()
}

// TestConstantTime checks that a change allocates nothing where the table need not grow.
func TestConstantTime(t *testing.T) {
	var table Table[int32]
	v := new(int32)
	table.Set(1<<16, v)
	if n := testing.AllocsPerRun(100, func() { table.Set(5, v); table.Set(5, nil) }); n != 0 {
		t.Errorf("a change allocates %v times", n)
	}
}
