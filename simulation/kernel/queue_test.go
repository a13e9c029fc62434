package kernel

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestQueue checks that events come out in order while others are added.
func TestQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q queue
	var all []event // events in the queue, in any order
	for seq := range uint64(20_000) {
		if len(all) == 0 || r.IntN(100) < 52 {
			e := event{at: time.Duration(r.IntN(50)), tie: r.Uint32N(3), seq: seq}
			q.push(e)
			all = append(all, e)
			continue
		}
		least := 0
		for i := range all {
			if all[i].before(&all[least]) {
				least = i
			}
		}
		if got := q.pop(); got != all[least] {
			t.Fatalf("got %+v, want %+v", got, all[least])
		}
		all = append(all[:least], all[least+1:]...)
	}
	if len(all) < 100 || len(all) != len(q) {
		t.Errorf("%d events are left, want %d", len(q), len(all))
	}
}
