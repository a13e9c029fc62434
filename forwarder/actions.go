package forwarder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/forwarder/plane"
	"github.com/leidenzipper/zipper/forwarder/reach"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/role"
	"github.com/leidenzipper/zipper/forwarder/serial"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// carrier carries out the actions of a job's state machine. It has the connections, timers and
// table of routes that the state machine names by number. The lock of its runner guards it.
type carrier struct {
	f      *Forwarder
	id     string
	opener *strangers.Stranger // opener is the link, in the counts of strangers, whose Join has opened the job.
	owner  *runner             // owner is the runner of the job, which its peers refer to.
	events events              // events receives what happens to the job.
	job    *job.Job            // job is the state machine of the job. The carrier only reads it.
	conns  map[action.Conn]*peer
	alarms *clock.Alarms[action.Timer]
	plane  *plane.Plane          // plane is nil until the job runs.
	shown  atomic.Pointer[shown] // shown is nil until a rank has shown a pass. Any thread.
	// kernel has the requests to the kernel. Ways are closed before later ones are opened, so that
	// the job has no more of them than it counts.
	kernel serial.Queue

	// verified is the verified Join of the connection that the job is handling now; nil: none.
	verified *handshake.Event

	// The fields below are used in a job of several hops only.

	// cert proves to other forwarders that a rank of the job has joined here. It is made of the
	// first Join.
	cert  *handshake.Certificate
	life  context.Context    // life ends with the job.
	end   context.CancelFunc // end cancels life.
	until time.Time          // until is the deadline of dialling while the job gathers.
}

// events receives what happens to a job, so that its state machine handles it.
type events interface {
	// take gives the job an event and returns the job's state afterwards. Any thread, without the
	// lock.
	take(e job.Event) job.State
	// handle gives the job an event and carries out the actions that follow. With the lock.
	handle(e job.Event)
	// locked calls fn with the lock held. Any thread, without the lock.
	locked(fn func())
}

// shown is what the ranks of a job have proved to the forwarder: the pass, which is the same for
// all of them, and the key with which it is made.
type shown struct {
	pass  *seal.Pass
	guest [wire.SealKeyLen]byte
}

// do carries out one action that the job's state machine has returned. With the lock.
func (c *carrier) do(a action.Action) {
	switch a := a.(type) {
	case action.Arm:
		c.alarms.Set(a.Timer, a.After)
	case action.Disarm:
		c.alarms.Stop(a.Timer)
	case action.Log:
		c.log(&a)
	case job.Start:
		c.start(&a)
	case job.Route:
		c.plane.Table[a.Rank].Store(c.conns[a.Conn].conn)
	case job.Unroute:
		c.plane.Table[a.Rank].Store(nil)
	case job.Free:
		c.f.memory.Drop(a.Bytes)
	case job.OpenWays:
		c.openWays(&a)
	case job.CloseWays:
		c.closeWays(&a)
	case job.Internal:
		c.f.defect(a.Err)
	case bridge.Dial:
		c.dial(&a)
	default:
		c.doOnConnection(a)
	}
}

// doOnConnection carries out an action that concerns one connection of the job. It does nothing if
// that connection has ended. With the lock.
func (c *carrier) doOnConnection(a action.Action) {
	switch a := a.(type) {
	case action.Send:
		c.on(a.Conn, func(p *peer) { _ = p.conn.Send(a.Frame) })
	case action.Finish:
		c.on(a.Conn, func(p *peer) { p.conn.FinishWith(a.Frame) })
	case action.Close:
		c.on(a.Conn, func(p *peer) { p.conn.Post(p.conn.FinishNow) })
	case action.Abort:
		c.on(a.Conn, func(p *peer) { p.conn.Post(func() { p.conn.AbortWith(a.Frame) }) })
	case action.End:
		c.on(a.Conn, func(p *peer) { p.end(a.Cause) })
	case job.Refuse:
		c.on(a.Conn, func(p *peer) { c.refuse(p, a.Why) })
	case job.Place:
		c.on(a.Conn, c.place)
	case job.Tell:
		c.on(a.Conn, func(p *peer) { p.exchange.Notice(a.Text); p.say() })
	case job.Enter:
		c.on(a.Conn, func(p *peer) { c.enter(p, &a) })
	case job.Run:
		c.on(a.Conn, func(p *peer) { c.run(p, &plane.Member{Rank: a.Rank, Zipper: -1}) })
	case job.Widen:
		c.on(a.Conn, func(p *peer) { p.conn.Widen(a.N) })
	case job.Bridged:
		c.on(a.Conn, func(p *peer) { c.bridged(p, a.Zipper) })
	case bridge.Introduce:
		c.on(a.Conn, func(p *peer) { p.introduce(c.cert, a.Number) })
	case bridge.Use:
		at := &plane.Member{Rank: wire.Nobody, Zipper: a.Zipper, Address: c.job.Name(a.Zipper)}
		c.on(a.Conn, func(p *peer) { c.run(p, at) })
	case bridge.Far:
		c.on(a.Conn, func(p *peer) { p.conn.Link().(transport.Distant).UseLongPath() })
	case bridge.Spread:
		c.on(a.First, func(p *peer) { c.spread(p, a.Over) })
	default:
		c.f.defect(fmt.Errorf("unknown action %T", a))
	}
}

// log writes a line about the job to the log.
func (c *carrier) log(a *action.Log) {
	e := c.f.log.Check(a.Level, a.Text)
	if e == nil {
		return
	}
	of := zap.String("job", c.id)
	c.on(a.Conn, func(p *peer) { of = zap.Object("peer", p) })
	e.Write(append(a.Fields, of)...)
}

// on calls fn for the peer at the other end of connection x, if the job still has that connection.
func (c *carrier) on(x action.Conn, fn func(p *peer)) {
	if p := c.conns[x]; p != nil {
		fn(p)
	}
}

// refuse tells a peer why it cannot join. For a stranger the exchange sends the refusal when it
// goes on (peer.exchanged).
func (c *carrier) refuse(p *peer, why *handshake.Refused) {
	if p.role == role.Stranger {
		p.exchange.Refuse(why.Code, why.Reason)
	} else {
		p.refuse(why.Code, why.Reason)
	}
}

// place makes a peer whose Join the job has accepted a waiting rank of the job. It sends nothing.
// On the peer's own loop.
func (c *carrier) place(p *peer) {
	p.belong(c.owner, 0)
	p.to(role.Waiting)
	p.settle()
	if e := c.verified; c.shown.Load() == nil {
		c.shown.Store(&shown{e.Pass, e.Join.Guest})
	}
	if c.cert == nil && c.job.Facts().Hops {
		cert := p.exchange.Certificate(c.verified.Join)
		c.cert = &cert
	}
	p.exchange.Placed()
}

// enter lets a rank that reconnects into the running job, and sends it the layout. On its own loop.
func (c *carrier) enter(p *peer, a *job.Enter) {
	p.belong(c.owner, 0)
	a.Layout.Rank, a.Layout.Namesake = a.Rank, a.Namesake
	p.conn.Seal(p.seal)
	p.exchange.Admit(&a.Layout, nil)
	p.say()
}

// bridged makes a connection from another forwarder, whose index in the job is zipper, part of the
// job. On its own loop.
func (c *carrier) bridged(p *peer, zipper int) {
	p.exchange.Release()
	p.conn.Seal(p.seal)
	p.belong(c.owner, zipper)
	p.to(role.Bridging)
	p.settle()
}

// start makes the plane of a job that begins to run, and sends each waiting rank its Proof and
// Layout. The actions job.Route and job.Run follow with the same lock; frames are relayed from then
// on.
func (c *carrier) start(a *job.Start) {
	f := c.f
	c.plane = c.newPlane(a)
	f.memory.Charge(c.plane.Bytes()) // at the limit no further Join finds room
	joining := make([]*handshake.Acceptor, len(a.Entries))
	for i, e := range a.Entries {
		joining[i] = c.conns[e.Conn].exchange
	}
	// One buffer serves all ranks: a buffer for each would take memory in proportion to the square
	// of their number.
	room, layout := make([]byte, 0, admitRoom), a.Layout
	for i, e := range a.Entries {
		if i%handshake.Jointly == 0 {
			handshake.Prove(joining[i:min(i+handshake.Jointly, len(joining))])
		}
		p := c.conns[e.Conn]
		layout.Rank, layout.Namesake = e.Rank, e.Namesake
		p.conn.Seal(p.seal)
		room = joining[i].Admit(&layout, room)
		_ = handshake.Drive(joining[i], p.conn.SendCounted, func(handshake.Event) error { return nil })
	}
	f.mu.Lock()
	f.strangers.Over(c.opener)
	f.mu.Unlock()
	v := c.job.View()
	relay.Observe(f.cfg.Meters.Gather, v.Started.Sub(v.Created))
}

func (c *carrier) newPlane(a *job.Start) *plane.Plane {
	policy := c.f.policy.Load()
	pl := &plane.Plane{ID: c.id, Clusters: c.job.Facts().Clusters, Via: a.Via, Hosts: a.Hosts, ClusterOf: a.ClusterOf,
		Memory: budget.New(budget.Job(policy.Memory, policy.JobMemory, a.Links)), SurvivesLoss: c.job.Facts().SurvivesLoss,
		Outlives: c.job.Facts().Outlives}
	if c.f.cfg.Protocol == Classic {
		pl.Classic = relay.NewClassic(c.f.cfg.ControlLimit)
	}
	pl.Make()
	return pl
}

// run makes the connection of p carry frames of the running job, as its member m.
func (c *carrier) run(p *peer, m *plane.Member) {
	p.settle()
	p.to(role.Running)
	c.plane.Join(m, c.job.Facts().Patience)
	p.member.Store(m)
	p.conn.Run(&m.Route)
}

// spread makes the first connection of a bridge distribute its bulk frames over the connections in
// with.
func (c *carrier) spread(p *peer, with []action.Conn) {
	var over []*relay.Conn
	for _, x := range with {
		c.on(x, func(o *peer) { over = append(over, o.conn) })
	}
	p.conn.Spread(over, trunk.Burst)
}

// openWays asks the kernel to forward connections between ranks. The kernel may be slow, so a
// goroutine of the job's requests waits for it.
func (c *carrier) openWays(a *job.OpenWays) {
	ways := make([]nat.Way, len(a.Ways))
	for i, w := range a.Ways {
		ways[i] = nat.Way(w)
	}
	var opened job.Opened
	table := c.f.cfg.NAT
	c.kernel.Do(c.f.aside, func() { opened.At, opened.Err = c.f.opened.Open(table, ways) }, func() { c.events.take(opened) })
}

// closeWays makes the kernel forward no new connections over ways that it has opened. The kernel
// may be slow, so a goroutine of the job's requests waits for it.
func (c *carrier) closeWays(a *job.CloseWays) {
	at, table := a.At, c.f.cfg.NAT
	done := func() { c.events.take(job.Closed{}) }
	if !a.Last {
		done = nil
	}
	c.kernel.Do(c.f.aside, func() {
		if err := table.CloseWays(at); err != nil {
			c.f.log.Warn("some connections that the kernel passes on for a job could not be removed; they end with this forwarder",
				zap.String("job", c.id), zap.Error(err))
		}
	}, done)
}

// Dial opens a link to another forwarder's address. It retries until ctx ends, and calls failed
// with the error of each attempt.
type Dial func(ctx context.Context, addr string, failed func(error)) (transport.Link, error)

// dial opens a connection to another forwarder, on a goroutine of its own, and gives the result to
// the job.
func (c *carrier) dial(d *bridge.Dial) {
	f, zipper, number := c.f, d.Zipper, d.Number
	addr := c.job.Address(zipper)
	var ctx context.Context
	var cancel context.CancelFunc
	failing := func(error) {}
	switch {
	case d.Gathers:
		ctx, cancel = context.WithDeadline(c.life, c.until)
		failing = func(why error) { c.events.take(job.Unreached{Zipper: zipper, Reason: why.Error()}) }
	case d.Carried:
		ctx, cancel = context.WithTimeout(c.life, trunk.AttemptCarried)
	default:
		ctx, cancel = context.WithTimeout(c.life, trunk.Attempt)
	}
	var link transport.Link
	var err error
	f.aside(func() {
		defer cancel()
		link, err = f.policy.Load().dial(ctx, addr, failing)
	}, func() {
		switch {
		case err == nil:
			if !c.awaits(zipper) {
				link.Close()
				return
			}
			f.take(link, nil, func(p *peer) { c.dialled(p, zipper, number) })
		case d.Gathers:
			c.unreached(addr, err)
		default:
			c.events.take(job.Crossed{Zipper: zipper, Event: bridge.NotDialled{Number: number, Err: err}})
		}
	})
}

// awaits reports whether the job still wants a connection to the forwarder with index zipper.
// Without the lock.
func (c *carrier) awaits(zipper int) (wanted bool) {
	c.events.locked(func() { wanted = c.job.Awaits(zipper) })
	return wanted
}

// dialled gives the job a connection that this forwarder has dialled: the one with a number in the
// trunk to the forwarder with index zipper. On its own loop, without the lock.
func (c *carrier) dialled(p *peer, zipper, number int) {
	c.events.locked(func() {
		p.belong(c.owner, zipper)
		c.conns[p.id] = p
		c.events.handle(job.Crossed{Zipper: zipper, Event: bridge.Dialled{Conn: p.id, Number: number}})
	})
}

var errNoAnswer = errors.New("no link within the time limit (its log has details)")

// unreached gives up a job that cannot reach another forwarder. A stranger's job gets no details of
// the network there.
func (c *carrier) unreached(addr string, err error) {
	if c.f.policy.Load().servesStrangers() {
		c.f.log.Warn("cannot reach another forwarder", zap.String("job", c.id), zap.String("forwarder", addr),
			zap.Error(err))
		if !errors.Is(err, reach.ErrNotAllowed) {
			err = errNoAnswer
		}
	}
	c.events.take(job.GiveUp{Code: wire.RefuseTimeout, Reason: fmt.Sprintf(
		"job %q: this forwarder cannot reach the forwarder %s: %v; %s", c.id, addr, err, job.Unreachable)})
}

// stop cancels the dialling and other work that goroutines do for the job.
func (c *carrier) stop() {
	if c.end != nil {
		c.end()
	}
}

// Queued returns the number of bytes that wait to be written to connection x; 0 if it has ended.
// With the lock, as Link.
func (c *carrier) Queued(x action.Conn) (n int) {
	c.on(x, func(p *peer) { n = p.conn.Queued() })
	return n
}

// Link returns the properties of connection x. ok is false if it has ended.
func (c *carrier) Link(x action.Conn) (l trunk.Link, ok bool) {
	c.on(x, func(p *peer) { l, ok = trunk.LinkOf(p.conn.Link()), true })
	return l, ok
}

// links returns a snapshot of the properties of each connection in use to the forwarder with index
// zipper. With the lock.
func (c *carrier) links(zipper int) map[action.Conn]trunk.Link {
	links := map[action.Conn]trunk.Link{}
	for _, x := range c.job.Connections(zipper) {
		if l, ok := c.Link(x); ok {
			links[x] = l
		}
	}
	return links
}
