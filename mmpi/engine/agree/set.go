package agree

import "math/bits"

// MaxClusters is the largest number of clusters of a job, which wire.MaxClusters bounds.
const MaxClusters = 256

// Set is a set of clusters, by their index in the job. The zero value is empty.
type Set [MaxClusters / 64]uint64

// Add adds a cluster.
func (s *Set) Add(cluster int) { s[cluster/64] |= 1 << (cluster % 64) }

// Has reports whether a cluster is in the set.
func (s Set) Has(cluster int) bool { return s[cluster/64]>>(cluster%64)&1 != 0 }

// With returns the union with another set.
func (s Set) With(o Set) Set {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// Without returns the clusters that are not in another set.
func (s Set) Without(o Set) Set {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

// And returns the intersection with another set.
func (s Set) And(o Set) Set {
	for i := range s {
		s[i] &= o[i]
	}
	return s
}

// Clusters returns the clusters of the set in ascending order.
func (s Set) Clusters() (all []int) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			all = append(all, i*64+bits.TrailingZeros64(w))
		}
	}
	return all
}
