// Package disjoint divides the numbers from 0 on into sets that can be joined (union-find with path
// halving: Tarjan and van Leeuwen, "Worst-case analysis of set union algorithms", J. ACM 31(2),
// 1984).
package disjoint

// Sets has for every number another one of its set, closer to the representative of the set, which
// has itself.
type Sets []int

// New returns n sets of one number each.
func New(n int) Sets {
	s := make(Sets, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// Find returns the lowest number of the set that i is in.
func (s Sets) Find(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// Join merges the sets of i and j. It returns false if they were one set before.
func (s Sets) Join(i, j int) bool {
	i, j = s.Find(i), s.Find(j)
	s[max(i, j)] = min(i, j)
	return i != j
}
