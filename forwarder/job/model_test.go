package job

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/forwarder/action"
)

// Model checking of the state machines as they are: a world of a few ranks and forwarders, of which
// every interleaving of events is explored by breadth-first search, with up to two faults. A state
// is reached again by giving a new world the same events, and is known by a hash of all that can
// have an effect on what follows.

// choice is something that can happen in a world.
type choice struct {
	kind  string
	a, b  int
	timer action.Timer
}

func (c choice) String() string { return fmt.Sprintf("%s %d %d %v", c.kind, c.a, c.b, c.timer) }

// fault reports whether it counts as a fault.
func (c choice) fault() bool {
	return slices.Contains([]string{"lose", "die", "restart", "cut", "undialled"}, c.kind)
}

// late reports whether it happens only when nothing else does: what takes seconds, while all else
// takes microseconds.
func (c choice) late() bool {
	return c.kind == "timer" && (c.timer.Kind == action.Gathering || c.timer.Kind == action.Large)
}

// explore explores all worlds of an arrangement with so many faults, and returns how many states
// there are.
func explore(t *testing.T, kind, faults, most int) int {
	t.Helper()
	type node struct {
		parent int
		by     choice
	}
	nodes := []node{{parent: -1}}
	path := func(n int) (list []choice) {
		for ; n > 0; n = nodes[n].parent {
			list = append(list, nodes[n].by)
		}
		slices.Reverse(list)
		return list
	}
	replay := func(list []choice) *world {
		w := newWorld(kind)
		for _, c := range list {
			w.happen(c)
		}
		return w
	}
	known := map[uint64]bool{newWorld(kind).hash(): true}
	for n := 0; n < len(nodes); n++ {
		way := path(n)
		w := replay(way)
		all := w.choices()
		calm := slices.ContainsFunc(all, func(c choice) bool { return !c.fault() && !c.late() })
		if len(all) == 0 || !slices.ContainsFunc(all, func(c choice) bool { return !c.fault() }) {
			if s := w.stuck(); s != "" {
				t.Fatalf("%s: nothing can happen, but %s, after\n%v", arrangements[kind].name, s, way)
			}
		}
		for _, c := range all {
			if c.fault() && w.faults >= faults || c.late() && calm {
				continue
			}
			next := replay(way)
			next.happen(c)
			if len(next.wrong) > 0 {
				t.Fatalf("%s: %v after\n%v", arrangements[kind].name, next.wrong, append(way, c))
			}
			if h := next.hash(); !known[h] {
				known[h] = true
				nodes = append(nodes, node{n, c})
			}
			if len(nodes) >= most {
				t.Logf("%s: %d faults: stopped after %d states", arrangements[kind].name, faults, len(nodes))
				return len(nodes)
			}
		}
	}
	t.Logf("%s: %d faults: %d states", arrangements[kind].name, faults, len(nodes))
	return len(nodes)
}

// TestModel explores jobs of two clusters, of one and of two ranks, over one forwarder, over two
// side by side, and over a row of two: whatever the order of joins, byes, losses, timers and
// restarts, no transition is illegal, no job ends twice, no frame goes to a rank that has left, and
// everybody ends. The long form has up to two faults, the short one the first 1500 states with one
// or none.
func TestModel(t *testing.T) {
	long := os.Getenv("ZIPPER_LONG") != ""
	for _, c := range []struct{ kind, faults, most int }{{0, 1, 1500}, {2, 0, 1500}, {3, 0, 1500}} {
		if long {
			c.faults, c.most = 2, 1<<62
		}
		explore(t, c.kind, c.faults, c.most)
	}
}
