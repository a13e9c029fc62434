package job

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// search explores the worlds of an arrangement.
type search struct {
	*model
	faults int    // faults is the maximum number of faults.
	level  int    // level is the number of faults so far.
	queue  queue  // queue has the worlds of this level that are not explored yet.
	known  states // known has the states of this level and of those before it.
	// later has the worlds of the next level, and laterKnown their states.
	later      queue
	laterKnown states
	wrong      error          // wrong describes the violation in a state, and the choices that have led to it.
	full       bool           // full says that world.alone is not used.
	look       func(w *world) // look is called with a copy of each world that is explored, unless nil.
	packed     []byte         // packed is the buffer for packed worlds.
}

// explore explores the worlds of a model with at most a number of faults, level by level, until one
// is wrong. most bounds the number of states. progress is called after each state.
func explore(m *model, faults, most int, progress func(s *search)) *search {
	s := &search{model: m, faults: faults}
	s.run(most, progress)
	return s
}

// run is explore, for a search that is set up.
func (s *search) run(most int, progress func(s *search)) {
	first := s.newWorld().pack(nil)
	s.later.push(first, -1)
	for ; s.level <= s.faults; s.level++ {
		s.begin()
		for len(s.queue.of) > 0 {
			if s.explored() >= most {
				return
			}
			packed, n := s.queue.pop()
			if s.expand(s.unpack(packed), n); s.wrong != nil {
				return
			}
			progress(s)
		}
	}
	s.level = s.faults
}

// begin begins a level with those worlds that were not found with fewer faults.
func (s *search) begin() {
	for len(s.later.of) > 0 {
		packed, from := s.later.pop()
		if n, isNew := s.known.add(maphash.Bytes(seed, packed), from); isNew {
			s.queue.push(packed, n)
		}
	}
	s.later, s.laterKnown = queue{}, states{}
}

// explored returns the number of states that were explored.
func (s *search) explored() int { return len(s.known.hashes) - len(s.queue.of) }

// expand finds the successors of a world with number n, and checks them.
func (s *search) expand(w *world, n int32) {
	if s.look != nil {
		s.look(w.clone())
	}
	all := w.choices()
	if !slices.ContainsFunc(all, func(c choice) bool { return !c.fault() }) {
		if left := w.stuck(); left != "" {
			s.wrong = fmt.Errorf("nothing can happen, but %s, after\n%v", left, s.path(n))
			return
		}
	}
	list := s.chosen(w, all)
	for i, c := range list {
		to := w
		if i < len(list)-1 {
			to = w.clone()
		}
		to.happen(c)
		if len(to.wrong) > 0 {
			s.wrong = fmt.Errorf("%v after\n%v", to.wrong, append(s.path(n), c))
			return
		}
		s.found(to, c, n)
	}
}

// chosen returns the choices of those in all that have to be explored.
func (s *search) chosen(w *world, all []choice) []choice {
	calm := slices.ContainsFunc(all, func(c choice) bool { return !c.fault() && !c.late() })
	all = slices.DeleteFunc(all, func(c choice) bool { return c.fault() && s.level >= s.faults || c.late() && calm })
	if c, alone := w.alone(all); alone && !s.full {
		return []choice{c}
	}
	return all
}

// found records a world that follows from number n by a choice, unless it is known.
func (s *search) found(w *world, by choice, n int32) {
	s.packed = w.pack(s.packed[:0])
	hash := maphash.Bytes(seed, s.packed)
	switch {
	case !by.fault():
		if to, isNew := s.known.add(hash, n); isNew {
			s.queue.push(slices.Clone(s.packed), to)
		}
	case !s.known.has(hash):
		if _, isNew := s.laterKnown.add(hash, n); isNew {
			s.later.push(slices.Clone(s.packed), n)
		}
	}
}

// path returns the events that lead to the state with number n.
func (s *search) path(n int32) (list []choice) {
	w := s.newWorld()
	for _, hash := range s.known.way(n)[1:] {
		for _, c := range w.choices() {
			to := w.clone()
			if to.happen(c); to.hash() == hash {
				list, w = append(list, c), to
				break
			}
		}
	}
	return list
}
