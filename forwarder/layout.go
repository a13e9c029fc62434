package forwarder

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// How a complete job starts:
//
//  1. its layout is made (complete); if that is too long for a frame everybody is refused;
//  2. if the kernel may open ways between its ranks (nat.go) it is asked to, aside, and the job is
//     ready until the answer comes, or the time-out (opened);
//  3. every rank's Proof and Layout are sent, then every connection gets its route (start). Both
//     under Forwarder.mu, which a loop that reads the first frames waits for (peer.Route), so no
//     frame overtakes a Layout.

// complete goes on with a job whose ranks are all in. With f.mu.
func (f *Forwarder) complete(b *job) {
	layout, refused := b.gather.Layout()
	if refused != nil {
		f.giveUp(b, refused.Code, refused.Reason)
		return
	}
	if !b.to(ready) {
		return
	}
	b.layout = layout
	b.hosts = make([]string, b.gather.Ranks())
	b.clusterOf, b.namesakes = nil, b.gather.Namesakes()
	for i, c := range b.clusters {
		for range c.Size {
			b.clusterOf = append(b.clusterOf, i)
		}
	}
	for v := range b.hosts {
		b.hosts[v] = b.gather.Host(v)
	}
	ways, doors := f.ways(b)
	if len(ways) == 0 {
		f.start(b)
		return
	}
	o := &opening{doors: doors}
	b.opening = o
	o.timer = f.cfg.clock.AfterFunc(b.expires.Sub(f.cfg.clock.Now()), func() { f.tooLate(b, o) })
	f.aside(func() { o.at, o.closer, o.err = f.cfg.NAT.OpenWays(ways) }, func() { f.opened(b, o) })
}

// tooLate starts a job whose ranks have no time left to wait for the kernel.
func (f *Forwarder) tooLate(b *job, o *opening) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.opening == o {
		f.log.Warn("the kernel does not answer in time; a job starts without connections of its own",
			zap.String("job", b.id))
		b.opening = nil
		f.start(b)
	}
}

// opened takes the kernel's answer: the job starts.
func (f *Forwarder) opened(b *job, o *opening) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.timer.Stop()
	switch {
	case b.opening != o: // a rank has left meanwhile, or it took too long
		if o.err == nil {
			f.aside(func() { b.closeWays(o.closer) }, nil)
		}
		return
	case o.err != nil:
		f.log.Warn("the kernel passes nothing on for a job", zap.String("job", b.id), zap.Error(o.err))
	default:
		f.addDoors(b, o)
	}
	b.opening = nil
	f.start(b)
}

// start has a job run. With f.mu.
func (f *Forwarder) start(b *job) {
	if !b.to(running) {
		return
	}
	b.timer.Stop()
	b.notice.Stop()
	f.strangers.Over(b.opener)
	b.started, b.live, b.absent = f.cfg.clock.Now(), len(b.waiting), map[uint32]absence{}
	b.waits, b.bad, b.over = map[uint32]*wait{}, map[uint32]bad{}, map[int]bool{}
	b.left, b.cameBack = map[uint32]bool{}, map[uint32]bool{}
	b.table = make([]atomic.Pointer[relay.Conn], len(b.hosts))
	b.memory = budget.New(f.policy.Load().jobMemory(len(b.waiting) + len(b.bridges())))
	b.counts = relay.NewCounts(len(b.clusters), b.clusterOf)
	b.blocked = make([]atomic.Int64, len(b.clusters))
	if f.cfg.Protocol == Classic {
		b.classic = relay.NewClassic(f.cfg.ControlLimit)
	}
	ranks := b.inOrder()
	for _, p := range ranks {
		b.table[p.waiting.rank].Store(p.conn)
	}
	if b.hops != nil {
		b.startBridges()
	}
	joining := make([]*handshake.Acceptor, len(ranks))
	for i, p := range ranks {
		joining[i] = p.joining
	}
	layout := b.layout
	// one for all: with each of its own this would take memory in proportion to the square of the
	// ranks
	room := make([]byte, 0, admitRoom)
	for i, p := range ranks {
		if i%handshake.Jointly == 0 {
			handshake.Prove(joining[i:min(i+handshake.Jointly, len(joining))])
		}
		layout.Rank, layout.Namesake = uint32(p.waiting.rank), b.namesakes[b.hosts[p.waiting.rank]]
		p.conn.Seal(p.seal)
		room = p.joining.Admit(&layout, room)
		p.admit()
	}
	for _, p := range ranks { // only now: a connection with its place does not wait for the lock
		p.run(&member{job: b, rank: uint32(p.waiting.rank)})
	}
	for _, br := range b.bridges() {
		b.live++
		br.first().run(&member{job: b, rank: wire.Nobody, bridge: br})
		br.begin()
	}
	b.waiting = nil
	startWithout(b)
	observe(f.cfg.Meters.Gather, b.started.Sub(b.created))
	f.log.Info("job runs", zap.String("job", b.id), zap.Int("ranks", len(b.hosts)),
		zap.Duration("gathered_in", b.started.Sub(b.created)), zap.Strings("libraries", layout.Libraries),
		zap.Strings("origins", b.origins()))
}
