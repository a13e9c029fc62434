package vrank

import (
	"fmt"
	"slices"
	"sort"
)

// Zipper is a zipper node in a network of clusters. It has an adapter on the network of every
// cluster in Clusters, and may have its own connections to other zippers. Two zippers on the same
// cluster's network reach each other over it.
type Zipper struct {
	Name     string
	Clusters []int // indices of clusters
	Peers    []int // indices of zippers; a connection counts for both
}

// Routes has the shortest routes from every zipper to every cluster, counted in zippers.
type Routes struct {
	zippers  []Zipper
	clusters int
	next     [][]int // neighbours of each zipper, ascending
	distance [][]int // [cluster][zipper] number of further zippers on the route; -1 if unreachable
}

// NewRoutes computes the routes for clusters 0 … clusters-1. It returns an error if an index is out
// of range, or if there is no route between two clusters; the error names them by index.
func NewRoutes(clusters int, zippers []Zipper) (*Routes, error) {
	r := &Routes{clusters: clusters, zippers: make([]Zipper, len(zippers)), next: make([][]int, len(zippers))}
	on := make([][]int, clusters) // zippers on each cluster's network
	for i, z := range zippers {
		r.zippers[i] = Zipper{z.Name, unique(z.Clusters), unique(z.Peers)}
		for _, c := range r.zippers[i].Clusters {
			if c < 0 || c >= clusters {
				return nil, fmt.Errorf("vrank: zipper %q is on cluster %d of %d", z.Name, c, clusters)
			}
			on[c] = append(on[c], i)
		}
		for _, p := range r.zippers[i].Peers {
			if p < 0 || p >= len(zippers) || p == i {
				return nil, fmt.Errorf("vrank: zipper %q has peer %d of %d", z.Name, p, len(zippers))
			}
			r.next[i] = append(r.next[i], p)
			r.next[p] = append(r.next[p], i)
		}
	}
	for _, shared := range on {
		for _, i := range shared {
			for _, j := range shared {
				if i != j {
					r.next[i] = append(r.next[i], j)
				}
			}
		}
	}
	for i := range r.next {
		r.next[i] = unique(r.next[i])
	}
	for c := range clusters {
		r.distance = append(r.distance, r.search(on[c]))
	}
	for from := range clusters {
		for to := range clusters {
			if from != to && len(r.Rails(from, to)) == 0 {
				return nil, fmt.Errorf("vrank: no zipper leads from cluster %d to cluster %d", from, to)
			}
		}
	}
	return r, nil
}

// Tree is NewRoutes for zippers that join named networks in a chain or a tree, so that there is
// exactly one route between any two. on[i] has the networks that zipper i is on. A network is a
// cluster's, or one without ranks (from index clusters on). Errors: a zipper that closes a loop, a
// network without zippers, and a network without ranks with only one zipper.
func Tree(names []string, clusters int, on [][]int) (*Routes, error) {
	numbers := make([]int, len(on))
	for i := range numbers {
		numbers[i] = i
	}
	return tree(names, clusters, on, numbers)
}

// Rows is Tree for a network in which several zippers may be side by side, on the same networks: a
// stage. It divides the network into rows, each with one zipper of every stage, so that each row is
// a tree by itself. rows[k] has the indices of row k's zippers, in the same order of stages, and
// the routes hold for the places in any row. There are as many rows as the largest stage has
// zippers. A smaller stage gives its zippers to several rows, in turn.
func Rows(names []string, clusters int, on [][]int) (rows [][]int, routes *Routes, err error) {
	var stages [][]int // indices of the zippers on the same networks
	var first []int    // first zipper of each stage
	var of [][]int     // networks of each stage
next:
	for i, networks := range on {
		networks = unique(networks)
		for s := range stages {
			if slices.Equal(of[s], networks) {
				stages[s] = append(stages[s], i)
				continue next
			}
		}
		stages, first, of = append(stages, []int{i}), append(first, i), append(of, networks)
	}
	if routes, err = tree(names, clusters, of, first); err != nil {
		return nil, nil, err
	}
	width := 0
	for _, s := range stages {
		width = max(width, len(s))
	}
	for k := range width {
		var row []int
		for _, s := range stages {
			row = append(row, s[k%len(s)])
		}
		rows = append(rows, row)
	}
	return rows, routes, nil
}

// tree implements Tree. numbers has the numbers of the zippers in errors, from 0.
func tree(names []string, clusters int, on [][]int, numbers []int) (*Routes, error) {
	joined := make([]int, len(names)) // union-find: networks that are joined by the zippers so far have the same root
	for i := range joined {
		joined[i] = i
	}
	root := func(c int) int {
		for joined[c] != c {
			c = joined[c]
		}
		return c
	}
	zippers := make([]Zipper, len(on))
	users := make([]int, len(names))
	for i, networks := range on {
		if networks = unique(networks); len(networks) < 2 {
			return nil, fmt.Errorf("zipper %d is on fewer than two networks: it joins nothing", numbers[i]+1)
		}
		for _, c := range networks {
			if c < 0 || c >= len(names) {
				return nil, fmt.Errorf("zipper %d is on network %d of %d", numbers[i]+1, c, len(names))
			}
			users[c]++
		}
		for k, c := range networks[1:] {
			a, b := root(networks[0]), root(c)
			if a == b {
				return nil, fmt.Errorf("zipper %d closes a loop: networks %s and %s are joined by the zippers before it already; "+
					"the zippers must join the networks in a chain or a tree (zippers side by side, for redundancy, "+
					"must be on exactly the same networks)", numbers[i]+1, names[networks[k]], names[c])
			}
			joined[b] = a
		}
		zippers[i] = Zipper{Clusters: networks}
	}
	for c := range names {
		switch {
		case root(c) == root(0):
		case c < clusters:
			return nil, fmt.Errorf("no zipper leads from cluster %s to cluster %s", names[0], names[c])
		default:
			return nil, fmt.Errorf("no zipper leads from cluster %s to network %s", names[0], names[c])
		}
		if c >= clusters && users[c] < 2 {
			return nil, fmt.Errorf("network %s joins nothing: it has no ranks, and only one zipper is on it", names[c])
		}
	}
	return NewRoutes(len(names), zippers)
}

// search does a breadth-first search from the zippers at distance 0.
func (r *Routes) search(start []int) []int {
	d := make([]int, len(r.zippers))
	for i := range d {
		d[i] = -1
	}
	for _, z := range start {
		d[z] = 0
	}
	for queue := slices.Clone(start); len(queue) > 0; queue = queue[1:] {
		for _, n := range r.next[queue[0]] {
			if d[n] < 0 {
				d[n] = d[queue[0]] + 1
				queue = append(queue, n)
			}
		}
	}
	return d
}

// Distance returns the number of zippers that a message passes after this one on its route to the
// cluster: 0 if the zipper delivers it itself, -1 if there is no route.
func (r *Routes) Distance(zipper, cluster int) int { return r.distance[cluster][zipper] }

// Next returns the next zippers on the shortest routes from a zipper to a cluster, in ascending
// order: several if there is a choice, none if the zipper is on the cluster's network itself. Each
// of them is closer to the cluster, so following any of them ends.
func (r *Routes) Next(zipper, cluster int) []int {
	d := r.distance[cluster]
	var hops []int
	for _, n := range r.next[zipper] {
		if d[n] >= 0 && d[n] == d[zipper]-1 {
			hops = append(hops, n)
		}
	}
	return hops
}

// Rails returns the zippers on cluster from's network with which the shortest routes to cluster to
// begin, in ascending order. A rank may spread its messages over them.
func (r *Routes) Rails(from, to int) []int {
	var rails []int
	best := -1
	for i, z := range r.zippers {
		d := r.distance[to][i]
		if d < 0 || !slices.Contains(z.Clusters, from) {
			continue
		}
		if best < 0 || d < best {
			best, rails = d, nil
		}
		if d == best {
			rails = append(rails, i)
		}
	}
	return rails
}

func unique(s []int) []int {
	s = slices.Clone(s)
	sort.Ints(s)
	return slices.Compact(s)
}
