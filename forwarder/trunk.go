package forwarder

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// A bridge of a running job is a trunk of one or more connections:
//
//  1. The forwarder that has dialled the first one decides how many there are to be, by the round
//     trip (begin; package trunk), and dials the others (extend; newlink.go). It shows the same
//     certificate, and the connection's number.
//  2. The other end answers Ready when its job runs, and the connection is warm (offered, admit;
//     newlink.go). Only then are frames of the job sent over the connection, by both ends, so none
//     comes before the job runs there.
//  3. The first that is in use carries small frames, and what forwarders say to each other; the
//     others carry bulk (relay, trunk.go, which says what may overtake what). Bye goes over each,
//     and an end has heard it when it has come over all: nothing of the job comes after that.
//  4. While they have to wait for room in the kernel's buffers there are more, and those that lose
//     packets are sent over in another way (look).
//  5. One that is lost is dialled again, under another number: 0 is for those who gather. Frames
//     that were on it are lost: ranks are told that those behind the bridge are out of reach and
//     there again, and send again what is not acknowledged (repeat). If the first is lost the next
//     one takes its place.
//  6. If all are lost the ranks behind it are out of reach (cut) until one is back (restore), or
//     for good when the job's patience is over (cutOff): the job fails, or its other rows go on.
//  7. The other end may have been started again, and know nothing of the job (anew.go).
//
// Of a job whose ranks cannot send again (of the classic protocol, or without patience) a lost
// connection is the end.

// maxConnections bounds the numbers of a trunk's connections: the first, those for bulk, and one
// that takes the first one's place.
const maxConnections = 2 + trunk.Most

// trunkState is what a bridge knows of its connections beside those in use.
type trunkState struct {
	size     trunk.Size
	far      bool         // a long path
	carried  bool         // by commands
	dialled  map[int]bool // numbers of those that are being dialled
	coming   []*peer      // that are not in use yet
	losses   trunk.Losses
	watch    timer // calls look; nil: nobody does
	again    timer // calls extend
	patience timer // cut: ends the waiting
	ignorant bool  // the other end does not know the job, and is asked to gather it
	lost     int   // connections so far
	bad      bad   // damaged frames
}

// begin goes on with a bridge whose job runs now. With f.mu.
func (br *bridge) begin() {
	path, known := br.first().path()
	for _, p := range slices.Clone(br.trunk.coming) { // which admit shortens
		br.admit(p)
	}
	if br.trunk.far = known && path.RoundTrip > trunk.Far; br.trunk.far {
		br.trunk.watch = br.f.cfg.clock.AfterFunc(trunk.Measure, br.look)
	}
	br.trunk.dialled = map[int]bool{}
	if !br.dials {
		return
	}
	fixed := br.f.cfg.Trunk
	if br.trunk.carried = br.first().carried(); br.trunk.carried && fixed == 0 { // which nobody does on a short path
		fixed = trunk.First
	}
	br.trunk.size = trunk.New(path, known, fixed)
	br.extend()
}

// offered takes a connection that the other end has opened, in use as soon as the job runs. With
// f.mu.
func (br *bridge) offered(p *peer, number int) {
	p.bridge, p.number, p.later = br, number, true
	br.trunk.coming = append(br.trunk.coming, p)
	p.warm()
	br.admit(p)
}

// admit tells the other end that its connection is in use, if the job runs and the connection is
// warm, or waited for. With f.mu.
func (br *bridge) admit(p *peer) {
	switch {
	case br.job.state != running:
		return
	case !br.wanted(): // all has come over the others, and they may be gone
		p.end(errNotWanted)
		return
	case !p.warming.Warm() && br.first() != nil:
		return
	}
	_ = p.conn.Send(frame(wire.TypeReady, &wire.Ready{Zipper: uint32(br.job.hops.here)}))
	br.use(p)
}

// laterFrame handles a frame that comes over a connection which is not in use yet. With f.mu.
func (br *bridge) laterFrame(p *peer, h wire.Header, body []byte) {
	switch h.Type {
	case wire.TypePing:
		_ = p.conn.Send(frame(wire.TypePong, nil))
	case wire.TypePong:
		if p.answered() && p.guest != nil && p.number != 0 {
			br.admit(p)
		}
	case wire.TypeRefuse:
		reason := "refused"
		code := wire.RefuseMalformed
		if r, err := wire.ParseRefuse(body); err == nil {
			code, reason = r.Code, wire.Printable(r.Reason)
		}
		br.refused(p, code, reason)
	case wire.TypeJoin, wire.TypeNotice:
		if p.number != 0 { // of what the other end gathers, and lacks for it, we know all
			p.end(fmt.Errorf("%v frame before the connection is in use", h.Type))
		}
	case wire.TypeReady:
		r, err := wire.ParseReady(body)
		switch {
		case err != nil:
			p.end(err)
		case p.number == 0 && int(r.Zipper) != br.zipper: // which that one has heard of
		case br.wanted() && (p.guest == nil || p.number == 0):
			br.use(p)
		default:
			p.end(errNotWanted)
		}
	default:
		p.end(fmt.Errorf("%v frame before the connection is in use", h.Type))
	}
}

var errOpenedAgain = errors.New("the other forwarder has opened it again")

// openedAgain is a RailState's reason of a rank that has left, or that is there all the time.
const openedAgain = "a link between forwarders was opened again"

// use has a connection carry frames of the job. With f.mu.
func (br *bridge) use(p *peer) {
	t := &br.trunk
	t.coming = slices.DeleteFunc(t.coming, func(o *peer) bool { return o == p })
	delete(t.dialled, p.number)
	if p.number == 0 {
		t.ignorant = false
	}
	for _, old := range br.conns {
		if old.number == p.number { // the other end knows sooner than we that it is dead
			old.end(errOpenedAgain)
		}
	}
	if !br.wanted() {
		p.end(errNotWanted)
		return
	}
	if p.number >= trunk.Eager {
		p.far()
	}
	br.job.live++
	p.run(&member{job: br.job, rank: wire.Nobody, bridge: br})
	p.conn.Widen(br.ranks)
	br.conns = append(slices.Clone(br.conns), p)
	br.f.log.Info("one more connection to another forwarder", zap.String("job", br.job.id),
		zap.String("forwarder", br.addr), zap.Int("connection", p.number), zap.Int("in_use", len(br.conns)))
	if len(br.conns) == 1 {
		br.restore()
		br.extendIn(trunk.Redial)
	}
	if br.trunk.far && p.number < trunk.Eager {
		br.extend()
	}
	br.spread()
	if br.said {
		br.tellAll(p, false)
		p.sayBye()
	}
	br.job.sayBye()
}

// spread has the connections share what goes to the ranks behind the bridge. With f.mu.
func (br *bridge) spread() {
	p := br.first()
	if p == nil {
		return
	}
	bulk := slices.Clone(br.conns[1:])
	slices.SortFunc(bulk, func(a, b *peer) int { return a.number - b.number }) // as trunk.Eager has it
	var over []*relay.Conn
	for _, o := range bulk {
		over = append(over, o.conn)
	}
	p.conn.Spread(over, trunk.Burst)
}

// look looks whether the trunk is to have more connections, and which lose packets.
func (br *bridge) look() {
	br.f.mu.Lock()
	defer br.f.mu.Unlock()
	if !br.wanted() {
		return
	}
	now := map[int]transport.Path{}
	for _, p := range br.conns {
		if path, known := p.path(); known {
			now[p.number] = path
		}
	}
	lossy := br.trunk.losses.Look(maps.Clone(now))
	for _, p := range br.conns {
		if slices.Contains(lossy, p.number) {
			p.far()
		}
	}
	if p := br.first(); p != nil && br.dials {
		delete(now, p.number)
		if br.trunk.size.Grow(now) {
			br.extend()
		}
	}
	br.trunk.watch.Reset(trunk.Measure)
}

// goOn goes on after the loss of a connection that was in use, the first one perhaps. With f.mu.
func (br *bridge) goOn(p *peer, first bool, reason string) {
	b := br.job
	br.trunk.lost++
	b.unsure = true
	if now := br.first(); now == nil {
		br.cut(p, reason)
	} else {
		was := p.conn
		for v := range b.table {
			if b.via[v] == br {
				b.table[v].CompareAndSwap(was, now.conn)
			}
		}
		br.spread()
		if !br.said && !br.heard { // else nothing comes any more that needs an answer, or can go
			br.repeat(reason)
			br.tellAll(now, first)
		}
	}
	b.sayBye()
	br.extendIn(trunk.Soon)
}

// repeat has ranks send again what they have sent to those behind the bridge and do not know to
// have arrived. With f.mu.
func (br *bridge) repeat(reason string) {
	b := br.job
	for v := range b.table {
		switch {
		case b.via[v] != br || b.table[v].Load() == nil:
		case b.left[uint32(v)]:
			b.markLeft(uint32(v), br.network)
		default:
			b.markUnreachable(uint32(v), absence{reason, true}, br.network)
			b.markReachable(uint32(v), br.network)
		}
	}
}

// tellAll says to the other end, over p, which ranks it can reach through here: it may not have
// heard the last. missed: nor that one of them had gone and was back; what it sent meanwhile came
// here, and no further. With f.mu.
func (br *bridge) tellAll(p *peer, missed bool) {
	b := br.job
	for v := range b.table {
		if b.hops.next(br.zipper, b.clusterOf[v]) != b.hops.here {
			continue
		}
		why, absent := b.absent[uint32(v)]
		gone := b.left[uint32(v)]
		if gone { // what it has acknowledged may have been lost
			why.reason = openedAgain
		}
		if missed && !absent && !gone { // have it sent again
			p.sendState(wire.RailState{Rank: uint32(v), Cut: true, Reason: openedAgain})
		}
		p.sendState(wire.RailState{Rank: uint32(v), Up: !absent && !gone, Gone: gone, Cut: why.cut, Reason: why.reason})
	}
}

// cut takes a bridge that has lost its last connection, p's, out of use. With f.mu.
func (br *bridge) cut(p *peer, reason string) {
	b := br.job
	for v := range b.table {
		switch {
		case b.via[v] != br || !b.table[v].CompareAndSwap(p.conn, nil):
		case b.left[uint32(v)]:
			b.markLeft(uint32(v), br.network)
		case !br.heard:
			b.markUnreachable(uint32(v), absence{reason, b.patience() > 0}, br.network)
		}
	}
	br.trunk.patience = br.f.cfg.clock.AfterFunc(b.patience(), br.cutOff)
}

// restore takes it into use again, with its only connection. With f.mu.
func (br *bridge) restore() {
	b := br.job
	br.trunk.patience.Stop()
	for v := range b.table { // whom the other end does not reach it will tell
		if b.via[v] == br && !b.left[uint32(v)] && b.table[v].CompareAndSwap(nil, br.first().conn) && !br.heard {
			b.markReachable(uint32(v), br.network)
		}
	}
	if !br.said {
		br.tellAll(br.first(), false)
	}
	b.log.Info("the link to another forwarder is back", zap.String("job", b.id), zap.String("forwarder", br.addr))
}

// cutOff ends the waiting for a bridge that is cut.
func (br *bridge) cutOff() {
	b := br.job
	br.f.thenPerhapsLast(b, func() {
		if br.first() != nil || !br.wanted() {
			return
		}
		b.log.Error("the link to another forwarder does not come back", zap.String("job", b.id),
			zap.String("forwarder", br.addr), zap.Duration("after", b.patience()))
		br.giveUp(fmt.Sprintf("the link to the forwarder %s is lost, and does not come back for %v", br.addr,
			b.patience()))
	})
}

// giveUp goes on without a bridge that is cut, or fails the job if there is no other way. Of one
// over which all is said nothing is missed. With f.mu.
func (br *bridge) giveUp(reason string) {
	b := br.job
	br.noMore()
	switch {
	case br.said:
		br.theirs, br.heard = true, true
	case b.resumes():
		b.fail(wire.Nobody, reason, nil)
		return
	default:
		delete(b.hops.bridges, br.zipper)
		for v := range b.table {
			if b.via[v] == br && b.absent[uint32(v)].cut {
				b.markUnreachable(uint32(v), absence{reason: reason}, br.network)
			}
		}
	}
	b.sayBye()
}

// refused goes on when the other end does not take a connection. With f.mu.
func (br *bridge) refused(p *peer, code wire.RefuseCode, reason string) {
	p.end(errors.New(reason))
	switch {
	case !br.wanted() || br.first() != nil:
	case code == wire.RefuseJob:
		br.giveUp("the forwarder " + br.addr + ": " + reason)
	case code == wire.RefuseTaken && br.said && p.number == 0:
		br.giveUp(reason)
	case code == wire.RefuseTaken: // also where all is said: it may gather, and hears from us who has left
		br.trunk.ignorant = p.number != 0
	}
}
