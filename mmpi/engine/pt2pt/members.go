package pt2pt

import (
	"slices"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// members says who is in a communicator: for the usual ones without a table, which a large job
// would have in each process.
type members struct {
	size      int
	world     []int32         // virtual rank of every rank; nil: the same
	ranks     map[int32]int32 // the inverse; nil: the same
	localSize int             // ranks of the local part
	first     int             // of them, if they are in a row and in order; else there is
	native    []int32         // for every rank the one in the local part, or Remote,
	local     []int32         // and the inverse
}

// Size is the number of ranks.
func (c *members) Size() int { return c.size }

// LocalSize is the number of ranks in this cluster.
func (c *members) LocalSize() int { return c.localSize }

// Virtual is the virtual rank of a rank.
func (c *members) Virtual(rank int) int {
	if c.world == nil {
		return rank
	}
	return int(c.world[rank])
}

// nativeOf is the rank in the local part of a rank of the communicator, or Remote.
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

// RankOfLocal is the inverse of LocalRank; -1 if there is no such local rank.
func (c *members) RankOfLocal(local int) int {
	switch {
	case local < 0 || local >= c.localSize:
		return -1
	case c.local == nil:
		return c.first + local
	}
	return int(c.local[local])
}

// rankOf gives the rank of a process, or -1.
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

// remoteRank is rankOf for processes whose messages come through the engine; -1 for others.
func (c *members) remoteRank(virtual int) int {
	r := c.rankOf(virtual)
	if r >= 0 && c.nativeOf(r) != Remote {
		return -1
	}
	return r
}

// listLocal takes native ranks that are not simply in a row.
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
