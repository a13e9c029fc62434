package job

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"
)

// Model checking of the state machines as they are: a world of a few ranks and forwarders, of which
// every interleaving of events is explored by breadth-first search, with up to two faults. Five
// things keep the search small without leaving a behaviour out:
//
//  1. A state is known by all that later events depend on, and no more (encode_test.go).
//  2. An operation on a forwarder is performed once for each state of that forwarder, rather than for
//     each state of the world (cache_test.go). TestEqualHashesHaveEqualFutures checks both.
//  3. States are explored with the fewest faults that lead to them, so the number of faults is no
//     part of a state (search.level).
//  4. Ranks of one cluster join for the first time in their order (world.turn).
//  5. The end of a connection that nothing depends on any more is explored in one order with all
//     other events (world.alone). TestReductionKeepsStates and TestAloneCommutes check that.
//
// A connection that can do nothing more leaves the world (pipe.gone), or each attempt to dial again
// would lead to a new state.

// TestModel explores jobs of two clusters, of one and of two ranks, over one forwarder, over two
// side by side, and over a row of two, and jobs of one rank each over a short row of two. In any
// order of joins, byes, losses, timers and restarts, no transition is illegal, no job ends twice,
// no frame goes to a rank that has left, and all ranks end. Jobs that outlive clusters lose whole
// clusters as well, and go on as long as another one lives. The short form has all states of one
// forwarder with up to two faults, of the short row with one, and of the others without faults. The
// long form (ZIPPER_LONG=1) has all states of all arrangements with up to two faults.
func TestModel(t *testing.T) {
	const all = math.MaxInt
	long := os.Getenv("ZIPPER_LONG") != ""
	for _, c := range []struct{ kind, faults, long, most int }{
		{0, 2, 2, all}, {2, 0, 2, all}, {6, 1, 2, all}, {3, 0, 2, all}, {7, 2, 2, all}, {14, 2, 2, all}, {8, 0, 2, all},
		{9, 0, 2, all}, {13, 0, 2, all}, {11, 0, 2, all},
	} {
		if long {
			c.faults = c.long
		}
		t.Run(arrangements[c.kind].name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			s := explore(newModel(c.kind), c.faults, c.most, progress(arrangements[c.kind].name))
			if s.wrong != nil {
				t.Fatal(s.wrong)
			}
			whole := "all"
			if len(s.queue.of) > 0 {
				whole = "the first"
			}
			t.Logf("%d faults: %s %d states, of %d states of a forwarder, in %v", s.level, whole, s.explored(), len(s.model.states),
				time.Since(begun).Round(time.Millisecond))
		})
	}
}

// progress returns a function that writes a line about a search to standard error each minute.
func progress(name string) func(s *search) {
	last := time.Now()
	return func(s *search) {
		if s.explored()%4096 != 0 || time.Since(last) < time.Minute {
			return
		}
		last = time.Now()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprintf(os.Stderr, "%v %s: %d faults: %d states, %d wait, %d wait for the next level; %d states of a forwarder; %d MiB\n",
			last.Format(time.TimeOnly), name, s.level, s.explored(), len(s.queue.of), len(s.later.of), len(s.model.states), m.Sys>>20)
	}
}
