package vrank

import (
	"strings"
	"testing"
)

func layout(t *testing.T, sizes ...int) *Layout {
	t.Helper()
	var c []Cluster
	for i, n := range sizes {
		c = append(c, Cluster{string(rune('a' + i)), n})
	}
	l, err := NewLayout(c...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPlaceIsInverseOfVirtual(t *testing.T) {
	for _, sizes := range [][]int{{1}, {1, 1}, {3, 1, 4}, {1, 1, 1}, {2, 7}} {
		l := layout(t, sizes...)
		virtual := 0
		for c, n := range sizes {
			if l.Offset(c) != virtual || l.Cluster(c).Size != n {
				t.Errorf("%v: cluster %d: offset %d size %d", sizes, c, l.Offset(c), l.Cluster(c).Size)
			}
			for native := range n {
				gc, gn, ok := l.Place(virtual)
				if gc != c || gn != native || !ok {
					t.Errorf("%v: Place(%d) = %d, %d, %v; want %d, %d", sizes, virtual, gc, gn, ok, c, native)
				}
				if v, ok := l.Virtual(c, native); v != virtual || !ok {
					t.Errorf("%v: Virtual(%d, %d) = %d, %v", sizes, c, native, v, ok)
				}
				virtual++
			}
		}
		if l.Size() != virtual || l.Clusters() != len(sizes) {
			t.Errorf("%v: size %d, clusters %d", sizes, l.Size(), l.Clusters())
		}
	}
}

func TestOutsideTheLayout(t *testing.T) {
	l := layout(t, 2, 3)
	for _, v := range []int{-1, 5, 1 << 40} {
		if _, _, ok := l.Place(v); ok {
			t.Errorf("Place(%d) found", v)
		}
	}
	for _, cn := range [][2]int{{-1, 0}, {2, 0}, {0, -1}, {0, 2}, {1, 3}} {
		if _, ok := l.Virtual(cn[0], cn[1]); ok {
			t.Errorf("Virtual(%v) found", cn)
		}
	}
	if c, ok := l.Find("b"); c != 1 || !ok {
		t.Errorf("Find(b) = %d, %v", c, ok)
	}
	if _, ok := l.Find("z"); ok {
		t.Error("Find(z) found")
	}
}

func TestBadLayouts(t *testing.T) {
	for _, tc := range []struct {
		clusters []Cluster
		want     string
	}{
		{nil, "at least one"},
		{[]Cluster{{"", 1}}, "no name"},
		{[]Cluster{{"a", 1}, {"a", 2}}, "twice"},
		{[]Cluster{{"a", 0}}, "0 ranks"},
		{[]Cluster{{"a", -1}}, "-1 ranks"},
		{[]Cluster{{"a", MaxRanks}, {"b", 1}}, "at most"},
	} {
		if _, err := NewLayout(tc.clusters...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.clusters, err, tc.want)
		}
	}
}

func TestLayoutKeepsItsOwnCopy(t *testing.T) {
	c := []Cluster{{"a", 2}}
	l, err := NewLayout(c...)
	if err != nil {
		t.Fatal(err)
	}
	c[0].Size = 9
	if l.Cluster(0).Size != 2 {
		t.Error("layout changed with its argument")
	}
}
