package job

import (
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/forwarder/action"
)

// TestAloneCommutes checks that the choices of world.alone lead to the same state before and after
// any other event.
func TestAloneCommutes(t *testing.T) {
	most := 5_000
	if os.Getenv("ZIPPER_LONG") != "" {
		most = 200_000
	}
	for _, kind := range []int{0, 2, 3, 6, 9} {
		pairs := 0
		s := &search{model: newModel(kind), faults: 2, look: func(w *world) {
			all := w.choices()
			c, alone := w.alone(all)
			if !alone {
				return
			}
			for _, d := range all {
				if d != c && !d.late() {
					way := after(w, d, c.kind)
					if !slices.ContainsFunc(after(w, c, d.kind), func(h uint64) bool { return slices.Contains(way, h) }) {
						t.Fatalf("%s: %v and %v do not commute", arrangements[kind].name, c, d)
					}
					pairs++
				}
			}
		}}
		s.run(most, func(*search) {})
		if t.Logf("%s: %d pairs", arrangements[kind].name, pairs); pairs == 0 {
			t.Errorf("%s: no pair", arrangements[kind].name)
		}
	}
}

// after returns the states of a world after one choice and then any of a kind. The second choice
// may have happened with the first one: a rank's link closes with its forwarder, for one.
func after(w *world, first choice, then choiceKind) []uint64 {
	w = w.clone()
	w.happen(first)
	hashes := []uint64{w.hash()}
	for _, c := range w.choices() {
		if c.kind == then {
			to := w.clone()
			to.happen(c)
			hashes = append(hashes, to.hash())
		}
	}
	return hashes
}

// TestReductionKeepsStates checks the search with world.alone against the one without: each state
// that the latter finds leads, by choices of world.alone only, to one that the former has found,
// too. In rows the search without it has no end, because connections whose ends are never reported
// accumulate.
func TestReductionKeepsStates(t *testing.T) {
	list := []struct{ kind, faults, most int }{{0, 2, math.MaxInt}, {14, 2, math.MaxInt}, {6, 1, 8_000}}
	if os.Getenv("ZIPPER_LONG") != "" {
		list = append(list, []struct{ kind, faults, most int }{{2, 2, math.MaxInt}, {6, 1, 300_000}, {9, 1, 300_000}, {3, 1, 300_000}}...)
	}
	for _, c := range list {
		m := newModel(c.kind)
		reduced := &search{model: m, faults: c.faults}
		reduced.run(math.MaxInt, func(*search) {})
		more := 0
		full := &search{model: m, faults: c.faults, full: true, look: func(w *world) {
			if !reduced.known.has(w.hash()) {
				more++
			}
			for choice, alone := w.alone(w.choices()); alone; choice, alone = w.alone(w.choices()) {
				w.happen(choice)
			}
			if !reduced.known.has(w.hash()) {
				t.Fatalf("%s: the reduced search has not found %+v", arrangements[c.kind].name, w)
			}
		}}
		full.run(c.most, func(*search) {})
		if reduced.wrong != nil || full.wrong != nil {
			t.Fatal(reduced.wrong, full.wrong)
		}
		if t.Logf("%s: %d states, and in full %d, %d of them new", arrangements[c.kind].name, reduced.explored(), full.explored(), more); more == 0 {
			t.Errorf("%s: nothing is reduced", arrangements[c.kind].name)
		}
	}
}

// TestPlantedFaultsAreFound checks that the search finds faults of the state machines, with and
// without world.alone.
func TestPlantedFaultsAreFound(t *testing.T) {
	// forget plants the fault that a job does not set timers of some kinds.
	forget := func(kinds ...action.Kind) func(z *forwarder) {
		return func(z *forwarder) {
			if z.shell != nil {
				maps.DeleteFunc(z.timers, func(t action.Timer, _ bool) bool { return slices.Contains(kinds, t.Kind) })
			}
		}
	}
	for _, p := range []struct {
		name  string
		kind  int
		plant func(z *forwarder)
	}{
		{"a lost rank is awaited without end", 0, forget(action.Return)},
		{"a lost rank is awaited without end", 9, forget(action.Return)},
		{"a job gathers without end", 0, forget(action.Gathering)},
		{"a lost rank is awaited without end", 6, forget(action.Return)},
		{"a cut bridge is awaited without end", 6, forget(action.Again, action.Cut)},
		{"a rank that comes back counts twice", 0, func(z *forwarder) {
			if z.shell != nil && z.job.State() == Running && len(z.job.ranks.reconnected) > 0 {
				z.job.ranks.live++
			}
		}},
	} {
		for _, full := range []bool{false, true} {
			m := newModel(p.kind)
			m.plant = p.plant
			s := &search{model: m, faults: 1, full: full}
			if s.run(50_000, func(*search) {}); s.wrong == nil {
				t.Errorf("%s: %s: no fault is found in %d states (full: %v)", arrangements[p.kind].name, p.name, s.explored(), full)
			} else {
				t.Logf("%s: %s: after %d states: %.200v", arrangements[p.kind].name, p.name, s.explored(), s.wrong)
			}
		}
	}
}
