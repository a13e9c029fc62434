package vrank

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSetOperations(t *testing.T) {
	g, h := Group{5, 3, 1, 4}, Group{4, 0, 5}
	for _, tc := range []struct {
		name      string
		got, want Group
	}{
		{"union", g.Union(h), Group{5, 3, 1, 4, 0}},
		{"intersection", g.Intersection(h), Group{5, 4}},
		{"difference", g.Difference(h), Group{3, 1}},
		{"union with empty", Group(nil).Union(h), Group{4, 0, 5}},
		{"intersection with empty", g.Intersection(nil), Group{}},
		{"difference with itself", g.Difference(g), Group{}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, tc.got, tc.want)
		}
	}
	if !slices.Equal(g, Group{5, 3, 1, 4}) || !slices.Equal(h, Group{4, 0, 5}) {
		t.Error("an operand changed")
	}
}

func TestInclExcl(t *testing.T) {
	g := Group{10, 11, 12, 13}
	for _, tc := range []struct {
		ranks      []int
		incl, excl Group
		ok         bool
	}{
		{[]int{3, 0}, Group{13, 10}, Group{11, 12}, true},
		{nil, Group{}, Group{10, 11, 12, 13}, true},
		{[]int{0, 1, 2, 3}, Group{10, 11, 12, 13}, Group{}, true},
		{[]int{4}, nil, nil, false},
		{[]int{-1}, nil, nil, false},
		{[]int{1, 1}, nil, nil, false},
	} {
		incl, err := g.Incl(tc.ranks)
		if (err == nil) != tc.ok || !slices.Equal(incl, tc.incl) {
			t.Errorf("Incl(%v) = %v, %v", tc.ranks, incl, err)
		}
		excl, err := g.Excl(tc.ranks)
		if (err == nil) != tc.ok || !slices.Equal(excl, tc.excl) {
			t.Errorf("Excl(%v) = %v, %v", tc.ranks, excl, err)
		}
	}
}

func TestRanges(t *testing.T) {
	g := World(8)
	for _, tc := range []struct {
		ranges []Range
		incl   Group
		ok     bool
	}{
		{[]Range{{0, 6, 2}}, Group{0, 2, 4, 6}, true},
		{[]Range{{0, 7, 2}}, Group{0, 2, 4, 6}, true},
		{[]Range{{6, 1, -2}, {7, 7, 1}}, Group{6, 4, 2, 7}, true},
		{[]Range{{3, 2, 1}}, Group{}, true}, // no rank in between
		{[]Range{{0, 3, 1}, {3, 4, 1}}, nil, false},
		{[]Range{{0, 3, 0}}, nil, false},
		{[]Range{{8, 9, 1}}, nil, false},
		{[]Range{{0, 9, 1}}, nil, false},
		{[]Range{{2, -2, -1}}, nil, false},
	} {
		incl, err := g.RangeIncl(tc.ranges)
		if (err == nil) != tc.ok || !slices.Equal(incl, tc.incl) {
			t.Errorf("RangeIncl(%v) = %v, %v", tc.ranges, incl, err)
		}
		excl, err := g.RangeExcl(tc.ranges)
		if (err == nil) != tc.ok || tc.ok && !slices.Equal(excl, g.Difference(incl)) {
			t.Errorf("RangeExcl(%v) = %v, %v", tc.ranges, excl, err)
		}
	}
}

func TestTranslateAndCompare(t *testing.T) {
	g, h := Group{2, 0, 7}, Group{7, 2}
	got, err := g.Translate([]int{0, 1, 2, 0}, h)
	if err != nil || !slices.Equal(got, []int{1, Undefined, 0, 1}) {
		t.Errorf("Translate = %v, %v", got, err)
	}
	if _, err := g.Translate([]int{3}, h); err == nil {
		t.Error("rank 3 of a group of 3 was translated")
	}
	for _, tc := range []struct {
		g, h Group
		want Relation
	}{
		{g, Group{2, 0, 7}, Identical}, {g, Group{0, 2, 7}, Similar}, {g, h, Unequal}, {g, Group{2, 0, 6}, Unequal},
		{nil, Group{}, Identical},
	} {
		if got := tc.g.Compare(tc.h); got != tc.want {
			t.Errorf("%v against %v: %v, want %v", tc.g, tc.h, got, tc.want)
		}
	}
	if g.Rank(7) != 2 || g.Rank(1) != Undefined {
		t.Error("Rank is wrong")
	}
}

func TestSpansAndPart(t *testing.T) {
	l := layout(t, 2, 1, 2)
	g := Group{4, 0, 2, 1}
	if !g.Spans(l) || (Group{1, 0}).Spans(l) || Group(nil).Spans(l) {
		t.Error("Spans is wrong")
	}
	if p := g.Part(l, 0); !slices.Equal(p, Group{0, 1}) {
		t.Errorf("part in cluster 0: %v", p)
	}
	if p := g.Part(l, 2); !slices.Equal(p, Group{4}) {
		t.Errorf("part in cluster 2: %v", p)
	}
}

// TestSetIdentities checks that the identities of sets hold for random groups.
func TestSetIdentities(t *testing.T) {
	const seed = 20261121
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		n := 1 + rnd.IntN(12)
		g, h := Group(rnd.Perm(n)[:rnd.IntN(n+1)]), Group(rnd.Perm(n)[:rnd.IntN(n+1)])
		inter, diff := g.Intersection(h), g.Difference(h)
		if inter.Union(diff).Compare(g) == Unequal || len(inter)+len(diff) != len(g) {
			t.Fatalf("seed %d: %v ∩ %v = %v, \\ = %v", seed, g, h, inter, diff)
		}
		if g.Union(h).Compare(h.Union(g)) == Unequal || inter.Compare(h.Intersection(g)) == Unequal {
			t.Fatalf("seed %d: %v, %v: not symmetric", seed, g, h)
		}
		for r := range g {
			back, err := h.Translate(mustTranslate(t, g, r, h), g)
			if in := h.Rank(g[r]); in != Undefined && (err != nil || back[0] != r) {
				t.Fatalf("seed %d: rank %d of %v through %v gives %v, %v", seed, r, g, h, back, err)
			}
		}
	}
}

func mustTranslate(t *testing.T, g Group, rank int, h Group) []int {
	t.Helper()
	to, err := g.Translate([]int{rank}, h)
	if err != nil {
		t.Fatal(err)
	}
	if to[0] == Undefined {
		return nil
	}
	return to
}
