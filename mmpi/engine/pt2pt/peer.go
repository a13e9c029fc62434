package pt2pt

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// peer is a process in another cluster, with the credit for eager payload in both directions.
type peer struct {
	*link.Peer
	ep       *Endpoint
	eagerOut flow.Budget // the eager payload that this process may send to the peer
	eagerIn  flow.Grant  // the eager payload that the peer may send to this process
	asking   int         // the number of sends that are announced and not over
	orphans  int         // the number of envelopes kept for unknown communicators
}

// peer returns the peer with a virtual rank, which must be in range.
func (ep *Endpoint) peer(rank int) *peer {
	p := ep.peers.Get(rank)
	if p == nil {
		window := uint64(ep.limit.EagerWindow)
		p = &peer{Peer: ep.links.Peer(rank), ep: ep, eagerOut: flow.NewBudget(window), eagerIn: flow.NewGrant(window)}
		ep.peers.Set(rank, p)
	}
	return p
}

// atOnce reports whether a message of n bytes, too long to be eager elsewhere, goes with its
// envelope: on a long path, where an announcement takes two more delays and a copy takes little
// beside that. It returns false while other sends are announced, because a program with several
// sends under way does not wait for each, and segments use all connections between two forwarders.
// The bytes kept for replay are bounded.
func (p *peer) atOnce(n int) bool {
	return n <= longEager && p.ep.limit.Eager >= 0 && p.asking == 0 && p.Long() && p.Kept()+n <= longKept
}

// consumed counts n bytes of eager payload whose memory is free again.
func (p *peer) consumed(n int) {
	p.eagerIn.Consume(uint64(n))
	if p.eagerIn.Due(p.Far()) {
		p.fitWindow()
		p.sendCredit()
	}
}

// widen answers a sender that ran out of eager credit for n bytes, as long as the pool lasts. The
// window grows by twice what was missing, and no faster: senders ask for each message of a burst
// before the first answer, and those who ask first must leave credit for the others.
func (p *peer) widen(n int) {
	if p.grow(max(2*n, p.ep.limit.EagerWindow/leastShare)) {
		p.sendCredit()
	}
}

// fitWindow widens the window of eager payload if the path carries more.
func (p *peer) fitWindow() {
	if trip := p.RoundTrip(); trip > 0 {
		w := p.eagerIn.Suits(p.ep.links.Now(), trip)
		if have := p.eagerIn.Window(); w > have {
			p.grow(int(min(w-have, have)))
		}
	}
}

// grow widens the window of eager payload by n bytes. It returns false if the pool has fewer bytes
// or the window would be too wide.
func (p *peer) grow(n int) bool {
	if int(p.eagerIn.Window())+n > widestEager || n > p.ep.poolLeft {
		return false
	}
	p.ep.poolLeft -= n
	p.eagerIn.Grow(uint64(n))
	p.Ahead = int(p.eagerIn.Window())
	return true
}

// sendCredit tells the peer how many bytes it may send.
func (p *peer) sendCredit() {
	f := p.NewFrame(wire.TypeCredit, 0, wire.CreditLen, 0)
	c := wire.Credit{Eager: p.eagerIn.Limit(), Data: p.DataLimit()}
	f.Buf = c.Append(f.Buf)
	p.Send(f)
}

// credit handles a Credit frame, in which the peer says how many bytes this process may send.
func (p *peer) credit(body []byte) error {
	c, err := wire.ParseCredit(body)
	if err != nil {
		return err
	}
	p.eagerOut.Raise(c.Eager)
	p.RaiseData(c.Data)
	return nil
}

// envelope returns a message made from an envelope, and its communicator, which is nil if it is
// not known yet.
func (p *peer) envelope(body []byte) (*message, *Comm, error) {
	ep := p.ep
	env, err := wire.ParseEnvelope(body)
	if err != nil {
		return nil, nil, err
	}
	if env.Kind >= kinds || env.Tag < 0 || env.Size > 1<<62 {
		return nil, nil, fmt.Errorf("envelope of kind %d, tag %d, %d bytes", env.Kind, env.Tag, env.Size)
	}
	c := ep.contextOf[env.Context]
	source := -1
	if c != nil {
		if source = c.remoteRank(p.Rank); source < 0 {
			return nil, nil, fmt.Errorf("it is not a rank of another cluster in the communicator with context %x",
				env.Context)
		}
	} else if !ep.dead[env.Context] && p.orphans >= ep.limit.Orphans {
		return nil, nil, fmt.Errorf("%d messages for communicators unknown here", p.orphans)
	}
	if env.Context != controlContext {
		ep.arrived++
	}
	m := ep.newMessage()
	m.peer, m.context, m.kind, m.source = p, env.Context, int(env.Kind), source
	m.tag, m.size, m.handle = int(env.Tag), int64(env.Size), env.Handle
	m.dropped = c != nil && c.drops(m.kind == KindCollective) || c == nil && ep.dead[env.Context]
	return m, c, nil
}

// sending returns this process's send that a frame from the peer names. It returns an error if
// there is none, or if it is in none of the given states.
func (p *peer) sending(handle uint64, states ...state) (*Request, error) {
	r := p.ep.find(handle)
	if r == nil || r.peer != p {
		return nil, fmt.Errorf("no send %x to it is outstanding", handle)
	}
	for _, s := range states {
		if r.state == s {
			return r, nil
		}
	}
	return nil, fmt.Errorf("send %x is in state %v", handle, r.state)
}

// sendFin tells the sender that its large message has arrived or is not wanted.
func (p *peer) sendFin(sender uint64) {
	f := p.NewFrame(wire.TypeFin, 0, wire.FinLen, 0)
	x := wire.Fin{Sender: sender}
	f.Buf = x.Append(f.Buf)
	p.Send(f)
}
