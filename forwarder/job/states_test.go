package job

// states is a set of states by their hashes, which are numbered in the order in which they were
// found. A state takes 20 to 30 bytes.
type states struct {
	hashes  []uint64
	parents []int32 // parents has the number of the state from which each was found.
	table   []int32 // table has the numbers, each plus one, at the place that its hash says or after that.
}

// place returns the place in the table of a hash, or a free one.
func (s *states) place(hash uint64) int {
	at := int(hash & uint64(len(s.table)-1))
	for s.table[at] != 0 && s.hashes[s.table[at]-1] != hash {
		at = (at + 1) & (len(s.table) - 1)
	}
	return at
}

// has reports whether a state is in the set.
func (s *states) has(hash uint64) bool { return len(s.table) > 0 && s.table[s.place(hash)] != 0 }

// add adds a state unless it is in the set, and reports its number and whether it is new.
func (s *states) add(hash uint64, parent int32) (n int32, isNew bool) {
	if 2*len(s.hashes) >= len(s.table) {
		s.grow()
	}
	at := s.place(hash)
	if s.table[at] != 0 {
		return s.table[at] - 1, false
	}
	s.hashes, s.parents = append(s.hashes, hash), append(s.parents, parent)
	s.table[at] = int32(len(s.hashes))
	return s.table[at] - 1, true
}

// grow makes the table twice as large.
func (s *states) grow() {
	s.table = make([]int32, max(1024, 2*len(s.table)))
	for n, hash := range s.hashes {
		s.table[s.place(hash)] = int32(n) + 1
	}
}

// way returns the hashes of the states on the way from the first one to number n.
func (s *states) way(n int32) []uint64 {
	if n < 0 {
		return nil
	}
	return append(s.way(s.parents[n]), s.hashes[n])
}

// queue has packed worlds that wait, each with its number, first in, first out.
type queue struct {
	worlds [][]byte
	of     []int32
}

func (q *queue) push(world []byte, n int32) {
	q.worlds, q.of = append(q.worlds, world), append(q.of, n)
}

func (q *queue) pop() (world []byte, n int32) {
	world, n = q.worlds[0], q.of[0]
	q.worlds[0] = nil // so that it can be freed
	q.worlds, q.of = q.worlds[1:], q.of[1:]
	return world, n
}
