package link

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// In a job that goes on when a cluster is lost, forwarders say which clusters are. One forwarder of
// several only says so for itself: a cluster is lost for this process when each open link that
// leads there has said so. The layers above may also learn of a loss from other processes (Lose).
// From then on nothing is sent to the cluster's ranks, and nothing from them is handled, so the
// layers above receive nothing from them again. A cluster that is lost never comes back. Its
// processes may live and have links to the other forwarders, so these are told (tell), and end the
// links.

// Differ reports whether the processes of the job may learn of a loss at very different times,
// because more than one forwarder leads to each process.
func (l *Losses) Differ() bool { return l.core.multi }

// hear handles a forwarder's report that a cluster is lost, which arrived over rail r. An error
// means that no forwarder may report that.
func (l *Losses) hear(r *rail, x wire.Lost) error {
	switch {
	case !l.onLoss:
		return errors.New("a cluster is said to be lost in a job that ends then")
	case int(x.Cluster) >= len(l.core.world.Clusters):
		return fmt.Errorf("cluster %d of %d is said to be lost", x.Cluster, len(l.core.world.Clusters))
	case r.peer != nil:
		return errors.New("no forwarder has said that a cluster is lost")
	}
	if r.saysLost == nil {
		r.saysLost = map[int]string{}
	}
	r.saysLost[int(x.Cluster)] = wire.Printable(x.Reason)
	if l.check(int(x.Cluster)); !l.Has(int(x.Cluster)) {
		return l.avoid(r, int(x.Cluster))
	}
	return nil
}

// avoid sends nothing more to a cluster over rail r, whose forwarder does not reach it.
func (l *Losses) avoid(r *rail, cluster int) error {
	first, end := l.core.world.Ranks(cluster)
	for rank := first; rank < end; rank++ {
		if p := l.core.peers.Get(rank); p != nil && p.departed {
			continue
		}
		if err := l.core.reported(r, wire.RailState{Rank: uint32(rank), Reason: r.saysLost[cluster]}); err != nil {
			return err
		}
	}
	return nil
}

// check treats a cluster as lost if each open link that leads there has said so, or each of all
// open links if none leads there.
func (l *Losses) check(cluster int) {
	for _, rails := range [...][]*rail{l.core.routes[cluster], l.core.forwarders} {
		reason, open := "", false
		for _, r := range rails {
			if !r.Open() {
				continue
			}
			why, ok := r.saysLost[cluster]
			if !ok {
				return
			}
			reason, open = why, true
		}
		if open {
			l.Lose(cluster, reason)
			return
		}
	}
}

// checkAll calls check for all clusters, because a link may no longer be open.
func (l *Losses) checkAll() {
	if !l.onLoss || l.core.ended {
		return
	}
	for cluster := range l.core.world.Clusters {
		l.check(cluster)
	}
}

// Lose treats a cluster as lost for a reason that is shown to the user. If the cluster is this
// process's own, the job ends here. Lose does nothing if the loss is known already.
func (l *Losses) Lose(cluster int, reason string) {
	c := l.core
	if l.Has(cluster) || c.ended {
		return
	}
	if mine, _ := c.world.Place(c.world.Rank); cluster == mine {
		c.end(&failover.End{Rank: c.world.Rank, Reason: reason})
		return
	}
	if l.lost == nil {
		l.lost = make([]bool, len(c.world.Clusters))
	}
	l.lost[cluster] = true
	first, end := c.world.Ranks(cluster)
	c.tracker.ClusterLost(first, end, reason)
	for rank := first; rank < end; rank++ {
		if p := c.peers.Get(rank); p != nil {
			l.drop(p)
		}
	}
	l.tell(cluster, reason)
	c.upper.Lost(cluster, reason)
}

// tell reports the loss of a cluster to those forwarders with an open link that have not reported
// it themselves. A forwarder whose link is opened later learns of the loss from the Join (Attempt).
func (l *Losses) tell(cluster int, reason string) {
	for _, r := range l.core.forwarders {
		if _, reported := r.saysLost[cluster]; reported || !r.Open() {
			continue
		}
		r.lostsSent++
		r.queue.push(l.core.takeControl(wire.TypeLost, &wire.Lost{Number: r.lostsSent, Cluster: uint16(cluster),
			Epoch: uint32(len(l.list())), Reason: reason}))
	}
}

// list returns the lost clusters, by index.
func (l *Losses) list() (clusters []int) {
	for cluster, lost := range l.lost {
		if lost {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// Lost reports whether the peer's cluster is lost.
func (p *Peer) Lost() bool { return p.lost }

// drop discards everything to and from a peer whose cluster is lost.
func (l *Losses) drop(p *Peer) {
	c := l.core
	p.lost = true
	for _, r := range c.forwarders {
		r.purge(p)
		r.detach(p)
		if r.in.busy && r.in.op.peer == p {
			r.in.discard()
		}
	}
	if r := p.direct; r != nil {
		l.close(r)
	}
	for i := range p.lanes {
		p.lanes[i].enroll(false)
		p.lanes[i].out.Reset()
	}
	for n := p.out.sources.First(); n != nil; n = p.out.sources.First() {
		p.out.sources.Remove(n)
	}
	p.out.backlog, p.out.lost = 0, nil
	c.retain(-p.retained.drop(&c.store))
	p.inbox = inbox{ackDue: p.ackDue}
}

// checkRail returns an error if a rail still works for a process whose cluster is lost. It is for
// tests.
func (l *Losses) checkRail(r *rail) error {
	if s := &r.seg; s.active && s.src != nil && s.peer.lost {
		return fault.New(fault.Internal, "rail %s sends a message to rank %d, which is lost", r.Name(), s.peer.Rank)
	}
	for n := r.queue.frames.First(); n != nil; n = n.Next() {
		if to := n.Of.to; to != nobody && l.core.Peer(to).lost {
			return fault.New(fault.Internal, "rail %s has a frame to rank %d, which is lost", r.Name(), to)
		}
	}
	for _, p := range l.core.peers.All() {
		if p != nil && p.lost && p.lanes[r.index].out.InFlight() > 0 {
			return fault.New(fault.Internal, "rail %s has segments in flight to rank %d, which is lost", r.Name(), p.Rank)
		}
	}
	return nil
}

// close closes the direct link to a process whose cluster is lost, for good.
func (l *Losses) close(r *rail) {
	r.detach(r.peer)
	l.core.tracker.PeerLost(&r.Rail)
	r.queue.clear(&l.core.store)
	if r.cancel != nil {
		r.abort()
	}
	r.detachLink()
	l.core.Demands.down(r)
	l.core.zcopy.releaseLink(r.placer)
	l.core.directChanged()
}
