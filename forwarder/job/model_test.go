package job

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/forwarder/action"
)

// Model checking of the state machines as they are: a world of a few ranks and forwarders, of which
// every interleaving of events is explored by breadth-first search, with up to two faults. Four
// things keep the number of states small without leaving a behaviour out:
//
//  1. A state is known by a hash of all that later events depend on, and no more (encode_test.go).
//     TestEqualHashesHaveEqualFutures checks that states with the same hash have the same future.
//  2. States are explored with the fewest faults that lead to them, so the number of faults is no
//     part of a state (search.level).
//  3. Ranks of one cluster join for the first time in their order (world.turn).
//  4. The end of a connection that nothing depends on any more is explored in one order with all
//     other events (world.alone).

// choice is a possible event in a world.
type choice struct {
	kind  string
	a, b  int
	timer action.Timer
}

func (c choice) String() string { return fmt.Sprintf("%s %d %d %v", c.kind, c.a, c.b, c.timer) }

// fault reports whether the event counts as a fault.
func (c choice) fault() bool {
	return slices.Contains([]string{"lose", "die", "perish", "restart", "cut", "undialled"}, c.kind)
}

// late reports whether the event is the end of a timer so long that it expires only when no other
// event is possible.
func (c choice) late() bool {
	return c.kind == "timer" && (c.timer.Kind == action.Gathering || c.timer.Kind == action.Large)
}

// node is a state of a search, and the path to it.
type node struct {
	parent int
	by     choice
	hash   uint64
}

// search explores the worlds of an arrangement.
type search struct {
	*testing.T
	kind   int
	faults int             // faults is the maximum number of faults.
	level  int             // level is the number of faults so far.
	nodes  []node          // nodes has the states that were found, oldest first.
	queue  []int           // queue has the nodes of this level that are not explored yet.
	known  map[uint64]bool // known has the hashes of this level's nodes and of those before it.
	later  map[uint64]int  // later has the nodes of the next level by their hashes.
}

// explore explores the worlds of an arrangement with at most a number of faults, level by level.
// most bounds the number of states.
func explore(t *testing.T, kind, faults, most int) {
	t.Helper()
	first := newWorld(kind).hash()
	s := &search{T: t, kind: kind, faults: faults, nodes: []node{{parent: -1, hash: first}}, known: map[uint64]bool{},
		later: map[uint64]int{first: 0}}
	states := 0
	for ; s.level <= faults; s.level++ {
		for h, n := range s.later {
			if !s.known[h] {
				s.known[h], s.queue = true, append(s.queue, n)
			}
		}
		slices.Sort(s.queue)
		clear(s.later)
		for len(s.queue) > 0 {
			n := s.queue[0]
			s.queue = s.queue[1:]
			s.expand(n)
			if states++; states == most {
				t.Logf("%s: %d faults: stopped after %d states", arrangements[kind].name, s.level, states)
				return
			}
		}
		t.Logf("%s: %d faults: %d states", arrangements[kind].name, s.level, states)
	}
}

// path returns the events that lead to a node.
func (s *search) path(n int) (list []choice) {
	for ; n > 0; n = s.nodes[n].parent {
		list = append(list, s.nodes[n].by)
	}
	slices.Reverse(list)
	return list
}

// expand finds the successors of a node, and checks them.
func (s *search) expand(n int) {
	way := s.path(n)
	w := replay(s.kind, way)
	all := w.choices()
	if !slices.ContainsFunc(all, func(c choice) bool { return !c.fault() }) {
		if left := w.stuck(); left != "" {
			s.Fatalf("%s: nothing can happen, but %s, after\n%v", arrangements[s.kind].name, left, way)
		}
	}
	calm := slices.ContainsFunc(all, func(c choice) bool { return !c.fault() && !c.late() })
	all = slices.DeleteFunc(all, func(c choice) bool { return c.fault() && s.level >= s.faults || c.late() && calm })
	if c, alone := w.alone(all); alone {
		all = []choice{c}
	}
	for i, c := range all {
		w := w
		if i < len(all)-1 {
			w = w.clone()
		}
		w.happen(c)
		if len(w.wrong) > 0 {
			s.Fatalf("%s: %v after\n%v", arrangements[s.kind].name, w.wrong, append(way, c))
		}
		s.found(node{n, c, w.hash()})
	}
}

// found records a state unless it is known.
func (s *search) found(x node) {
	_, waits := s.later[x.hash]
	switch {
	case s.known[x.hash]:
	case !x.by.fault():
		s.known[x.hash], s.queue = true, append(s.queue, len(s.nodes))
		s.nodes = append(s.nodes, x)
	case !waits:
		s.later[x.hash] = len(s.nodes)
		s.nodes = append(s.nodes, x)
	}
}

// replay returns the world of an arrangement after a sequence of events.
func replay(kind int, way []choice) *world {
	w := newWorld(kind)
	for _, c := range way {
		w.happen(c)
	}
	return w
}

// TestModel explores jobs of two clusters, of one and of two ranks, over one forwarder, over two
// side by side, and over a row of two. In any order of joins, byes, losses, timers and restarts, no
// transition is illegal, no job ends twice, no frame goes to a rank that has left, and all ranks
// end. Jobs that outlive clusters lose whole clusters as well, and go on as long as another one
// lives. The short form has all states of one forwarder with up to two faults and of the others
// without faults. The long form (ZIPPER_LONG=1) has all states of two side by side with up to two
// faults, and a million states of rows, which have more than that with one fault.
func TestModel(t *testing.T) {
	long := os.Getenv("ZIPPER_LONG") != ""
	for _, c := range []struct{ kind, faults, long, most int }{
		{0, 2, 2, math.MaxInt}, {2, 0, 2, math.MaxInt}, {6, 0, 2, 1_000_000}, {3, 0, 2, 1_000_000},
		{7, 2, 2, math.MaxInt}, {14, 2, 2, math.MaxInt}, {8, 0, 2, 1_000_000}, {9, 0, 2, 1_000_000}, {13, 0, 1, 1_000_000},
		{11, 0, 1, 1_000_000},
	} {
		if long {
			c.faults = c.long
		}
		explore(t, c.kind, c.faults, c.most)
	}
}

// TestEqualHashesHaveEqualFutures checks that worlds with the same hash have the same future: the
// states that may follow a state do not depend on the way that led to it.
func TestEqualHashesHaveEqualFutures(t *testing.T) {
	most := 80
	if os.Getenv("ZIPPER_LONG") != "" {
		most = 3000
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, kind := range []int{0, 2, 3, 6, 7, 9, 11} {
		ways := [][]choice{nil}
		follow := func(way []choice) (text string, next [][]choice, states []uint64) {
			var list []string
			for _, c := range replay(kind, way).choices() {
				to := append(slices.Clone(way), c)
				h := replay(kind, to).hash()
				next, states, list = append(next, to), append(states, h), append(list, fmt.Sprintf("%s %x", c.kind, h))
			}
			slices.Sort(list)
			return strings.Join(slices.Compact(list), "\n"), next, states
		}
		type found struct {
			way    []choice
			follow string
		}
		known, merged := map[uint64]*found{newWorld(kind).hash(): {}}, 0
		for range most {
			if len(ways) == 0 {
				break
			}
			// half of them the last one, so that some are long
			n := max(r.IntN(2*len(ways))-len(ways), 0)
			n = len(ways) - 1 - n
			way := ways[n]
			ways = slices.Delete(ways, n, n+1)
			text, next, states := follow(way)
			known[replay(kind, way).hash()].follow = text
			for i, to := range next {
				old := known[states[i]]
				if old == nil {
					known[states[i]] = &found{way: to}
					ways = append(ways, to)
					continue
				}
				if old.follow == "" {
					old.follow, _, _ = follow(old.way)
				}
				if text, _, _ := follow(to); text != old.follow {
					t.Fatalf("%s: these have the same hash:\n%v\n%v\nafter the first:\n%s\nafter the second:\n%s",
						arrangements[kind].name, old.way, to, old.follow, text)
				}
				merged++
			}
		}
		t.Logf("%s: %d states, %d more ways to them", arrangements[kind].name, len(known), merged)
	}
}
