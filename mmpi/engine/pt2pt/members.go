package pt2pt

import (
	"slices"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// members holds the members of a communicator. The usual communicators need no table, because a
// large job would have one in each process.
type members struct {
	size      int             // the number of ranks
	world     []int32         // the virtual rank of every rank; nil: equal to the rank
	ranks     map[int32]int32 // the inverse of world; nil: equal to the virtual rank
	localSize int             // the number of ranks in the local part
	first     int             // the first rank of the local part if that is in a row and in order
	native    []int32         // the rank in the local part of every rank, or Remote; nil: in a row from first
	local     []int32         // the inverse of native; nil if native is
}

// Size returns the number of ranks.
func (c *members) Size() int { return c.size }

// LocalSize returns the number of ranks in this cluster.
func (c *members) LocalSize() int { return c.localSize }

// Virtual returns the virtual rank of a rank.
func (c *members) Virtual(rank int) int {
	if c.world == nil {
		return rank
	}
	return int(c.world[rank])
}

// nativeOf returns the rank in the local part of a rank of the communicator, or Remote.
func (c *members) nativeOf(rank int) int32 {
	switch local := rank - c.first; {
	case c.native != nil:
		return c.native[rank]
	case local >= 0 && local < c.localSize:
		return int32(local)
	}
	return Remote
}

// IsRemote reports whether a rank's messages come through the engine.
func (c *members) IsRemote(rank int) bool { return c.nativeOf(rank) == Remote }

// LocalRank translates a rank of the communicator into one of its local part; AnySource stays.
func (c *members) LocalRank(rank int) int {
	if rank == AnySource {
		return rank
	}
	return int(c.nativeOf(rank))
}

// RankOfLocal translates a rank of the local part into one of the communicator. It returns -1 if
// there is no such local rank.
func (c *members) RankOfLocal(local int) int {
	switch {
	case local < 0 || local >= c.localSize:
		return -1
	case c.local == nil:
		return c.first + local
	}
	return int(c.local[local])
}

// rankOf returns the rank of a process in the communicator, or -1.
func (c *members) rankOf(virtual int) int {
	if c.ranks == nil { // the world: identity
		if virtual < c.size {
			return virtual
		}
		return -1
	}
	if r, ok := c.ranks[int32(virtual)]; ok {
		return int(r)
	}
	return -1
}

// between returns the ranks whose virtual ranks are first ≤ v < end, in ascending order.
func (c *members) between(first, end int) (ranks []int32) {
	if c.ranks == nil {
		for r := first; r < min(end, c.size); r++ {
			ranks = append(ranks, int32(r))
		}
		return ranks
	}
	for r, v := range c.world {
		if int(v) >= first && int(v) < end {
			ranks = append(ranks, int32(r))
		}
	}
	return ranks
}

// any reports whether a virtual rank first ≤ v < end is a member.
func (c *members) any(first, end int) bool {
	if c.ranks == nil {
		return first < c.size
	}
	return slices.ContainsFunc(c.world, func(v int32) bool { return int(v) >= first && int(v) < end })
}

// remoteRank returns the rank of a process whose messages come through the engine, or -1.
func (c *members) remoteRank(virtual int) int {
	r := c.rankOf(virtual)
	if r >= 0 && c.nativeOf(r) != Remote {
		return -1
	}
	return r
}

// listLocal stores native ranks that are not in a row.
func (c *members) listLocal(native []int32) error {
	c.first, c.native, c.local = 0, slices.Clone(native), make([]int32, c.localSize)
	for i := range c.local {
		c.local[i] = -1
	}
	for i, l := range native {
		if l == Remote {
			continue
		}
		if l < 0 || int(l) >= c.localSize || c.local[l] != -1 {
			return fault.New(fault.Arg, "rank %d has native rank %d among %d", i, l, c.localSize)
		}
		c.local[l] = int32(i)
	}
	return nil
}
