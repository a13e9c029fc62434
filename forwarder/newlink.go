package forwarder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// How the further connections of a trunk are dialled (extend), again after a while if they do not
// come (notThere). And what a new link between forwarders goes through before it carries anything.
// Both steps are by Pings as long as they may be, which fill packets:
//
//  1. A path may let small packets pass and drop large ones without a word. What a job gathers with
//     is small, so it would begin, and hang at its first large message. TCP does not let full
//     packets be broken up on the way, so if the first Ping is not answered the job is given up
//     (try).
//  2. Over a long path further Pings open TCP's windows (warm, answered; package trunk), so that
//     the job's first long message does not have to. Only then an end says that it is ready, or
//     that a connection of a running job is in use. Only the connections that take bursts are
//     warmed.

// instead reports whether this end dials a link that is cut though the other end is to. With f.mu.
func (br *bridge) instead() bool {
	h := br.job.hops
	n, ok := h.neighbour(br.zipper)
	return !br.dials && br.first() == nil && h.cert != nil && ok && n.addr != ""
}

// extend dials the connections that are not there: over a long path those for bursts first, since
// others are cold, and would take their place. With f.mu.
func (br *bridge) extend() {
	if !br.dials && !br.instead() || !br.wanted() || br.f.stopping {
		return
	}
	t := &br.trunk
	missing := t.size.Connections() - len(br.conns) - len(t.dialled)
	if !br.dials {
		br.cert = *br.job.hops.cert
		missing = 1 - len(t.dialled)
	}
	if t.ignorant {
		missing = 0
		if !t.dialled[0] {
			t.dialled[0] = true
			br.dial(0)
		}
	}
	for n := 1; n < maxConnections && missing > 0; n++ {
		if t.dialled[n] || slices.ContainsFunc(br.conns, func(p *peer) bool { return p.number == n }) {
			continue
		}
		if n >= trunk.Eager && t.far && t.bursts() {
			return // use goes on
		}
		t.dialled[n] = true
		missing--
		br.dial(n)
	}
}

// bursts reports whether one of those for bursts is being dialled.
func (t *trunkState) bursts() bool {
	for n := range t.dialled {
		if n > 0 && n < trunk.Eager {
			return true
		}
	}
	return false
}

// dial opens one more connection, aside. With f.mu.
func (br *bridge) dial(number int) {
	f := br.f
	attempt := trunk.Attempt
	if br.trunk.carried {
		attempt = trunk.AttemptCarried
	}
	ctx, cancel := context.WithTimeout(br.job.hops.life, attempt)
	var link transport.Link
	var err error
	f.aside(func() {
		defer cancel()
		link, err = f.policy.Load().dial(ctx, br.addr, func(error) {})
	}, func() {
		if err == nil {
			f.take(link, func(p *peer) bool { return br.expect(p, number) }, nil)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		br.notThere(number, err)
	})
}

// expect has a connection that was dialled be one of the bridge's, unless it is not wanted any
// more. With f.mu.
func (br *bridge) expect(p *peer, number int) bool {
	if !br.wanted() {
		return false
	}
	p.bridge = br
	p.bridger = handshake.NewBridger(br.cert, br.zipper, number, br.f.policy.Load().terms, freshBytes())
	p.number, p.later = number, true
	br.trunk.coming = append(br.trunk.coming, p)
	return true
}

// notComing sees to a connection that has ended before it was in use. With f.mu.
func (br *bridge) notComing(p *peer, cause error) {
	t := &br.trunk
	switch {
	case slices.Contains(t.coming, p):
		t.coming = slices.DeleteFunc(t.coming, func(o *peer) bool { return o == p })
		br.notThere(p.number, cause)
	case br.missing():
		br.f.log.Warn("a link to another forwarder is lost before it is in use", zap.String("job", br.job.id),
			zap.String("forwarder", br.addr), zap.Error(cause))
		br.f.cfg.clock.AfterFunc(trunk.Redial, func() {
			br.f.mu.Lock()
			again := br.missing()
			br.f.mu.Unlock()
			if again {
				br.open()
			}
		})
	}
}

// missing reports whether a job that gathers waits for the link, which is dialled from here. With
// f.mu.
func (br *bridge) missing() bool {
	return br.job.state == gathering && br.open != nil && br.job.hops.bridges[br.zipper] == nil
}

// notThere goes on when a connection could not be opened: it is tried again. With f.mu.
func (br *bridge) notThere(number int, why error) {
	delete(br.trunk.dialled, number)
	if !br.wanted() {
		return
	}
	br.f.log.Warn("no further connection to another forwarder", zap.String("job", br.job.id),
		zap.String("forwarder", br.addr), zap.Int("connection", number), zap.Error(why))
	pause := trunk.Redial
	if br.first() != nil {
		pause = trunk.Retry // the job runs over the others
	}
	br.extendIn(pause)
}

// extendIn dials what is missing in a while. With f.mu.
func (br *bridge) extendIn(pause time.Duration) {
	switch {
	case !br.wanted():
		return
	case br.instead():
		pause = max(pause, trunk.Instead)
	case !br.dials:
		return
	}
	if br.trunk.again != nil {
		br.trunk.again.Stop()
	}
	br.trunk.again = br.f.cfg.clock.AfterFunc(pause, func() {
		br.f.mu.Lock()
		defer br.f.mu.Unlock()
		br.extend()
	})
}

// try sees whether large packets get to the other end, over the first connection of a job that
// gathers. With f.mu.
func (br *bridge) try(p *peer) {
	f := br.f
	p.warm()
	f.cfg.clock.AfterFunc(largeAnswer, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !p.warming.Silent() || br.first() != p || br.job.state != gathering {
			return
		}
		f.log.Error("large packets do not get to another forwarder", zap.String("job", br.job.id),
			zap.String("forwarder", br.addr))
		f.giveUp(br.job, wire.RefuseTimeout,
			fmt.Sprintf("job %q: small packets get from this forwarder to the forwarder %s, "+
				"large ones%s do not: something on the way drops them without a word (an MTU black hole); on both hosts "+
				"lower the MTU of the interface there (ip link set dev NAME mtu 1400), or set sysctl net.ipv4.tcp_mtu_probing=1",
				br.job.id, br.addr, size(p.conn.Link())))
	})
}

// warm begins to warm a connection that is not in use yet, if it is one of those for bursts: of a
// running job's over a long path only. With f.mu.
func (p *peer) warm() {
	if path, known := p.path(); p.later && (p.number >= trunk.Eager || !known || path.RoundTrip <= trunk.Far) {
		return
	}
	p.pad(p.warming.Begin(p.f.cfg.clock.Now()))
}

// answered goes on when a Ping is answered, and reports whether the connection is warm. With f.mu.
func (p *peer) answered() (warm bool) {
	path, known := p.path()
	p.pad(p.warming.Answered(p.f.cfg.clock.Now(), path, known))
	return p.warming.Warm()
}

// path is what is known of the way that the connection to the peer takes.
func (p *peer) path() (path transport.Path, known bool) {
	if l, ok := p.conn.Link().(transport.Distant); ok {
		return l.Path()
	}
	return path, false
}

// carried reports whether somebody else takes the connection's bytes to the peer.
func (p *peer) carried() bool {
	_, ok := p.conn.Link().(transport.Carried)
	return ok
}

// far has the connection to the peer sent as suits a long path, where bursts of their own are rare
// or would be lost, if it has one.
func (p *peer) far() {
	if path, known := p.path(); known && path.RoundTrip > trunk.Far {
		p.conn.Link().(transport.Distant).Far()
	}
}

// pad sends n full Pings.
func (p *peer) pad(n int) {
	for range n {
		_ = p.sendFrame(frame(wire.TypePing, padding{}))
	}
}

// size is how long full packets of a link are.
func size(l transport.Link) string {
	if p, ok := l.(transport.Packeted); ok && p.Packet() > 0 {
		return fmt.Sprintf(" (%d bytes of TCP's)", p.Packet())
	}
	return ""
}

// padding is the body of a Ping that fills packets.
type padding struct{}

// Append adds it to b.
func (padding) Append(b []byte) []byte { return append(b, make([]byte, wire.MaxPing)...) }
