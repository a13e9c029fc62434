package pt2pt

import (
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/wire"
)

// peer is a process in another cluster, with the credit for eager payload in both directions.
type peer struct {
	*link.Peer
	ep       *Endpoint
	eagerOut flow.Budget // what we may send
	eagerIn  flow.Grant  // what it may send
	orphans  int         // envelopes kept for unknown communicators
}

// peer gives the peer of a virtual rank, which must be in range.
func (ep *Endpoint) peer(rank int) *peer {
	p := ep.peers[rank]
	if p == nil {
		window := uint64(ep.limit.EagerWindow)
		p = &peer{Peer: ep.links.Peer(rank), ep: ep, eagerOut: flow.NewBudget(window), eagerIn: flow.NewGrant(window)}
		ep.peers[rank] = p
	}
	return p
}

// consumed counts eager payload whose memory is free again.
func (p *peer) consumed(n int) {
	p.eagerIn.Consume(uint64(n))
	if p.eagerIn.Due() {
		p.sayCredit()
	}
}

// widen answers a sender that ran out of eager credit, as long as the pool lasts.
func (p *peer) widen() {
	w := int(p.eagerIn.Window())
	if w*2 > widestEager || w > p.ep.poolLeft {
		return
	}
	p.ep.poolLeft -= w
	p.eagerIn.Grow(uint64(w))
	p.Ahead = int(p.eagerIn.Window())
	p.sayCredit()
}

// sayCredit tells the peer how much it may send.
func (p *peer) sayCredit() {
	f := p.NewFrame(wire.TypeCredit, 0, wire.CreditLen, 0)
	c := wire.Credit{Eager: p.eagerIn.Limit(), Data: p.DataLimit()}
	f.Buf = c.Append(f.Buf)
	p.Send(f)
}

// credit takes what the peer says of how much we may send.
func (p *peer) credit(body []byte) error {
	c, err := wire.ParseCredit(body)
	if err != nil {
		return err
	}
	p.eagerOut.Raise(c.Eager)
	p.RaiseData(c.Data)
	return nil
}
