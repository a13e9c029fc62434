package vrank

import (
	"slices"
	"strings"
	"testing"
)

func routes(t *testing.T, clusters int, z ...Zipper) *Routes {
	t.Helper()
	r, err := NewRoutes(clusters, z)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOneZipper(t *testing.T) {
	r := routes(t, 2, Zipper{"z", []int{0, 1}, nil})
	if r.Distance(0, 1) != 0 || r.Next(0, 1) != nil || !slices.Equal(r.Rails(0, 1), []int{0}) {
		t.Errorf("distance %d, next %v, rails %v", r.Distance(0, 1), r.Next(0, 1), r.Rails(0, 1))
	}
}

func TestTwoRails(t *testing.T) {
	r := routes(t, 2, Zipper{"z0", []int{0, 1}, nil}, Zipper{"z1", []int{0, 1}, nil})
	if !slices.Equal(r.Rails(0, 1), []int{0, 1}) || !slices.Equal(r.Rails(1, 0), []int{0, 1}) {
		t.Errorf("rails %v, %v", r.Rails(0, 1), r.Rails(1, 0))
	}
}

// TestRowOverAClustersNetwork checks three clusters in a row, 0 -z0- 1 -z1- 2: the zippers meet on
// cluster 1's network.
func TestRowOverAClustersNetwork(t *testing.T) {
	r := routes(t, 3, Zipper{"z0", []int{0, 1}, nil}, Zipper{"z1", []int{1, 2}, nil})
	if r.Distance(0, 2) != 1 || !slices.Equal(r.Next(0, 2), []int{1}) {
		t.Errorf("from z0 to cluster 2: distance %d by %v", r.Distance(0, 2), r.Next(0, 2))
	}
	if !slices.Equal(r.Rails(1, 2), []int{1}) {
		t.Errorf("cluster 1 to 2 leaves by %v, want the nearer zipper only", r.Rails(1, 2))
	}
}

// TestTreeOfZippers checks a tree in which z0 in the middle is only connected to other zippers.
func TestTreeOfZippers(t *testing.T) {
	r := routes(t, 3, Zipper{"z0", nil, []int{1, 2, 3}}, Zipper{"z1", []int{0}, nil}, Zipper{"z2", []int{1}, nil},
		Zipper{"z3", []int{2}, nil})
	for z := 1; z <= 3; z++ {
		for c := range 3 {
			if c == z-1 {
				continue
			}
			if r.Distance(z, c) != 2 || !slices.Equal(r.Next(z, c), []int{0}) {
				t.Errorf("z%d to cluster %d: distance %d by %v", z, c, r.Distance(z, c), r.Next(z, c))
			}
		}
	}
	if !slices.Equal(r.Next(0, 2), []int{3}) {
		t.Errorf("middle to cluster 2 by %v", r.Next(0, 2))
	}
}

// TestEveryChoiceArrives checks that a message arrives after as many hops as the distance says for
// every choice at every hop, also in a ring.
func TestEveryChoiceArrives(t *testing.T) {
	const n = 6
	var z []Zipper
	for i := range n {
		z = append(z, Zipper{"", []int{i}, []int{(i + 1) % n}})
	}
	r := routes(t, n, z...)
	var walk func(z, to, left int)
	walk = func(z, to, left int) {
		if left == 0 {
			if z != to {
				t.Fatalf("ended at %d, not %d", z, to)
			}
			return
		}
		hops := r.Next(z, to)
		if len(hops) == 0 {
			t.Fatalf("stuck at %d on the way to %d", z, to)
		}
		for _, h := range hops {
			walk(h, to, left-1)
		}
	}
	for from := range n {
		for to := range n {
			walk(from, to, r.Distance(from, to))
		}
	}
	if !slices.Equal(r.Next(0, 3), []int{1, 5}) {
		t.Errorf("half round the ring: %v, want both ways", r.Next(0, 3))
	}
}

func TestBadNets(t *testing.T) {
	for _, tc := range []struct {
		clusters int
		zippers  []Zipper
		want     string
	}{
		{2, nil, "no zipper leads from cluster 0"},
		{3, []Zipper{{"z", []int{0, 1}, nil}}, "cluster 0 to cluster 2"},
		{2, []Zipper{{"z", []int{0, 2}, nil}}, "on cluster 2 of 2"},
		{2, []Zipper{{"z", []int{0, 1}, []int{1}}}, "peer 1 of 1"},
		{2, []Zipper{{"z", []int{0, 1}, []int{0}}}, "peer 0"},
	} {
		if _, err := NewRoutes(tc.clusters, tc.zippers); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.zippers, err, tc.want)
		}
	}
	if r := routes(t, 1); r.Rails(0, 0) != nil {
		t.Error("one cluster needs no zipper")
	}
}

func TestTree(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	r, err := Tree(names, len(names), [][]int{{0, 1}, {1, 2}, {2, 3}})
	if err != nil || r.Distance(0, 3) != 2 || !slices.Equal(r.Next(0, 3), []int{1}) ||
		!slices.Equal(r.Rails(3, 0), []int{2}) {
		t.Errorf("chain: %v", err)
	}
	if _, err := Tree(names, len(names), [][]int{{0, 1, 2, 3}}); err != nil {
		t.Errorf("one zipper: %v", err)
	}
	if r, err := Tree(names, len(names), [][]int{{0, 1}, {1, 2}, {1, 3}}); err != nil ||
		!slices.Equal(r.Next(0, 3), []int{2}) {
		t.Errorf("star: %v", err)
	}
	for want, on := range map[string][][]int{
		"zipper 4 closes a loop: networks a and d": {{0, 1}, {1, 2}, {2, 3}, {0, 3}},
		"zipper 2 closes a loop":                   {{0, 1}, {0, 1}, {1, 2}, {2, 3}},
		"zipper 2 closes":                          {{0, 1, 2}, {1, 2, 3}},
		"from cluster a to cluster d":              {{0, 1}, {1, 2}},
		"joins nothing":                            {{0, 1}, {1, 1}},
		"network 4 of 4":                           {{0, 4}},
	} {
		if _, err := Tree(names, len(names), on); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", on, err, want)
		}
	}
}

func TestRows(t *testing.T) {
	names := []string{"a", "b", "c"}
	rows, routes, err := Rows(names, len(names), [][]int{{0, 1}, {1, 2}, {1, 0}, {2, 1}, {0, 1}})
	if err != nil || len(rows) != 3 || !slices.Equal(rows[0], []int{0, 1}) || !slices.Equal(rows[1], []int{2, 3}) ||
		!slices.Equal(rows[2], []int{4, 1}) {
		t.Fatalf("stages of three and two zippers: %v, %v", rows, err)
	}
	if !slices.Equal(routes.Rails(0, 2), []int{0}) || !slices.Equal(routes.Next(0, 2), []int{1}) {
		t.Errorf("from a to c by %v, then %v", routes.Rails(0, 2), routes.Next(0, 2))
	}
	if rows, _, err := Rows(names, len(names), [][]int{{0, 1}, {1, 2}}); err != nil || len(rows) != 1 {
		t.Errorf("chain: %v, %v", rows, err)
	}
	for want, on := range map[string][][]int{
		"zipper 4 closes a loop: networks a and c": {{0, 1}, {0, 1}, {1, 2}, {0, 2}},
		"zipper 3 closes a loop":                   {{0, 1}, {0, 1}, {0, 1, 2}},
		"from cluster a to cluster c":              {{0, 1}, {0, 1}},
		"zipper 3 is on fewer than two":            {{0, 1}, {0, 1}, {1}, {1, 2}},
		"zipper 3 is on network 5 of 3":            {{0, 1}, {0, 1}, {1, 5}},
	} {
		if _, _, err := Rows(names, len(names), on); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", on, err, want)
		}
	}
}
