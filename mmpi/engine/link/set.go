// Package link moves frames, and the bytes of large messages, between the processes of a job over
// rails: it keeps their order, retransmits after losses, and fails over to other rails. It does
// not know requests or MPI; the layer above it is an Upper.
//
// Every other process is a Peer with two services. One is frames (Peer.NewFrame, Peer.Send, and
// Upper.Frame at the other end): sequenced frames arrive once and in order, even if they take
// several rails and some of these are lost. The other is the bytes of a large message. A Source
// that its receiver has cleared (Peer.Bulk) arrives in the Sink of the other end, as segments over
// the direct rail if that is up, otherwise over all rails that lead there. Segments arrive in any
// order; duplicates of bytes are discarded.
//
// A rail is a link to a forwarder, or to one other process. The path of a frame: Peer.Send → queue
// (frame.go) → rail.write (output.go) → the link → rail.read (input.go) → arrive (reorder.go) →
// Upper. Package failover decides what happens when a rail is lost.
//
// A Set is not safe for concurrent use: the callers of its methods hold Config.Lock, unless the
// method's comment says otherwise. Goroutines that open links take the lock themselves (redial.go).
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
	"github.com/leidenzipper/zipper/mmpi/engine/link/ready"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Attempt has the facts that a forwarder needs when this process opens a link to it again.
type Attempt struct {
	Leaves bool  // Leaves says that the link is needed only to send Bye.
	Lost   []int // Lost has the clusters that are lost, by index.
}

// Wiring describes the links of a process to the others, and the functions that report changes of
// the links.
type Wiring struct {
	// Links are the links to forwarders that have been joined: 1 to MaxRails, or none if there is
	// only one cluster. A nil element is a link that is not open yet; at least one must be open.
	Links []transport.Link
	// Addresses are the names of the forwarders of Links in messages to the user. It may be nil.
	Addresses []string
	// Redial opens the link at index rail of Links again after a loss, or for the first time. Each
	// call is one attempt, which ends with ctx; after an error the Set waits and calls it again.
	// If Redial is nil, links are never opened again, and the loss of the only link ends the job.
	Redial func(ctx context.Context, rail int, a Attempt) (transport.Link, error)
	// Routes has, in a job of several hops, for each cluster the indexes in Links of the links that
	// lead there, one for each row of forwarders (for the own cluster: any). nil: every link leads
	// to all clusters.
	Routes [][]int
	// Direct has an entry for each rank to which a link without a forwarder can be made. That rank
	// has an entry for this process.
	Direct map[int]Opener
	// OpenWay opens a direct link on demand, when a forwarder has named the address. nil: this
	// process neither asks for such links nor takes any.
	OpenWay WayOpener
	// ZcopyFrom is the size, in bytes, from which messages are sent and received without copies,
	// over links that support it. The memory of such messages must not be Go's. 0: all messages are
	// copied.
	ZcopyFrom int
	// Level says which parts of frames are verified; it is the same in all processes.
	Level wire.Level
	// Seal holds the keys at level sealed, and must be nil at other levels. From New on only the
	// Set uses them.
	Seal *sealing.Keys
	// Warn shows the user a warning about a problem that does not end the job. It is called with
	// the lock held; nil: there are no warnings.
	Warn func(string)
	// Trace receives a line about each change of a rail's state. It is called by New, and later
	// with the lock held; nil: changes are not traced.
	Trace func(string)
	// System provides the clock, sleep, and goroutines that open links. For an engine, nil stands
	// for the system that the process runs on.
	System wait.System
}

// Config has what a Set needs to know: the links, the job's clusters, and the layer above.
type Config struct {
	Wiring
	World  *world.World // clusters of the job, and this process's rank
	Upper  Upper        // layer above the links
	Lock   sync.Locker  // held by the callers of the Set's methods
	OnLoss bool         // The job goes on when a cluster is lost, in every process.
	// Woken is called when there are descriptors that sleeping threads do not know; nil: no thread
	// sleeps.
	Woken  func()
	Limits limits.Limits // limits at the start; Set.Limit gives access to the current ones
}

// Set holds all rails of a process (paths to forwarders and other processes), and the state of its
// exchange with each peer.
type Set struct {
	core
	ready ready.Set // finds the direct links with something to read
}

// New returns a Set over links that have been joined. The caller calls Start once the upper layers
// are ready. An error means that the configuration is not valid.
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
	s.ready = ready.New(cfg.System)
	s.Losses = Losses{core: &s.core, onLoss: cfg.OnLoss}
	s.Demands = Demands{core: &s.core, open: cfg.OpenWay, offers: make([]bool, n),
		shares: make([]share, n), claims: map[*Peer]time.Duration{}}
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
	if len(cfg.Direct) > 0 || cfg.OpenWay != nil {
		s.slots++
	}
	s.addForwarders(&cfg)
	direct, err := s.newDirect(cfg.Direct)
	s.rails = append(s.rails, direct...)
	return s, err
}

// addForwarders adds the rails to forwarders, and the routes to each cluster.
func (s *Set) addForwarders(cfg *Config) {
	first, end := s.world.Mine()
	track := failover.Config{Rank: s.world.Rank, Size: s.size, First: first, End: end, Several: s.multi,
		Replays: s.replays, OnLoss: cfg.OnLoss, Patience: &s.limit.NoRail, Warn: cfg.Warn, Trace: cfg.Trace}
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
			func(ctx context.Context, a Attempt) (transport.Link, error) { return cfg.Redial(ctx, i, a) })
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

// Start begins to open links that are not open yet, and to measure the paths to other clusters. The
// caller must hold the lock.
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

// Context returns a context that ends when the links of the Set are closed.
func (s *Set) Context() context.Context { return s.ctx }

// Step reads and writes every link once, without blocking, and returns how many bytes it moved.
func (s *Set) Step() (n int) {
	for _, r := range s.forwarders {
		n += r.step()
	}
	return n + s.stepDirect()
}

// Flush writes queued frames and segments, as many bytes as the links take. It skips a link that
// took no more bytes the last time: Step writes to it once there is room.
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

// FlushPending calls Flush if frames or segments wait to be written to a link that may have room.
func (s *Set) FlushPending() {
	for _, r := range s.rails {
		if r.pending() && !r.blocked {
			s.Flush()
			return
		}
	}
}

// Unsent returns the number of queued frames that are not background frames: the program waits for
// them.
func (s *Set) Unsent() (n int) {
	for _, r := range s.rails {
		n += r.queue.unsent
	}
	return n
}

// Pending reports whether frames or segments wait to be written to any link.
func (s *Set) Pending() bool {
	for _, r := range s.rails {
		if r.pending() {
			return true
		}
	}
	return false
}

// Abandon separates all links from the buffer of a Source, because the receiver has all of it, or
// wants none of it. If any of it was sent, Upper.Written has been called before. A segment that is
// being written is completed from a copy.
func (s *Set) Abandon(src *Source) {
	for _, r := range s.rails { // replays that were not needed
		if r.seg.active && r.seg.src == src {
			r.seg.detach()
		}
	}
}

// Quiet reports whether all rails have a link, nothing waits to be sent or acknowledged, and no
// answer to a Ping or Bye is due. Then Tick has at most a Ping or a Count to send.
func (s *Set) Quiet() bool {
	if len(s.acks) > 0 || s.ended || s.Demands.pending() {
		return false
	}
	for _, r := range s.rails {
		if !r.Linked() || r.live.pinged != 0 || r.pending() {
			return false
		}
	}
	return true
}

// Tick performs the work that is due at time now. It sends the acknowledgements that this process
// owes, Counts, and pings over silent links. It gives up links that have been silent for too long,
// ends the job if ranks have been unreachable for too long, and shows the user the warnings that
// are due (failover).
func (s *Set) Tick(now time.Duration) {
	if s.ended {
		return
	}
	s.FlushAcks()
	s.Demands.tick(now)
	for _, r := range s.rails {
		r.count.tick(now, s.limit.Ping)
		if err := r.watch(now); err != nil {
			s.lost(r, err)
		}
	}
	if end := s.tracker.Deadline(now); end != nil {
		s.end(end)
	}
	s.Losses.checkAll()
	s.tracker.Notices(now)
	s.Flush()
}

// watch sends a Ping over a link that has been silent for long, at the time now. It returns an
// error if the link must be given up: because a Ping or Bye has not been answered for too long, or
// because a part of a frame must be missing (trickles).
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
		if r.wanted && r.live.silent(now) >= directUnheard && now-r.listened >= listenEvery {
			if r.listened = now; r.cutOff() { // The forwarders take over.
				return fault.New(fault.Link, "the other host does not acknowledge what was sent")
			}
		}
		mustPing, overdue := r.live.tick(now, limit.Ping)
		if mustPing {
			r.queue.push(r.core.takeControl(wire.TypePing, nil))
			r.count.report()
		}
		if overdue > 0 {
			if limit := r.patience(limit, r.wanted || r.core.tracker.Alone(&r.Rail)); overdue > limit {
				return fault.New(fault.Link, "no answer for %v", limit)
			}
		}
	}
	return nil
}

// Arm prepares the links for a thread that sleeps on them. It returns true if a link has something
// to read, so that the thread must not sleep.
func (s *Set) Arm() (ready bool) {
	for _, r := range s.rails {
		if r.Reads() && r.link.Arm() {
			ready = true
		}
	}
	return ready
}

// Poll appends the links' descriptors to p, to wait for input, and for room to write if something
// waits to be written.
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

// Status is a snapshot of one rail, a path of this process to a forwarder or directly to another
// process.
type Status struct {
	State string // name of the rail's state
	Up    bool   // The rail carries frames in both directions.
	// rank, in the whole job, at the other end of a direct rail; -1: the rail leads to a forwarder
	Peer        int
	Dials       bool   // This end opens the link again after a loss.
	Losses      int    // number of times that the rail has lost its link
	Unreachable int    // number of ranks to which the forwarder has no link
	FD          int    // descriptor of the link; -1: there is no link
	Remote      string // name of the link's other end; empty: there is no link
}

// Status returns the states of all rails, first those to forwarders, then the direct ones.
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
