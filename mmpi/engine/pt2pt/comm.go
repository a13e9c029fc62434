package pt2pt

import (
	"fmt"
	"math"
	"slices"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Kinds of traffic in a communicator; each has its own matching space. The numbers are wire.Kind….
const (
	KindP2P = iota
	KindCollective
	KindInternal
	kinds
)

// Contexts made by no process.
const (
	WorldContext   uint64 = 0xFFFFFFFF00000000 // MPI_COMM_WORLD
	controlContext uint64 = math.MaxUint64     // the engine's own
)

// Comm is a spanning communicator.
type Comm struct {
	User       uintptr // the owner's; never used by the engine
	Background bool    // its requests do not keep the engine busy; set before the first one

	ep      *Endpoint
	id      int32
	context uint64
	rank    int
	members

	queues      [kinds]matchQueue
	wild        list.List[*Request] // entries of the p2p posted queue for any source,
	shadows     list.List[*Request] // and those for a local one
	localPosted int                 // how many these two have
	flush       bool                // an entry left the posted queue: local receives may be free to go to native MPI
	outstanding int                 // requests, and matched messages
}

// ID is the number that Endpoint.Comm takes.
func (c *Comm) ID() int32 { return c.id }

// Rank is this process's rank.
func (c *Comm) Rank() int { return c.rank }

// Context is the number that tells its messages from others'.
func (c *Comm) Context() uint64 { return c.context }

// Outstanding is how many requests are under way, and messages matched and not received.
func (c *Comm) Outstanding() int { return c.outstanding }

// NewContext makes a context id that no other process makes, and not this one again.
func (ep *Endpoint) NewContext() uint64 {
	ep.contexts++
	return uint64(ep.world.Rank)<<32 | uint64(ep.contexts)
}

// AddComm tells the engine of a communicator. world[i] is the virtual rank of rank i; native[i] its
// rank in the local part or Remote. The slices are copied. Messages that came before are there at
// once.
func (ep *Endpoint) AddComm(user uintptr, context uint64, rank int, world, native []int32) (*Comm, error) {
	if len(world) == 0 || len(native) != len(world) || rank < 0 || rank >= len(world) {
		return nil, fault.New(fault.Arg, "communicator of %d ranks with %d native ranks, rank %d",
			len(world), len(native), rank)
	}
	if ep.contextOf[context] != nil || context == controlContext {
		return nil, fault.New(fault.Arg, "context %x exists", context)
	}
	c := &Comm{User: user, ep: ep, context: context, rank: rank, members: members{size: len(world)}}
	identity, row := true, true // virtual ranks are ranks; native ones are in a row
	for i, v := range world {
		if v < 0 || int(v) >= ep.size {
			return nil, fault.New(fault.Arg, "rank %d is virtual rank %d of %d", i, v, ep.size)
		}
		identity = identity && int(v) == i
		if native[i] == Remote {
			continue
		}
		if c.localSize == 0 {
			c.first = i
		}
		row = row && i == c.first+c.localSize && int(native[i]) == c.localSize
		c.localSize++
	}
	if !row {
		if err := c.listLocal(native); err != nil {
			return nil, err
		}
	}
	if int(world[rank]) != ep.world.Rank {
		return nil, fault.New(fault.Arg, "rank %d is virtual rank %d, this process is %d",
			rank, world[rank], ep.world.Rank)
	}
	if !identity {
		c.world = slices.Clone(world)
		c.ranks = make(map[int32]int32, len(world))
		for i, v := range world {
			c.ranks[v] = int32(i)
		}
	}
	ep.register(c)
	return c, ep.adopt(c)
}

// addControl makes the communicator of the engine's own messages: all processes, no native part. A
// receive for one of these may stand for as long as the job, so it is in the background.
func (ep *Endpoint) addControl() {
	c := &Comm{ep: ep, Background: true, context: controlContext, rank: ep.world.Rank,
		members: members{size: ep.size}}
	ep.register(c)
}

// Control is the communicator of the engine's own messages: all processes, of which all count as
// remote.
func (ep *Endpoint) Control() *Comm { return ep.comms[0] }

func (ep *Endpoint) register(c *Comm) {
	if n := len(ep.freeIDs); n > 0 {
		c.id = ep.freeIDs[n-1]
		ep.freeIDs = ep.freeIDs[:n-1]
		ep.comms[c.id] = c
	} else {
		c.id = int32(len(ep.comms))
		ep.comms = append(ep.comms, c)
	}
	ep.table.Set(c.id, c)
	ep.contextOf[c.context] = c
}

// adopt hands the messages that came before their communicator to it.
func (ep *Endpoint) adopt(c *Comm) error {
	left := ep.orphans[:0]
	for _, m := range ep.orphans {
		if m.context != c.context {
			left = append(left, m)
			continue
		}
		m.peer.orphans--
		if m.source = c.remoteRank(m.peer.Rank); m.source < 0 {
			ep.fatal(fault.Link, 1, fmt.Sprintf("rank %d sent a message in communicator %x, which it is not in",
				m.peer.Rank, c.context))
			return ep.err
		}
		c.queues[m.kind].keep(m)
	}
	clear(ep.orphans[len(left):])
	ep.orphans = left
	return nil
}

// DropComm forgets a communicator. No operation may be outstanding; messages nobody received are
// thrown away.
func (ep *Endpoint) DropComm(c *Comm) error {
	if c.outstanding > 0 {
		return fault.New(fault.Arg, "communicator %x is freed with %d operations outstanding", c.context, c.outstanding)
	}
	for k := range c.queues {
		for q := &c.queues[k]; !q.unexpected.Empty(); {
			m := q.unexpected.First().Of
			q.drop(m)
			ep.discard(m)
		}
	}
	delete(ep.contextOf, c.context)
	ep.comms[c.id] = nil
	ep.freeIDs = append(ep.freeIDs, c.id)
	ep.table.Set(c.id, nil)
	return nil
}

// Comm gives the communicator with that number; nil if there is none. It does not lock.
func (ep *Endpoint) Comm(id int32) *Comm { return ep.table.Get(id) }

// CommOf gives the communicator with a context; nil if there is none.
func (ep *Endpoint) CommOf(context uint64) *Comm { return ep.contextOf[context] }
