// Package vrank has the layouts of jobs with several clusters (virtual rank ↔ cluster and native
// rank), groups as sets of virtual ranks, and routes over a network of zipper nodes. All functions
// are pure: no I/O, no state outside the values. Values are safe for concurrent use once made.
//
// Virtual ranks run from 0 to N-1 over all clusters, the first cluster's ranks first, each
// cluster's in order of native rank.
package vrank

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Cluster is one cluster's share of a job.
type Cluster struct {
	Name string
	Size int // number of ranks, at least 1
}

// Format returns clusters in the form that users write: "a=4,b=2".
func Format(clusters []Cluster) string {
	var b strings.Builder
	for i, c := range clusters {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", c.Name, c.Size)
	}
	return b.String()
}

// Layout is the order and size of all clusters of a job.
type Layout struct {
	clusters []Cluster
	// offset has the virtual rank of each cluster's native rank 0, and then the size of the world.
	offset []int
}

// MaxRanks is the largest size of a world. Virtual ranks are sent as 32 bits, and the highest value
// means "nobody".
const MaxRanks = 1<<31 - 1

// NewLayout checks the clusters: there must be at least one, each must have a name of its own,
// every size must be at least 1, and their sum at most MaxRanks.
func NewLayout(clusters ...Cluster) (*Layout, error) {
	if len(clusters) == 0 {
		return nil, fmt.Errorf("vrank: a layout needs at least one cluster")
	}
	l := &Layout{clusters: slices.Clone(clusters), offset: make([]int, 1, len(clusters)+1)}
	seen := make(map[string]bool, len(clusters))
	for i, c := range clusters {
		switch {
		case c.Name == "":
			return nil, fmt.Errorf("vrank: cluster %d has no name", i)
		case seen[c.Name]:
			return nil, fmt.Errorf("vrank: cluster %q stands in the layout twice", c.Name)
		case c.Size < 1 || c.Size > MaxRanks-l.offset[i]:
			return nil, fmt.Errorf("vrank: cluster %q has %d ranks; want at least 1, and at most %d in all", c.Name,
				c.Size, MaxRanks)
		}
		seen[c.Name] = true
		l.offset = append(l.offset, l.offset[i]+c.Size)
	}
	return l, nil
}

// Size returns the number of virtual ranks.
func (l *Layout) Size() int { return l.offset[len(l.clusters)] }

// Clusters returns the number of clusters.
func (l *Layout) Clusters() int { return len(l.clusters) }

// Cluster returns cluster c, 0 ≤ c < Clusters().
func (l *Layout) Cluster(c int) Cluster { return l.clusters[c] }

// Offset returns the virtual rank of native rank 0 of cluster c, 0 ≤ c < Clusters().
func (l *Layout) Offset(c int) int { return l.offset[c] }

// Find returns the index of the cluster with this name.
func (l *Layout) Find(name string) (int, bool) {
	c := slices.IndexFunc(l.clusters, func(c Cluster) bool { return c.Name == name })
	return c, c >= 0
}

// Place returns cluster and native rank of a virtual rank. ok is false if the job has no such rank.
func (l *Layout) Place(virtual int) (cluster, native int, ok bool) {
	if virtual < 0 || virtual >= l.Size() {
		return 0, 0, false
	}
	cluster = sort.SearchInts(l.offset, virtual+1) - 1
	return cluster, virtual - l.offset[cluster], true
}

// Virtual is the inverse of Place.
func (l *Layout) Virtual(cluster, native int) (virtual int, ok bool) {
	if cluster < 0 || cluster >= len(l.clusters) || native < 0 || native >= l.clusters[cluster].Size {
		return 0, false
	}
	return l.offset[cluster] + native, true
}
