package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// twoClusters returns a problem with two clusters and a zipper node between them. Seats on the
// zipper node cost nothing.
func twoClusters(ranks, roomA, roomB, seats int, edges []Edge) *Problem {
	return &Problem{Ranks: ranks, Edges: edges, Rate: 1,
		Sites:     []Site{{"a", roomA, 1}, {"b", roomB, 1}, {"z", seats, 1}},
		Crossings: [][]float64{{0, 1, 0}, {1, 0, 0}, {0, 0, 0}}}
}

func bruteForce(p *Problem) float64 {
	at := make(Placement, p.Ranks)
	best := math.Inf(1)
	var try func(r int)
	try = func(r int) {
		if r == p.Ranks {
			best = math.Min(best, p.Cost(at))
			return
		}
		for s := range p.Sites {
			at[r] = s
			try(r + 1)
		}
	}
	try(0)
	return best
}

func randomProblem(rng *rand.Rand, ranks int) *Problem {
	var edges []Edge
	for range ranks * 2 {
		edges = append(edges, Edge{rng.IntN(ranks), rng.IntN(ranks), float64(rng.IntN(100))})
	}
	p := twoClusters(ranks, (ranks+1)/2, ranks/2+rng.IntN(2), rng.IntN(3), edges)
	if rng.IntN(2) == 0 {
		p.Sites[1].Speed = 3
		for range ranks {
			p.Work = append(p.Work, float64(rng.IntN(200)))
		}
	}
	if rng.IntN(2) == 0 {
		p.Allowed = map[int][]int{rng.IntN(ranks): {1}, rng.IntN(ranks): {0, 2}}
	}
	if rng.IntN(2) == 0 {
		p.Together = [][]int{{0, 1}}
	}
	return p
}

func TestExactIsBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	feasible, missed := 0, 0
	for range 60 {
		p := randomProblem(rng, 4+rng.IntN(4))
		want := bruteForce(p)
		at, err := Exact(p, 0)
		if math.IsInf(want, 1) {
			if err == nil {
				t.Fatalf("a placement %v where none keeps the rules", at)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		feasible++
		if got := p.Cost(at); math.Abs(got-want) > 1e-9*math.Max(1, want) {
			t.Fatalf("cost %v, least is %v", got, want)
		}
		near, err := Improve(p)
		if err != nil || p.Cost(near) > 1.1*want+1e-9 {
			missed++
		}
	}
	if feasible < 30 || missed > feasible/5 {
		t.Errorf("%d feasible problems, the heuristic missed %d by more than 10 %%", feasible, missed)
	}
}

// planted returns a graph with a known best cut: two random halves with few edges between them.
func planted(rng *rand.Rand, ranks, edges, across int) (*Problem, float64) {
	name := rng.Perm(ranks)
	half := ranks / 2
	var list []Edge
	for range edges {
		a, b, side := rng.IntN(half), rng.IntN(half), rng.IntN(2)
		list = append(list, Edge{name[a+side*half], name[b+side*half], 10})
	}
	for range across {
		list = append(list, Edge{name[rng.IntN(half)], name[half+rng.IntN(half)], 1})
	}
	return twoClusters(ranks, half, half, 0, list), float64(across)
}

func TestLargeGraph(t *testing.T) {
	ranks := 10_000
	if underRace {
		ranks = 1000
	}
	p, least := planted(rand.New(rand.NewPCG(2, 2)), ranks, 10*ranks, 300)
	from := time.Now()
	at, exact, err := Solve(p)
	if err != nil || exact {
		t.Fatal(exact, err)
	}
	took := time.Since(from)
	t.Logf("cut %v, planted %v, %v", p.Crossing(at), least, took)
	if math.IsInf(p.Cost(at), 1) || p.Crossing(at) > 1.05*least {
		t.Errorf("cut %v, planted %v", p.Crossing(at), least)
	}
	if took > time.Minute && !underRace {
		t.Errorf("100 000 edges took %v", took)
	}
	again, _, _ := Solve(p)
	if !slices.Equal(at, again) {
		t.Error("two runs differ")
	}
}

func TestVertexCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		const ranks = 9
		side := make([]int, ranks)
		for r := range side {
			side[r] = rng.IntN(2)
		}
		var edges []Edge
		for range 1 + rng.IntN(10) {
			edges = append(edges, Edge{rng.IntN(ranks), rng.IntN(ranks), 1})
		}
		covers := func(set int) bool {
			for _, e := range edges {
				if side[e.A] != side[e.B] && set&(1<<e.A) == 0 && set&(1<<e.B) == 0 {
					return false
				}
			}
			return true
		}
		least := ranks
		for set := range 1 << ranks {
			n := 0
			for r := range ranks {
				n += set >> r & 1
			}
			if n < least && covers(set) {
				least = n
			}
		}
		set := 0
		cut := VertexCut(ranks, edges, side)
		for _, r := range cut {
			set |= 1 << r
		}
		if !covers(set) || len(cut) != least {
			t.Fatalf("cut %v of %v on sides %v, least size %d", cut, edges, side, least)
		}
	}
}

// TestHubGoesToTheZipper checks that the hub of a star is placed on the zipper node, so that
// nothing crosses a forwarder.
func TestHubGoesToTheZipper(t *testing.T) {
	var edges []Edge
	for r := 1; r < 9; r++ {
		edges = append(edges, Edge{0, r, 5})
	}
	at, exact, err := Solve(twoClusters(9, 4, 4, 1, edges))
	if err != nil || !exact || at[0] != 2 {
		t.Errorf("%v exact %v %v", at, exact, err)
	}
}

func TestBadProblems(t *testing.T) {
	for what, p := range map[string]*Problem{
		"no room": twoClusters(9, 4, 4, 0, nil),
		"unknown": twoClusters(2, 4, 4, 0, []Edge{{0, 5, 1}}),
		"NaN":     twoClusters(2, 4, 4, 0, []Edge{{0, 1, math.NaN()}}),
		"no rate": {Ranks: 1, Sites: []Site{{"a", 1, 1}}, Crossings: [][]float64{{0}}},
		"too big set": {Ranks: 3, Rate: 1, Sites: []Site{{"a", 2, 1}, {"b", 2, 1}},
			Crossings: [][]float64{{0, 1}, {1, 0}}, Together: [][]int{{0, 1, 2}}},
		"contradiction": {Ranks: 2, Rate: 1, Sites: []Site{{"a", 2, 1}, {"b", 2, 1}},
			Crossings: [][]float64{{0, 1}, {1, 0}},
			Together:  [][]int{{0, 1}}, Allowed: map[int][]int{0: {0}, 1: {1}}},
	} {
		if at, _, err := Solve(p); err == nil {
			t.Errorf("%s: placed %v", what, at)
		}
	}
}
