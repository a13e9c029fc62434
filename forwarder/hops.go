package forwarder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/reach"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// The networks and forwarders of a job of several hops form a tree. Every rank joins the forwarders
// on its own network, and forwarders on the same network have a link for the job (bridge.go). How
// such a job gathers:
//
//  1. The first rank that joins brings the tree and every forwarder's addresses. The forwarder
//     dials those neighbours that it is to dial (vrank.Dials) and shows them that rank's Join
//     (joinedHere, reachOut, introduce); the others dial it (bridgeIn).
//  2. Joins are passed on towards the forwarders that do not see the rank themselves: each gathers
//     the whole job (spread, joinedThere). So is what links are not there yet (tree.go).
//  3. A forwarder that has all tells the others (sees, with Ready); who has heard it of all starts.
//     Ready goes out on every bridge before the forwarder starts, so no frame of the job overtakes
//     it, and no frame comes to a forwarder that has not started.
//
// A job that loses a rank or a bridge while it gathers ends for everybody: there is no taking back
// of a Join. A forwarder that is started again while a job runs gathers it anew (anew.go).

// joinedHere goes on with a rank's Join: it is passed on, with the first one the neighbours are
// dialled, and with the last one they hear that this forwarder sees all. With f.mu.
func (f *Forwarder) joinedHere(b *job, j *wire.Join, cert handshake.Certificate) {
	h := b.hops
	b.spread(j)
	if !h.dialled {
		h.dialled, h.cert = true, &cert
		for k := range h.zippers {
			if n, ok := h.neighbour(k); ok && n.dials && h.bridges[k] == nil {
				br := &bridge{f: f, job: b, zipper: k, network: n.network, addr: n.addr, dials: true, cert: cert}
				br.open = func() { f.reachOut(b, br) }
				br.open()
			}
		}
		tellGaps(b)
	}
	f.perhapsAll(b)
}

// perhapsAll goes on if this forwarder sees all ranks, and the links to its neighbours are there
// and tried: who says Ready may be sent frames of the job. With f.mu.
func (f *Forwarder) perhapsAll(b *job) {
	cold := func(br *bridge) bool { return !br.first().warming.Warm() }
	if b.gather.Complete() && b.bridged() && !slices.ContainsFunc(b.bridges(), cold) {
		f.sees(b, b.hops.here)
	}
}

var errNoAnswer = errors.New("no link in time (its log says more)")

// unreached says what to do when a forwarder cannot be dialled.
const unreached = "is that its address there, does it run, does its site's firewall let that port in? " +
	"if that must not be, the other side has to dial (dial: in the job file)"

// reachOut dials a neighbour, aside.
func (f *Forwarder) reachOut(b *job, br *bridge) {
	var link transport.Link
	var err error
	f.aside(func() { link, err = f.policy.Load().dial(b.hops.ctx, br.addr, br.failing) }, func() {
		if err == nil {
			f.take(link, func(p *peer) bool {
				p.bridge, p.bridger = br, handshake.NewBridger(br.cert, br.zipper, 0, f.policy.Load().terms,
					freshBytes())
				return b.state == gathering
			}, nil)
			return
		}
		if f.policy.Load().servesStrangers() { // a stranger's job learns nothing of what is there
			f.log.Warn("cannot reach another forwarder", zap.String("job", b.id), zap.String("forwarder", br.addr),
				zap.Error(err))
			if !errors.Is(err, reach.ErrNotAllowed) {
				err = errNoAnswer
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.giveUp(b, wire.RefuseTimeout, fmt.Sprintf("job %q: this forwarder cannot reach the forwarder %s: %v; %s",
			b.id, br.addr, err, unreached))
	})
}

// spread keeps a new rank's Join and passes it on. With Forwarder.mu.
func (j *job) spread(join *wire.Join) {
	j.hops.joins = append(j.hops.joins, join)
	for _, br := range j.bridges() {
		br.announce(join)
	}
}

// announce passes a Join on if the other end learns of that rank through us. With f.mu.
func (br *bridge) announce(j *wire.Join) {
	if p := br.first(); p != nil && br.tellsOf(j) {
		_ = p.sendFrame(frame(wire.TypeJoin, j))
	}
}

// bridgeIn takes a link that another forwarder has made, or says why not. On its own loop, with
// f.mu.
func (f *Forwarder) bridgeIn(p *peer, e *handshake.Event) *handshake.Refused {
	j, here, number := e.Join, e.To, e.Number
	if f.stopping {
		return refusal(wire.RefuseShutdown, stopReason)
	}
	if refused := f.policy.Load().serves(j); refused != nil {
		return refused
	}
	b := f.jobs.find(j)
	if b != nil && b.another(j) {
		_ = f.byWay(b, j) // makes room
		b = nil
	}
	if b != nil && opensAgain(b, j, number) {
		f.giveUp(b, wire.RefuseShutdown, fmt.Sprintf("the link to the forwarder %s is lost: it opens another one",
			b.hops.name(int(j.Here))))
		b = nil
	}
	begins := b == nil
	if e.Ticket != nil && (begins || b.state != running) {
		return refusal(wire.RefuseTicket, "%v", e.Ticket)
	}
	var refused *handshake.Refused
	switch {
	case begins && number > 0:
		if why := f.hasFailed(j); why != "" {
			return refusal(wire.RefuseJob, "job %q has failed: %s", j.Job, why)
		}
		return refusal(wire.RefuseTaken, "job %q is not here", j.Job)
	case begins:
		b, refused = f.open(p, e, here)
	default:
		refused = b.gather.Fits(j)
	}
	if refused == nil {
		refused = b.mayBridge(int(j.Here), here, number)
	}
	if refused != nil {
		if begins && b != nil {
			f.giveUp(b, refused.Code, refused.Reason) // nobody waits in it
		}
		return refused
	}
	p.joining.Release()
	p.joining, p.deadline = nil, time.Time{}
	p.conn.Seal(p.seal)
	f.strangers.Settle(p.guest)
	switch br := b.hops.bridges[int(j.Here)]; {
	case br == nil:
	case b.state == running && number == 0:
		br.anew(p)
		return nil
	default:
		br.offered(p, number)
		return nil
	}
	n, _ := b.hops.neighbour(int(j.Here))
	p.bridge = &bridge{f: f, job: b, zipper: int(j.Here), network: n.network, addr: b.hops.name(int(j.Here))}
	f.bridged(p.bridge, p)
	return nil
}

// bridged takes a bridge, whose connection is p's, into use for the gathering: the other end hears
// what we know. With f.mu.
func (f *Forwarder) bridged(br *bridge, p *peer) {
	h := br.job.hops
	h.bridges[br.zipper] = br
	br.conns = []*peer{p}
	br.try(p)
	f.log.Info("link to another forwarder", zap.String("job", br.job.id), zap.String("forwarder", br.addr),
		zap.String("link", p.conn.Link().Remote()))
	for _, j := range h.joins {
		br.announce(j)
	}
	for z, r := range h.ready {
		if r {
			br.send(wire.TypeReady, &wire.Ready{Zipper: uint32(z)})
		}
	}
	tellGaps(br.job)
	f.perhapsAll(br.job)
}

// gatherOver handles a frame that comes over a bridge before the job runs. On the link's own loop,
// with f.mu.
func (f *Forwarder) gatherOver(p *peer, h wire.Header, body []byte) {
	br := p.bridge
	if p.later {
		br.laterFrame(p, h, body)
		return
	}
	var err error
	switch h.Type {
	case wire.TypePing:
		br.send(wire.TypePong, nil)
	case wire.TypePong:
		if p.answered() {
			f.perhapsAll(br.job)
		}
	case wire.TypeJoin:
		var j wire.Join
		if j, err = wire.ParseJoin(body); err == nil {
			err = f.joinedThere(br, &j)
		}
	case wire.TypeNotice:
		var n wire.Notice
		if n, err = wire.ParseNotice(body); err == nil {
			br.hearsGaps(&n)
		}
	case wire.TypeRailState:
		err = leftBefore(p, br.job, body)
	case wire.TypeReady:
		var r wire.Ready
		if r, err = wire.ParseReady(body); err == nil && int(r.Zipper) >= len(br.job.hops.zippers) {
			err = fmt.Errorf("forwarder %d of %d", r.Zipper, len(br.job.hops.zippers))
		}
		// What others say of this one is from before it was started again.
		if err == nil && int(r.Zipper) != br.job.hops.here {
			f.sees(br.job, int(r.Zipper))
		}
	case wire.TypeRefuse:
		var r wire.Refuse
		if r, err = wire.ParseRefuse(body); err == nil {
			r.Reason = wire.Printable(r.Reason)
			f.giveUp(br.job, r.Code, r.Reason)
			p.end(fmt.Errorf("refused: %s", r.Reason))
		}
	default:
		err = fmt.Errorf("not expected now")
	}
	if err != nil {
		f.giveUp(br.job, wire.RefuseMalformed, fmt.Sprintf("bad %v frame from the forwarder %s: %v", h.Type,
			br.addr, err))
	}
}

// introduce goes on with the exchange that opens a bridge which we dialled. With f.mu.
func (f *Forwarder) introduce(p *peer, h wire.Header, body []byte) {
	br, m := p.bridge, p.bridger
	if br.job.state != gathering && !p.later { // the other end need not begin
		p.end(fmt.Errorf("job %q does not gather any more", br.job.id))
		return
	}
	m.HandleMessage(h, body)
	_ = handshake.Drive(m, p.sendFrame, func(e handshake.Event) error {
		switch e.Kind {
		case handshake.Bridged:
			p.bridger = nil
			p.conn.Seal(e.Seal)
			switch {
			case !p.later:
				f.bridged(br, p)
			case p.number == 0:
				br.anew(p)
			default: // it waits for the other end's Ready
				p.warm()
			}
		case handshake.Ended:
			f.noForwarder(p, e.Err)
		}
		return nil
	})
}

var errNoForwarder = errors.New("what answers there is no forwarder (its log says more)")

// noForwarder gives up a job because another forwarder of it does not take this one, or is not the
// one that the job wants. If it is no forwarder at all, a stranger's job is told no more than that
// about what answers there. With f.mu.
func (f *Forwarder) noForwarder(p *peer, why *handshake.Refused) {
	br := p.bridge
	f.log.Warn("another forwarder does not agree", zap.String("job", br.job.id), zap.String("forwarder", br.addr),
		zap.Error(why))
	if p.later {
		br.refused(p, why.Code, why.Reason)
		return
	}
	code, reason := why.Code, why.Reason
	if f.policy.Load().servesStrangers() && !why.Remote && why.Code == wire.RefuseMalformed {
		code, reason = wire.RefuseTimeout, errNoForwarder.Error()
	}
	f.giveUp(br.job, code, fmt.Sprintf("the forwarder %s and this one do not agree: %s", br.addr, reason))
	p.end(why)
}

// joinedThere takes a rank that has joined another forwarder.
func (f *Forwarder) joinedThere(br *bridge, j *wire.Join) error {
	b := br.job
	if b.state != gathering {
		return nil
	}
	if refused := b.gather.Fits(j); refused != nil {
		return refused
	}
	v := rankOf(b.clusters, j)
	left := b.hops.left[v]
	if left && b.gather.In(int(v)) {
		return nil // several forwarders tell of it
	}
	if b.hops.next(b.hops.here, b.clusterIndex(j.Cluster)) != br.zipper && !left {
		return fmt.Errorf("cluster %s is not there", j.Cluster)
	}
	if _, refused := b.gather.Add(j); refused != nil {
		return refused
	}
	if refused := b.keep(f.memory, j); refused != nil {
		return refused
	}
	b.spread(j)
	f.perhapsAll(b)
	return nil
}

// sees notes that a forwarder sees all ranks, tells the others, and starts the job when all do.
// With f.mu.
func (f *Forwarder) sees(b *job, zipper int) {
	h := b.hops
	if b.state != gathering || h.ready[zipper] {
		return
	}
	h.ready[zipper] = true
	for _, br := range b.bridges() {
		br.send(wire.TypeReady, &wire.Ready{Zipper: uint32(zipper)})
	}
	if !slices.Contains(h.ready, false) && b.bridged() {
		f.complete(b)
	}
}

// bridged reports whether there is a link to every neighbour. With f.mu.
func (j *job) bridged() bool {
	for k := range j.hops.zippers {
		if _, ok := j.hops.neighbour(k); ok && j.hops.bridges[k] == nil {
			return false
		}
	}
	return true
}

// Dial opens a link to another forwarder's address; it tries until ctx ends, and tells failed why
// an attempt has not gone well.
type Dial func(ctx context.Context, addr string, failed func(error)) (transport.Link, error)
