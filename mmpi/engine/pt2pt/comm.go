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
	User       uintptr // the owner's pointer, which the engine never uses
	Background bool    // whether requests leave the engine idle; set before the first request

	ep      *Endpoint
	id      int32
	context uint64
	rank    int
	members
	damage

	queues      [kinds]matchQueue   // the matching state by kind of traffic
	wild        list.List[*Request] // the posted point-to-point receives from any source
	shadows     list.List[*Request] // the posted point-to-point receives from a local source
	localPosted int                 // the number of receives in wild and shadows
	flush       bool                // whether an entry left the posted queue, so that shadows may go to native MPI
	outstanding int                 // the number of requests, and of matched messages not received
}

// ID returns the number that Endpoint.Comm takes.
func (c *Comm) ID() int32 { return c.id }

// Rank returns this process's rank in the communicator.
func (c *Comm) Rank() int { return c.rank }

// Context returns the number that tells the communicator's messages from those of others.
func (c *Comm) Context() uint64 { return c.context }

// Outstanding returns the number of requests under way and of messages matched but not received.
func (c *Comm) Outstanding() int { return c.outstanding }

// NewContext returns a context id that no process has returned before.
func (ep *Endpoint) NewContext() uint64 {
	ep.contexts++
	return uint64(ep.world.Rank)<<32 | uint64(ep.contexts)
}

// AddComm adds a communicator. world[i] is the virtual rank of rank i, and native[i] its rank in
// the local part, or Remote. The slices are copied. Messages that arrived before the call can be
// received at once.
func (ep *Endpoint) AddComm(user uintptr, context uint64, rank int, world, native []int32) (*Comm, error) {
	if len(world) == 0 || len(native) != len(world) || rank < 0 || rank >= len(world) {
		return nil, fault.New(fault.Arg, "communicator of %d ranks with %d native ranks, rank %d",
			len(world), len(native), rank)
	}
	if ep.contextOf[context] != nil || context == controlContext {
		return nil, fault.New(fault.Arg, "context %x exists", context)
	}
	c := &Comm{User: user, ep: ep, context: context, rank: rank, members: members{size: len(world)}}
	identity, row := true, true // whether virtual ranks equal ranks, and native ranks are in a row
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
	err := ep.adopt(c)
	if err == nil {
		ep.inherit(c)
	}
	return c, err
}

// addControl adds the communicator of the engine's own messages, which has all processes and no
// native part. It is in the background, because one of its receives may stand as long as the job.
func (ep *Endpoint) addControl() {
	c := &Comm{ep: ep, Background: true, context: controlContext, rank: ep.world.Rank,
		members: members{size: ep.size}}
	ep.register(c)
}

// Control returns the communicator of the engine's own messages. It has all processes, each of
// which counts as remote.
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

// adopt moves the messages that arrived before their communicator was added to its queues.
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

// dropLostOrphans frees the messages of lost senders for communicators that are not known yet.
func dropLostOrphans(ep *Endpoint) {
	kept := ep.orphans[:0]
	for _, m := range ep.orphans {
		if !m.lost() {
			kept = append(kept, m)
		} else {
			m.peer.orphans--
			ep.freeMessage(m)
		}
	}
	clear(ep.orphans[len(kept):])
	ep.orphans = kept
}

// DropComm removes a communicator. No operation may be outstanding. Messages that were not received
// are discarded.
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
	if c.broken {
		ep.forget(c.context)
	}
	delete(ep.contextOf, c.context)
	ep.comms[c.id] = nil
	ep.freeIDs = append(ep.freeIDs, c.id)
	ep.table.Set(c.id, nil)
	return nil
}

// Comm returns the communicator with a number, or nil if there is none. It does not lock.
func (ep *Endpoint) Comm(id int32) *Comm { return ep.table.Get(id) }

// CommOf returns the communicator with a context, or nil if there is none.
func (ep *Endpoint) CommOf(context uint64) *Comm { return ep.contextOf[context] }

// refuses returns the error with which an operation with a rank of the communicator, or with any
// source, ends: OK if nothing prevents it.
func (c *Comm) refuses(rank int) fault.Code {
	switch {
	case c.revoked.Load():
		return fault.Revoked
	case rank != AnySource && c.lostMember(rank):
		return fault.ProcFailed
	}
	return fault.OK
}

// refusesReceive is refuses for a receive or a probe, which may still find a message that has
// arrived.
func (c *Comm) refusesReceive(kind, source, tag int) fault.Code {
	code := c.refuses(source)
	if code == fault.ProcFailed && c.queues[kind].look(source, tag) != nil {
		return fault.OK
	}
	return code
}

// undecided reports whether a receive cannot tell whether its sender is lost.
func (c *Comm) undecided(kind, source int) bool {
	return c.broken && kind == KindP2P && source == AnySource && c.acked < len(c.lost)
}

// Failed returns the ranks that are in lost clusters, in the order of LostClusters.
func (c *Comm) Failed() (ranks []int32) {
	for _, cluster := range c.lost {
		ranks = append(ranks, c.members.between(c.ep.world.Ranks(cluster))...)
	}
	return ranks
}

// AckFailed acknowledges the losses of the clusters whose ranks are all among the first n of
// Failed. It returns the number of ranks that are acknowledged now.
func (c *Comm) AckFailed(n int) (acked int) {
	for i, cluster := range c.lost {
		there := acked + len(c.members.between(c.ep.world.Ranks(cluster)))
		if i >= c.acked && there > n {
			break
		}
		acked, c.acked = there, max(c.acked, i+1)
	}
	return acked
}

// lostMember reports whether a rank is in a lost cluster.
func (c *Comm) lostMember(rank int) bool {
	cluster, _ := c.ep.world.Place(c.Virtual(rank))
	return c.ep.links.Losses.Has(cluster)
}
