package engine

import "github.com/leidenzipper/zipper/collectives"

// Kinds of traffic in a communicator; each has its own matching space. The numbers are wire.Kind….
const (
	KindP2P = iota
	KindCollective
	KindInternal
	kinds
)

// Comm is a spanning communicator.
type Comm struct {
	User uintptr // the owner's; never used by the engine

	id      int32
	context uint64
	rank    int
	world   []int32 // virtual rank of every rank
	native  []int32 // rank in the local part, or Remote
	local   []int32 // rank of every rank of the local part
	ranks   map[int32]int32

	spaces      [kinds]space
	localPosted int  // entries of the p2p posted list that a local message may match
	flush       bool // an entry left the posted list: local receives may be free to go to native MPI
	outstanding int  // requests

	window *Window             // whose messages these are; nil: none
	layout *collectives.Layout // of collectives; made when first needed
	colls  collQueue
}

// ID is the number that Engine.Comm takes.
func (c *Comm) ID() int32 { return c.id }

// Rank is this process's rank.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return len(c.world) }

// LocalRank translates a rank of the communicator into one of its local part; AnySource stays.
func (c *Comm) LocalRank(rank int) int {
	if rank == AnySource {
		return rank
	}
	return int(c.native[rank])
}

// RankOfLocal is the inverse of LocalRank; -1 if there is no such local rank.
func (c *Comm) RankOfLocal(local int) int {
	if local < 0 || local >= len(c.local) {
		return -1
	}
	return int(c.local[local])
}

// rankOf gives the rank of a process, or -1.
func (c *Comm) rankOf(virtual int) int {
	if c.ranks == nil { // the world: identity
		if virtual < len(c.world) {
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
func (c *Comm) remoteRank(virtual int) int {
	r := c.rankOf(virtual)
	if r >= 0 && c.native[r] != Remote {
		return -1
	}
	return r
}

// NewContext makes a context id that no other process makes, and not this one again.
func (e *Engine) NewContext() uint64 {
	e.lock()
	defer e.unlock()
	e.contexts++
	return uint64(e.world.Rank)<<32 | uint64(e.contexts)
}

// AddComm tells the engine of a communicator. world[i] is the virtual rank of rank i; native[i] its rank in the local part or
// Remote. The slices are copied. Messages that came before are there at once.
func (e *Engine) AddComm(user uintptr, context uint64, rank int, world, native []int32) (*Comm, error) {
	e.lock()
	defer e.unlock()
	if len(world) == 0 || len(native) != len(world) || rank < 0 || rank >= len(world) {
		return nil, failure(ErrArg, "communicator of %d ranks with %d native ranks, rank %d", len(world), len(native), rank)
	}
	if e.contextOf[context] != nil || context == controlContext {
		return nil, failure(ErrArg, "context %x exists", context)
	}
	c := &Comm{User: user, context: context, rank: rank, world: append([]int32(nil), world...), native: append([]int32(nil), native...)}
	identity := true
	n := 0
	for i, v := range world {
		if v < 0 || int(v) >= e.size {
			return nil, failure(ErrArg, "rank %d is virtual rank %d of %d", i, v, e.size)
		}
		identity = identity && int(v) == i
		if native[i] != Remote {
			n++
		}
	}
	c.local = make([]int32, n)
	for i := range c.local {
		c.local[i] = -1
	}
	for i, l := range native {
		if l == Remote {
			continue
		}
		if l < 0 || int(l) >= n || c.local[l] != -1 {
			return nil, failure(ErrArg, "rank %d has native rank %d among %d", i, l, n)
		}
		c.local[l] = int32(i)
	}
	if int(world[rank]) != e.world.Rank {
		return nil, failure(ErrArg, "rank %d is virtual rank %d, this process is %d", rank, world[rank], e.world.Rank)
	}
	if !identity {
		c.ranks = make(map[int32]int32, len(world))
		for i, v := range world {
			c.ranks[v] = int32(i)
		}
	}
	e.register(c)
	return c, e.adopt(c)
}

func (e *Engine) register(c *Comm) {
	if n := len(e.freeIDs); n > 0 {
		c.id = e.freeIDs[n-1]
		e.freeIDs = e.freeIDs[:n-1]
		e.comms[c.id] = c
	} else {
		c.id = int32(len(e.comms))
		e.comms = append(e.comms, c)
	}
	e.publish()
	e.contextOf[c.context] = c
}

// DropComm forgets a communicator. No operation may be outstanding; messages nobody received are thrown away.
func (e *Engine) DropComm(c *Comm) error {
	e.lock()
	defer e.unlock()
	if c.outstanding > 0 || c.colls.busy() {
		return failure(ErrArg, "communicator %x is freed with %d operations outstanding", c.context, c.outstanding)
	}
	for k := range c.spaces {
		for m := c.spaces[k].unexpected.head; m != nil; m = m.next {
			e.discard(m)
		}
		c.spaces[k].unexpected = messageList{}
	}
	delete(e.contextOf, c.context)
	e.comms[c.id] = nil
	e.freeIDs = append(e.freeIDs, c.id)
	e.publish()
	return nil
}

// publish makes the table for Comm, which does not lock.
func (e *Engine) publish() {
	t := append([]*Comm(nil), e.comms...)
	e.table.Store(&t)
}

// Comm gives the communicator with that number; nil if there is none. It does not lock.
func (e *Engine) Comm(id int32) *Comm {
	t := *e.table.Load()
	if id < 0 || int(id) >= len(t) {
		return nil
	}
	return t[id]
}
