package sharing

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
)

// star returns transfers between hosts of one switch. Each host has one link in and one out, and
// the transfers of a pair share a connection.
func star[T num.Number[T]](hosts int, capacity func(link int) int64, pairs [][2]int) ([]Resource[T], []Flow[T]) {
	rs := []Resource[T]{{Name: "switch", Kind: Domain, Capacity: num.Int[T](1000), Twin: -1}}
	for link := range 2 * hosts {
		rs = append(rs, Resource[T]{Name: "link", Capacity: num.Int[T](capacity(link)), Twin: -1})
	}
	var flows []Flow[T]
	for _, p := range pairs {
		weight := num.Int[T](1)
		flows = append(flows, Flow[T]{Name: "t", Hops: []Hop{{From: p[0], To: p[1]}},
			Uses: []Use[T]{{Resource: 1 + 2*p[0], Weight: weight, Hop: 1},
				{Resource: 2 + 2*p[1], Weight: weight, Hop: 1}}})
	}
	return rs, flows
}

// TestStreamsByHand checks that two transfers over one connection together get the share of a third
// transfer over its own connection, and that they get the part that it cannot use.
func TestStreamsByHand(t *testing.T) {
	for _, c := range []struct {
		slow int64 // capacity of host 1's outgoing link
		want []*big.Rat
	}{
		{12, []*big.Rat{big.NewRat(3, 1), big.NewRat(3, 1), big.NewRat(6, 1)}},
		{2, []*big.Rat{big.NewRat(5, 1), big.NewRat(5, 1), big.NewRat(2, 1)}},
	} {
		rs, flows := star[num.Rat](3, func(link int) int64 {
			if link == 2 {
				return c.slow
			}
			return 12
		}, [][2]int{{0, 2}, {0, 2}, {1, 2}})
		n, err := New(rs, flows)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Streams[num.Rat]{}.Share(n, Each(0, 1, 2))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if a.Rate[i].Cmp(num.NewRat(want)) != 0 {
				t.Errorf("host 1 sends at most %d: transfer %d gets %v, want %v", c.slow, i, a.Rate[i], want)
			}
		}
	}
}

// TestStreamsShare checks in random patterns that no resource is promised more than its capacity,
// that a full resource limits every transfer, and that the rule is max-min if every connection has
// one transfer.
func TestStreamsShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		hosts := 2 + rng.IntN(5)
		var pairs [][2]int
		distinct, seen := true, map[[2]int]bool{}
		for range 1 + rng.IntN(12) {
			p := [2]int{rng.IntN(hosts), rng.IntN(hosts - 1)}
			if p[1] >= p[0] {
				p[1]++
			}
			distinct = distinct && !seen[p]
			seen[p] = true
			pairs = append(pairs, p)
		}
		capacities := make([]int64, 2*hosts)
		for i := range capacities {
			capacities[i] = 1 + rng.Int64N(20)
		}
		rs, flows := star[num.Rat](hosts, func(link int) int64 { return capacities[link] }, pairs)
		n, err := New(rs, flows)
		if err != nil {
			t.Fatal(err)
		}
		var active []Active
		for i := range flows {
			active = append(active, Active{i, 1})
		}
		a, err := Streams[num.Rat]{}.Share(n, active)
		if err != nil {
			t.Fatal(err)
		}
		used := make([]num.Rat, len(rs))
		for i := range flows {
			n.AddUse(i, a.Rate[i], used)
		}
		for r := 1; r < len(rs); r++ {
			if used[r].Cmp(rs[r].Capacity) > 0 {
				t.Fatalf("%v: link %d of %v is promised %v", pairs, r, rs[r].Capacity, used[r])
			}
		}
		for i := range flows {
			l := a.Limits[i][0].Resource
			if a.Rate[i].Sign() <= 0 || used[l].Cmp(rs[l].Capacity) != 0 {
				t.Fatalf("%v: transfer %d gets %v, limited by link %d, which is not full", pairs, i, a.Rate[i], l)
			}
		}
		if !distinct {
			continue
		}
		m, err := MaxMin[num.Rat]{}.Share(n, active)
		if err != nil {
			t.Fatal(err)
		}
		for i := range flows {
			if a.Rate[i].Cmp(m.Rate[i]) != 0 {
				t.Fatalf("%v: transfer %d gets %v, by max-min %v", pairs, i, a.Rate[i], m.Rate[i])
			}
		}
	}
}
