package engine

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/wire"
)

// MaxRails bounds the forwarders of a job.
const MaxRails = 16

// waysState is what the rails of a job of several have in common.
type waysState struct {
	ctx    context.Context
	cancel context.CancelFunc
	lanes  []*flow.Lane // scratch

	lastErr   string                // why the last rail was lost
	none      time.Duration         // tick since which there is no rail; 0: there is one
	cut       map[int]time.Duration // ranks that no rail reaches: since when
	finishing bool
	looked    bool // whether all forwarders have come
}

// Context ends when the engine's links have been closed.
func (e *Engine) Context() context.Context { return e.ways.ctx }

func (e *Engine) addRails(cfg Config) {
	n := len(cfg.Links)
	e.slots = n
	e.multi, e.turn = n > 1 && (cfg.Ways == nil || len(cfg.Ways[0]) > 1), turnSize
	e.ways.ctx, e.ways.cancel = context.WithCancel(context.Background())
	if e.multi {
		e.turn = 2 * e.limits.Segment
		e.ways.lanes = make([]*flow.Lane, 0, n)
		e.ways.cut = map[int]time.Duration{}
	}
	for i, l := range cfg.Links {
		r := &rail{e: e, index: i, up: l != nil, in: input{buf: make([]byte, inputSize)}}
		if i < len(cfg.Addresses) {
			r.addr = cfg.Addresses[i]
		}
		r.attach(l)
		if e.multi && cfg.Redial != nil {
			r.redial = func(ctx context.Context) error {
				l, err := cfg.Redial(ctx, r.index)
				if err == nil && !e.railUp(r, l) {
					l.Close()
				}
				return err
			}
		}
		e.rails = append(e.rails, r)
	}
	e.forwarders = e.rails[:n:n]
	if cfg.Ways == nil {
		return
	}
	for i, c := range cfg.World.Clusters {
		var there []*rail
		for _, k := range cfg.Ways[i] {
			there = append(there, e.rails[k])
		}
		for range c.Size {
			e.paths = append(e.paths, there)
		}
	}
}

// toward gives the rails that lead to a rank, up or not; both ends count them alike.
func (e *Engine) toward(rank int) []*rail {
	if e.paths == nil {
		return e.forwarders
	}
	return e.paths[rank]
}

// home gives the place in toward of the rail that a peer's small messages take: pairs are spread evenly, whether processes talk to all of another
// cluster or each to its like, and both directions of a pair take the same rail.
func (e *Engine) home(rank int) int {
	lo, hi := min(rank, e.world.Rank), max(rank, e.world.Rank)
	_, first := e.world.Place(lo)
	_, second := e.world.Place(hi)
	n := len(e.toward(rank))
	return (lo - first + (hi-second)/n) % n
}

// reaches reports whether both sides of the rail are there for a rank.
func (r *rail) reaches(rank int) bool {
	if r.peer != nil {
		return r.up && !r.leaving && r.peer.rank == rank
	}
	if !r.up || r.e.paths != nil && !slices.Contains(r.e.paths[rank], r) {
		return false
	}
	if len(r.down) == 0 {
		return true
	}
	_, down := r.down[rank]
	return !down
}

// way gives the rail for everything but segments; nil: none reaches the peer.
func (e *Engine) way(p *peer) *rail {
	if d := p.direct; d != nil && d.reaches(p.rank) {
		return d
	}
	rails := e.toward(p.rank)
	if !e.multi {
		return rails[p.home]
	}
	for i := range rails {
		if r := rails[(p.home+i)%len(rails)]; r.reaches(p.rank) {
			return r
		}
	}
	return nil
}

func (e *Engine) unsent() (n int) {
	for _, r := range e.rails {
		n += r.unsent
	}
	return n
}

func (e *Engine) pending() bool {
	for _, r := range e.rails {
		if r.pending() {
			return true
		}
	}
	return false
}

func (e *Engine) stepRails() (n int) {
	for _, r := range e.forwarders {
		n += r.step()
	}
	return n + e.stepDirect()
}

// arm prepares the links for sleeping on them; true: there is something to read.
func (e *Engine) arm() (ready bool) {
	for _, r := range e.rails {
		if r.up && r.link.Arm() {
			ready = true
		}
	}
	return ready
}

// sayBye ends the links cleanly. An acknowledgement that may go down with a rail is repeated on the others: nobody is here to do it later.
func (e *Engine) sayBye() {
	e.ways.finishing = true
	for _, r := range e.rails {
		if !r.up || r.leaving {
			continue
		}
		for _, p := range e.peers {
			if p != nil && e.several(p) && r.reaches(p.rank) {
				f := e.newFrame(p, wire.TypeAck, 0, 0, 0)
				f.rail = r
				r.push(f)
			}
		}
		r.push(e.newControl(wire.TypeBye, nil))
		r.bye = byeSent
	}
}

func (e *Engine) byeAcked() bool {
	for _, r := range e.rails {
		if r.up && r.bye != byeAcked && !(r.leaving && r.bye == running) {
			return false
		}
	}
	return true
}

// sendAbort puts an Abort on all rails.
func (e *Engine) sendAbort(status, rank int, reason string) {
	for _, r := range e.rails {
		if r.up {
			r.push(e.newControl(wire.TypeAbort, &wire.Abort{Code: int32(status), Rank: uint32(rank), Reason: reason}))
		}
	}
}

// closeRails ends all links.
func (e *Engine) closeRails() {
	e.ways.cancel()
	for _, r := range e.rails {
		r.up = false
		if r.link != nil {
			r.link.Close()
		}
		r.dropPipe()
		r.queue, r.unsent, r.bulk, r.seg = frameQueue{}, 0, nil, segment{}
		r.in.busy, r.in.dst, r.in.land = false, nil, landing{}
	}
}

// pollLinks appends the links' descriptors.
func (e *Engine) pollLinks(p []unix.PollFd) []unix.PollFd {
	for _, r := range e.rails {
		if !r.up {
			continue
		}
		l := r.link
		p = append(p, unix.PollFd{Fd: int32(l.FD()), Events: unix.POLLIN})
		switch {
		case !r.pending():
		case l.WriteFD() == l.FD():
			p[len(p)-1].Events |= unix.POLLOUT
		default:
			p = append(p, unix.PollFd{Fd: int32(l.WriteFD()), Events: unix.POLLOUT})
		}
	}
	return p
}

// quiet: a tick would find nothing to do.
func (e *Engine) quiet() bool {
	if len(e.acks) > 0 || e.hold.some || e.err != nil {
		return false
	}
	for _, r := range e.rails {
		if !r.up || r.pinged != 0 || r.pending() {
			return false
		}
	}
	return true
}
