package jobenv

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseOrder parses the order of the ranks of MPI_COMM_WORLD: the cluster of each rank, as in a,b,a
// or, the same in runs, a=1,b=1,a=1. Every cluster must have as many ranks as in the layout. Within
// a cluster ranks keep the order of its own MPI. "" is the order of virtual rank.
func ParseOrder(s string, layout []Cluster) ([]Cluster, error) {
	if s == "" {
		return nil, nil
	}
	var runs []Cluster
	for _, part := range strings.Split(s, ",") {
		name, number, many := strings.Cut(strings.TrimSpace(part), "=")
		n := 1
		if many {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 1 || n > maxCluster {
				return nil, fmt.Errorf("order: %q: want CLUSTER or CLUSTER=RANKS, as in a,b=2,a", part)
			}
		}
		runs = append(runs, Cluster{Name: name, Size: n})
	}
	return runs, CheckOrder(runs, layout)
}

// CheckOrder returns an error if an order does not have the layout's ranks, or is too long for an
// environment variable.
func CheckOrder(order, layout []Cluster) error {
	if len(order) == 0 {
		return nil
	}
	if n := len(FormatOrder(order)); n > longestOrder {
		return fmt.Errorf("order: it changes cluster so often that it takes %d bytes to describe; at most %d can be passed to a process", n, longestOrder)
	}
	count := map[string]int{}
	for _, run := range order {
		count[run.Name] += run.Size
	}
	for _, c := range layout {
		if count[c.Name] != c.Size {
			return fmt.Errorf("order: it has %d ranks of cluster %s, the job has %d there (%s)", count[c.Name],
				c.Name, c.Size, FormatLayout(layout))
		}
		delete(count, c.Name)
	}
	for name := range count {
		return fmt.Errorf("order: it names cluster %q, which the job does not have (%s)", name, FormatLayout(layout))
	}
	return nil
}

// OrderOf combines the clusters of the ranks, one for each rank, into runs.
func OrderOf(clusters []string) (runs []Cluster) {
	for _, c := range clusters {
		if n := len(runs); n > 0 && runs[n-1].Name == c {
			runs[n-1].Size++
			continue
		}
		runs = append(runs, Cluster{Name: c, Size: 1})
	}
	return runs
}

// FormatOrder is the inverse of ParseOrder.
func FormatOrder(order []Cluster) string {
	var parts []string
	for _, run := range order {
		if run.Size == 1 {
			parts = append(parts, run.Name)
			continue
		}
		parts = append(parts, run.Name+"="+strconv.Itoa(run.Size))
	}
	return strings.Join(parts, ",")
}

// VirtualRanks returns the virtual rank of each rank of MPI_COMM_WORLD, or nil if they are equal.
func VirtualRanks(order, layout []Cluster) []int32 {
	next, first := map[string]int32{}, int32(0)
	for _, c := range layout {
		next[c.Name] = first
		first += int32(c.Size)
	}
	virtual := make([]int32, 0, first)
	same := true
	for _, run := range order {
		for range run.Size {
			v := next[run.Name]
			next[run.Name]++
			same = same && v == int32(len(virtual))
			virtual = append(virtual, v)
		}
	}
	if same {
		return nil
	}
	return virtual
}

// WorldRanks returns the rank in MPI_COMM_WORLD of every native rank of a cluster.
func WorldRanks(order, layout []Cluster, cluster string) (ranks []int) {
	if len(order) == 0 {
		order = layout
	}
	world := 0
	for _, run := range order {
		for range run.Size {
			if run.Name == cluster {
				ranks = append(ranks, world)
			}
			world++
		}
	}
	return ranks
}

// First reports whether rank 0 of MPI_COMM_WORLD, which reads the standard input, is in this
// cluster.
func (j Job) First() bool {
	order := j.Order
	if len(order) == 0 {
		order = j.Layout
	}
	return len(order) > 0 && order[0].Name == j.Cluster
}
