package trace

import (
	"cmp"
	"slices"

	"github.com/leidenzipper/zipper/internal/disjoint"
)

// offsets estimates how far the ranks' clocks are ahead of one another, in ns, from messages in
// both directions between two ranks. If the fastest messages of both directions take equally long,
// the difference of the clocks is half of the difference of their apparent times. Pairs with the
// fastest messages are used first, until all ranks that exchange messages can be compared. In a set
// of such ranks the lowest has 0.
func (m *merger) offsets() []int64 {
	type edge struct {
		a, b int
		// round is the time of both directions together, ahead twice the difference of b's clock.
		round, ahead int64
	}
	least := make(map[[2]int]int64) // smallest apparent times
	for pair, sent := range m.sent {
		ends := m.received[pair]
		for k := range min(len(sent), len(ends)) {
			if d, ok := least[pair]; !ok || ends[k].at-sent[k].at < d {
				least[pair] = ends[k].at - sent[k].at
			}
		}
	}
	var edges []edge
	for pair, there := range least {
		if back, ok := least[[2]int{pair[1], pair[0]}]; ok && pair[0] < pair[1] {
			edges = append(edges, edge{pair[0], pair[1], there + back, there - back})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.round, y.round), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	ranks := m.t.Ranks()
	compared := disjoint.New(ranks)
	near := make([][]edge, ranks)
	for _, e := range edges {
		if compared.Join(e.a, e.b) {
			near[e.a] = append(near[e.a], e)
			near[e.b] = append(near[e.b], edge{e.b, e.a, e.round, -e.ahead})
		}
	}
	twice := make([]int64, ranks)
	for r := range ranks {
		if compared.Find(r) != r {
			continue
		}
		for next, from := []int{r}, map[int]int{r: -1}; len(next) > 0; next = next[1:] {
			for _, e := range near[next[0]] {
				if e.b != from[e.a] {
					twice[e.b], from[e.b] = twice[e.a]+e.ahead, e.a
					next = append(next, e.b)
				}
			}
		}
	}
	for r := range twice {
		twice[r] /= 2
	}
	return twice
}

// align corrects all clocks to one, so that messages have their real order. No time is below 0.
func (m *merger) align() {
	ahead := m.offsets()
	first := int64(0)
	for pair, sent := range m.sent {
		for _, e := range sent {
			first = min(first, e.at-ahead[pair[0]])
		}
	}
	for pair, sent := range m.sent {
		for k := range sent {
			sent[k].at = max(0, sent[k].at-ahead[pair[0]]-first)
		}
	}
	for pair, ends := range m.received {
		for k := range ends {
			ends[k].at = max(0, ends[k].at-ahead[pair[1]]-first)
		}
	}
}
