// Package link moves frames, and the bytes of large messages, between the processes of a job over
// rails: it keeps their order, replays what is lost, and fails over to other rails. It knows no
// requests and no MPI; the layer above it is an Upper.
//
// Every other process is a Peer, and has two services. One is frames (Peer.NewFrame, Peer.Send, and
// Upper.Frame at the other end): sequenced ones arrive once and in order, whatever rails they took
// and whichever of these are lost. The other is the bytes of a large message. A Source that its
// receiver has cleared (Peer.Bulk) arrives in the Sink of the other end, as segments over all rails
// that lead there, in any order, each byte once.
//
// A rail is a link to a forwarder, or to one other process. The way of a byte: Peer.Send → queue
// (frame.go) → rail.write (output.go) → the link → rail.read (input.go) → arrive (reorder.go) →
// Upper. Package failover decides what happens when a rail is lost.
//
// A Set is not safe for concurrent use: all is done with Config.Lock, which only goroutines that
// open links take themselves (redial.go).
package link

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/sparse"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Wiring is how a process is linked to the others, and what is called when that changes.
type Wiring struct {
	// Links are joined links to forwarders, 1 to MaxRails, none if there is one cluster; nil: not
	// there yet. At least one of them is there.
	Links []transport.Link
	// Addresses name the forwarders of Links to the user. May be nil.
	Addresses []string
	// Redial opens the link of a place in Links again after it was lost, or for the first time; it
	// tries until ctx ends. leaves: only Bye is still to be sent. nil: links are never opened
	// again, and with a single one the job ends when it is lost.
	Redial func(ctx context.Context, rail int, leaves bool) (transport.Link, error)
	// Routes, in a job of several hops, are for each cluster the places in Links of those that lead
	// there, one for each row of forwarders (for the own cluster: any). nil: every link leads to
	// all.
	Routes [][]int
	// Direct has an entry for every process to which a link without a forwarder can be made; the
	// other process has one for this.
	Direct map[int]Opener
	// ZcopyFrom is how many bytes a message of the program must have to go without copies: it is
	// sent from where it is, or received into its place, over links that can do so. The memory must
	// not be Go's. 0: no message does.
	ZcopyFrom int
	// Level says what of frames is checked; it is the same in all processes.
	Level wire.Level
	// Seal has the keys at level sealed, and belongs to the links; otherwise it is nil.
	Seal *sealing.Keys
	// Warn is called with what the user should know though the job goes on, with the lock; nil
	// disables warnings.
	Warn func(string)
	// Trace is called with every change of a rail's state, with the lock; nil: nothing is.
	Trace func(string)
	// System has the time, sleep, and goroutines that open links; nil, for an engine: the system
	// that the process runs on.
	System wait.System
}

// Config is what a Set starts with.
type Config struct {
	Wiring
	World *world.World
	Upper Upper
	Lock  sync.Locker
	// Woken is called when there are descriptors that sleeping threads do not know; nil: no thread
	// sleeps.
	Woken  func()
	Limits limits.Limits
}

// Set is all rails of a process, and its peers.
type Set struct {
	core
	polled []unix.PollFd // scratch of stepDirect
}

// New makes a set over joined links. Start must be called once the upper layers are there.
func New(cfg Config) (*Set, error) {
	n, size := len(cfg.Links), cfg.World.Size()
	if n == 0 && len(cfg.World.Clusters) > 1 || n > MaxRails {
		return nil, fault.New(fault.Unsupported, "%d forwarders; want 1 to %d", n, MaxRails)
	}
	if (cfg.Level == wire.LevelSealed) != (cfg.Seal != nil) || cfg.Seal != nil && len(cfg.Seal.Members) != size {
		return nil, fault.New(fault.Internal, "level %v without the keys for it", cfg.Level)
	}
	s := &Set{core: core{world: cfg.World, upper: cfg.Upper, limit: cfg.Limits, system: cfg.System,
		start: cfg.System.Now() - 1, woken: cfg.Woken, lock: cfg.Lock, seal: cfg.Seal,
		checked: cfg.Level == wire.LevelChecked, hops: cfg.Routes != nil, size: size, slots: n, turn: turnSize,
		landedEvery: min(landedEvery, minOnWay/2*cfg.Limits.Segment),
		pathTo:      make([]flow.Path, len(cfg.World.Clusters)), peers: sparse.New[*Peer](size),
		zcopy: zcopy{from: cfg.ZcopyFrom, warn: cfg.Warn}, changed: make(chan struct{}, 1)}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.multi = n > 1 && (cfg.Routes == nil || len(cfg.Routes[0]) > 1)
	s.replays = s.multi || cfg.Redial != nil
	if s.multi {
		s.turn = 2 * s.limit.Segment
		s.lanes = make([]*flow.Lane, 0, n)
	}
	if s.seal != nil {
		s.zcopy.from = 0
	}
	if len(cfg.Direct) > 0 {
		s.slots++
	}
	s.addForwarders(&cfg)
	direct, err := s.newDirect(cfg.Direct)
	s.rails = append(s.rails, direct...)
	return s, err
}

// addForwarders makes the rails to forwarders.
func (s *Set) addForwarders(cfg *Config) {
	first, end := s.world.Mine()
	track := failover.Config{Rank: s.world.Rank, Size: s.size, First: first, End: end, Several: s.multi,
		Replays: s.replays, Patience: &s.limit.NoRail, Warn: cfg.Warn, Trace: cfg.Trace}
	if cfg.Routes != nil {
		for i, c := range s.world.Clusters {
			for range c.Size {
				track.Paths = append(track.Paths, cfg.Routes[i])
			}
		}
	}
	s.tracker = failover.New(track)
	for i, l := range cfg.Links {
		r := newRail(&s.core, i, nil,
			func(ctx context.Context, leaves bool) (transport.Link, error) { return cfg.Redial(ctx, i, leaves) })
		addr := ""
		if i < len(cfg.Addresses) {
			addr = cfg.Addresses[i]
		}
		s.tracker.Forwarder(&r.Rail, addr, l != nil, cfg.Redial != nil)
		r.in.ready()
		r.attach(l)
		s.rails = append(s.rails, r)
	}
	s.forwarders = s.rails[:len(s.rails):len(s.rails)]
	for i := range s.world.Clusters {
		there := s.forwarders
		if cfg.Routes != nil {
			there = nil
			for _, k := range cfg.Routes[i] {
				there = append(there, s.rails[k])
			}
		}
		s.routes = append(s.routes, there)
	}
}

// Start begins to open links that are not there, and to measure paths. The caller has the lock.
func (s *Set) Start() {
	mine, _ := s.world.Place(s.world.Rank)
	first := 0
	for i, c := range s.world.Clusters {
		if i != mine {
			s.Peer(first + s.world.Rank%int(c.Size)).measure()
		}
		first += int(c.Size)
	}
	for _, r := range s.rails {
		if !r.Linked() {
			s.reconnect(r)
		}
	}
}

// Context ends when the links have been closed.
func (s *Set) Context() context.Context { return s.ctx }

// Step reads and writes every link once, without blocking, and returns how many bytes it moved.
func (s *Set) Step() (n int) {
	for _, r := range s.forwarders {
		n += r.step()
	}
	return n + s.stepDirect()
}

// Flush puts on the links what they take. A link that took nothing the last time is left out: Step
// writes to it when there is room.
func (s *Set) Flush() {
	for more := true; more && !s.ended; {
		more = false
		for _, r := range s.rails {
			if r.blocked || s.ended || len(s.rails) > 1 && !r.pending() {
				continue
			}
			n, err := r.write()
			if err != nil && r.State() != failover.Closed {
				s.lost(r, err)
			}
			more = more || s.multi && n >= s.turn
		}
	}
}

// FlushPending is Flush if there is something that a link may take.
func (s *Set) FlushPending() {
	for _, r := range s.rails {
		if r.pending() && !r.blocked {
			s.Flush()
			return
		}
	}
}

// Unsent returns how many frames for which the program waits have not been written.
func (s *Set) Unsent() (n int) {
	for _, r := range s.rails {
		n += r.queue.unsent
	}
	return n
}

// Pending reports whether there is something to write.
func (s *Set) Pending() bool {
	for _, r := range s.rails {
		if r.pending() {
			return true
		}
	}
	return false
}

// Abandon has links no longer use the buffer of a Source that has been Written, because the
// receiver has all of it. What has been written in part goes on as a copy.
func (s *Set) Abandon(src *Source) {
	for _, r := range s.rails { // replays that were not needed
		if r.seg.active && r.seg.src == src {
			r.seg.detach()
		}
	}
}

// Quiet reports whether Tick would find nothing to do.
func (s *Set) Quiet() bool {
	if len(s.acks) > 0 || s.ended {
		return false
	}
	for _, r := range s.rails {
		if !r.Linked() || r.live.pinged != 0 || r.pending() {
			return false
		}
	}
	return true
}

// Tick does what is due at a time: it sends acknowledgements that found no frame to ride on and
// pings, and gives up links that were silent, and ranks that were unreachable, for too long.
func (s *Set) Tick(now time.Duration) {
	if s.ended {
		return
	}
	s.FlushAcks()
	for _, r := range s.rails {
		r.count.tick(now, s.limit.Ping)
		if err := r.watch(now); err != nil {
			s.lost(r, err)
		}
	}
	if end := s.tracker.Deadline(now); end != nil {
		s.end(end)
	}
	s.tracker.Notices(now)
	s.Flush()
}

// watch pings a silent link. It returns an error if the link must be given up.
func (r *rail) watch(now time.Duration) error {
	limit := &r.core.limit
	if r.Reads() {
		if err := r.live.trickles(now, r.in.read, r.in.begun(), 2*limit.Ping); err != nil {
			return err
		}
	}
	switch r.State() {
	case failover.ByeSent: // Bye or its acknowledgement may have been damaged.
		if limit := limit.Silence / 2; now-r.live.pinged > limit {
			return fault.New(fault.Link, "no good-bye for %v", limit)
		}
	case failover.Up, failover.Leaving:
		mustPing, overdue := r.live.tick(now, limit.Ping)
		if mustPing {
			r.queue.push(r.core.takeControl(wire.TypePing, nil))
			r.count.report()
		}
		if overdue > 0 {
			if limit := r.patience(limit, r.core.tracker.Alone(&r.Rail)); overdue > limit {
				return fault.New(fault.Link, "no answer for %v", limit)
			}
		}
	}
	return nil
}

// Arm prepares the links for sleeping on them; true: there is something to read.
func (s *Set) Arm() (ready bool) {
	for _, r := range s.rails {
		if r.Reads() && r.link.Arm() {
			ready = true
		}
	}
	return ready
}

// Poll appends the links' descriptors, for writing too where something waits to be written.
func (s *Set) Poll(p []unix.PollFd) []unix.PollFd {
	for _, r := range s.rails {
		l := r.link
		if r.Reads() {
			p = append(p, unix.PollFd{Fd: int32(l.FD()), Events: unix.POLLIN})
		}
		switch {
		case !r.pending():
		case r.Reads() && l.WriteFD() == l.FD():
			p[len(p)-1].Events |= unix.POLLOUT
		default:
			p = append(p, unix.PollFd{Fd: int32(l.WriteFD()), Events: unix.POLLOUT})
		}
	}
	return p
}

// Status is the state of a rail.
type Status struct {
	State       string
	Up          bool   // Frames go in both directions.
	Peer        int    // direct: the virtual rank at the other end; otherwise -1
	Dials       bool   // This end opens the link again.
	Losses      int    // number of links that were lost
	Unreachable int    // number of ranks to which the forwarder has no link
	FD          int    // descriptor of the link; -1: there is no link
	Remote      string // the link's other end
}

// Status returns the state of all rails, those to forwarders first.
func (s *Set) Status() (all []Status) {
	for _, r := range s.rails {
		x := Status{State: r.State().String(), Up: r.State() == failover.Up, Peer: -1, Dials: r.Dials(),
			Losses: r.Losses(), Unreachable: r.Unreachable(), FD: -1}
		if r.peer != nil {
			x.Peer = r.peer.Rank
		}
		if r.Linked() {
			x.FD, x.Remote = r.link.FD(), r.link.Remote()
		}
		all = append(all, x)
	}
	return all
}
