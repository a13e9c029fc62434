// Package link moves frames, and the bytes of large messages, between the processes of a job:
// rails, order, replay and fail-over. It knows no request and no MPI; what is above it is an Upper.
//
// Every other process is a Peer, and has two services. One is frames (Peer.NewFrame, Peer.Send;
// Upper.Frame at the other end): sequenced ones arrive once and in order, whatever rails they took
// and whichever of these are lost. The other is the bytes of a large message. A Source that its
// receiver has cleared (Peer.Bulk) lands in the Sink of the other end. It goes as segments over all
// rails that lead there, in any order, each byte once.
//
// A rail is a link to a forwarder, or to one other process. The way of a byte: Peer.Send →
// rail.push (frame.go) → rail.write (output.go) → the link → rail.read (input.go) → arrive
// (reorder.go) → Upper.
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
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Upper is what links carry frames for. Its methods are called with the lock.
type Upper interface {
	// Frame acts on a frame whose turn it is, but for its payload. It returns where the payload
	// goes (what does not fit is thrown away), and what is told when it is there; nil: nothing more
	// is to be done. body is not kept. An error means a peer that breaks the protocol.
	Frame(p *Peer, h wire.Header, body []byte, payload int) (dst []byte, done Payload, err error)
	// Source is the send that a handle names; nil: it is over, or was never cleared.
	Source(p *Peer, handle uint64) *Source
	// Sink is the receive that a handle names; nil: it is over, or was never one of large messages
	// from this peer.
	Sink(p *Peer, handle uint64) *Sink
	// Written tells that all of a Source has been given to links.
	Written(*Source)
	// Filled tells that all of a Sink has landed. It is of no use any more.
	Filled(*Sink)
	// SayCredit has the peer told how much it may send (Peer.DataLimit), because it may not know.
	SayCredit(*Peer)
	// Fatal ends the job, and calls Set.Close.
	Fatal(code fault.Code, status int, reason string)
}

// Payload is a frame of an Upper whose payload is coming.
type Payload interface {
	// Landed tells that its n bytes are in place.
	Landed(n int) error
}

// Config is what a Set starts with.
type Config struct {
	World *world.World
	Upper Upper
	Lock  sync.Locker
	// Links are joined links to forwarders, 1 to MaxRails, none if there is one cluster; nil: not
	// there yet. At least one of them is there.
	Links []transport.Link
	// Addresses name the forwarders of Links to the user. May be nil.
	Addresses []string
	// Redial opens the link of a place in Links again after it was lost, or for the first time; it
	// tries until ctx ends. leaves: all is done but the good-bye. nil: never again; with one link
	// the job then ends with it.
	Redial func(ctx context.Context, rail int, leaves bool) (transport.Link, error)
	// Routes, in a job of several hops, are for each cluster the places in Links of those that lead
	// there. nil: every link leads to all.
	Routes [][]int
	// Direct has an entry for every process to which a link without a forwarder can be made.
	Direct map[int]Opener
	// ZcopyFrom is how many bytes a message must have to go without copies: it is sent from where
	// it is, or received into its place. The link must be able to, and its Source or Sink say that
	// it may. 0: none does.
	ZcopyFrom int
	// Level says what of frames is checked; the same in all processes.
	Level wire.Level
	// Seal has the keys at level sealed; else nil.
	Seal *sealing.Keys
	// Warn is told what the user should know though the job goes on; nil disables warnings.
	Warn func(string)
	// Woken is called when there are descriptors that sleeping threads do not know; nil: nobody
	// sleeps.
	Woken func()
	// Trace is told of every change of a rail's state; nil: nobody.
	Trace func(string)
	// System has the time, and goroutines that open links.
	System wait.System

	Limits Limits
}

// Set is all rails of a process, and its peers.
type Set struct {
	world  *world.World
	upper  Upper
	limit  Limits
	system wait.System
	start  time.Duration // by its time, when Now would be 0; where times are kept 0 is none
	warn   func(string)
	woken  func()
	trace  func(string)
	lock   sync.Locker

	checked     bool // bodies and payloads have sums
	seal        *sealing.Keys
	size        int     // virtual ranks
	rails       []*rail // to the forwarders, then the direct ones
	forwarders  []*rail
	direct      directState
	slots       int                 // rails that may lead to one process
	multi       bool                // more than one forwarder leads to each process
	resumes     bool                // one does to each, and links are opened again when they are lost
	replays     bool                // the job goes on when a link to a forwarder is lost
	progress    uint64              // rises with everything new that comes or is acknowledged
	paths       [][]*rail           // in a job of several hops: the rails that lead to each virtual rank; nil: all do
	turn        int                 // bytes that a rail writes at a time
	landedEvery int                 // bytes of segments that may stay unacknowledged on a lane
	pathTo      []flow.Path         // by cluster
	peers       sparse.Table[*Peer] // by virtual rank; nil until first used

	frames  []*Frame     // free
	acks    []*Peer      // that are owed an acknowledgement
	unacked int          // retained frames
	lanes   []*flow.Lane // scratch

	zcopy    zcopy
	failover failover
	ctx      context.Context // ends when the set is closed
	cancel   context.CancelFunc
	ended    bool

	// Pool has buffers for the steady path, of the upper layers too.
	Pool Pool
	// Memory has memory of the program that could not be accessed. After it was taken the access is
	// tried again in the next Step.
	Memory fault.Memory
}

// New makes a set over joined links. Start has to be called when the upper layers are there.
func New(cfg Config) (*Set, error) {
	n := len(cfg.Links)
	if n == 0 && len(cfg.World.Clusters) > 1 || n > MaxRails {
		return nil, fault.New(fault.Unsupported, "%d forwarders; want 1 to %d", n, MaxRails)
	}
	s := &Set{world: cfg.World, upper: cfg.Upper, limit: cfg.Limits, system: cfg.System, start: cfg.System.Now() - 1,
		warn: cfg.Warn, woken: cfg.Woken, trace: cfg.Trace, lock: cfg.Lock,
		checked: cfg.Level == wire.LevelChecked, seal: cfg.Seal, size: cfg.World.Size(), slots: n, turn: turnSize}
	s.landedEvery = min(landedEvery, minOnWay/2*s.limit.Segment)
	if (cfg.Level == wire.LevelSealed) != (cfg.Seal != nil) || cfg.Seal != nil && len(cfg.Seal.Members) != s.size {
		return nil, fault.New(fault.Internal, "level %v without the keys for it", cfg.Level)
	}
	s.failover.set, s.zcopy.set, s.zcopy.from = s, s, cfg.ZcopyFrom
	if s.seal != nil {
		s.zcopy.from = 0
	}
	s.peers = sparse.New[*Peer](s.size)
	s.pathTo = make([]flow.Path, len(cfg.World.Clusters))
	s.multi = n > 1 && (cfg.Routes == nil || len(cfg.Routes[0]) > 1)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.resumes = !s.multi && cfg.Redial != nil
	if s.replays = s.multi || s.resumes; s.replays {
		s.failover.unreachableSince = map[int]time.Duration{}
	}
	if s.multi {
		s.turn = 2 * s.limit.Segment
		s.lanes = make([]*flow.Lane, 0, n)
	}
	s.addForwarders(&cfg)
	s.addRoutes(cfg.Routes)
	return s, s.addDirect(cfg.Direct)
}

// addForwarders makes the rails to forwarders.
func (s *Set) addForwarders(cfg *Config) {
	for i, l := range cfg.Links {
		r := &rail{set: s, index: i, in: input{buf: make([]byte, inputSize)}}
		if i < len(cfg.Addresses) {
			r.addr = cfg.Addresses[i]
		}
		r.attach(l)
		if l != nil {
			r.to(up)
		}
		if s.replays && cfg.Redial != nil {
			r.redial = func(ctx context.Context, leaves bool) error {
				l, err := cfg.Redial(ctx, i, leaves)
				if err == nil && !s.railUp(r, l) {
					l.Close()
				}
				return err
			}
		}
		s.rails = append(s.rails, r)
	}
	s.forwarders = s.rails[:len(s.rails):len(s.rails)]
}

// railUp takes a forwarder's link into use; false: the set does not want it any more.
func (s *Set) railUp(r *rail, l transport.Link) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.wants(r) {
		if r.state == dialling {
			r.to(down) // until leaveLater wants it
		}
		return false
	}
	r.takeIntoUse(l)
	s.failover.tellBack(r)
	s.failover.noneSince = 0
	for _, p := range s.peers.All() {
		if p != nil {
			p.resend(nil)
		}
	}
	s.failover.updateReachable() // the forwarder will report the ranks that it does not reach
	if r.leaves {
		s.failover.leave(r)
	}
	s.wake()
	return true
}

// Start has links opened that are not there, and paths measured. Called with the engine's lock.
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
		if !r.linked() {
			s.failover.reconnect(r)
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

// Flush puts on the links what they take, unless one took nothing the last time: then Step does it
// when there is room.
func (s *Set) Flush() {
	for more := true; more && !s.ended; {
		more = false
		for _, r := range s.rails {
			if r.blocked || s.ended || len(s.rails) > 1 && !r.pending() {
				continue
			}
			n, err := r.write()
			if err != nil && r.state != closed {
				s.failover.lost(r, err)
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

// Unsent is how many frames wait for their link that the program waits for.
func (s *Set) Unsent() (n int) {
	for _, r := range s.rails {
		n += r.unsent
	}
	return n
}

// Unacked is how many sequenced frames no peer has acknowledged yet.
func (s *Set) Unacked() int { return s.unacked }

// Pending reports whether there is something to write.
func (s *Set) Pending() bool {
	for _, r := range s.rails {
		if r.pending() {
			return true
		}
	}
	return false
}

// Quiet reports whether Tick would find nothing to do.
func (s *Set) Quiet() bool {
	if len(s.acks) > 0 || s.ended {
		return false
	}
	for _, r := range s.rails {
		if !r.linked() || r.pinged != 0 || r.pending() {
			return false
		}
	}
	return true
}

// Arm prepares the links for sleeping on them; true: there is something to read.
func (s *Set) Arm() (ready bool) {
	for _, r := range s.rails {
		if reads(r) && r.link.Arm() {
			ready = true
		}
	}
	return ready
}

// Poll appends the links' descriptors, for writing too where something waits.
func (s *Set) Poll(p []unix.PollFd) []unix.PollFd {
	for _, r := range s.rails {
		l := r.link
		if reads(r) {
			p = append(p, unix.PollFd{Fd: int32(l.FD()), Events: unix.POLLIN})
		}
		switch {
		case !r.pending():
		case reads(r) && l.WriteFD() == l.FD():
			p[len(p)-1].Events |= unix.POLLOUT
		default:
			p = append(p, unix.PollFd{Fd: int32(l.WriteFD()), Events: unix.POLLOUT})
		}
	}
	return p
}

// Status is how a rail stands.
type Status struct {
	State       string
	Up          bool   // frames go both ways
	Peer        int    // direct: the virtual rank at the other end; else -1
	Dials       bool   // this end opens the link again
	Losses      int    // of links
	Unreachable int    // ranks to which the forwarder has no link
	FD          int    // of the link; -1: there is none
	Remote      string // the link's other end
}

// Status tells how the rails stand, those to forwarders first.
func (s *Set) Status() (all []Status) {
	for _, r := range s.rails {
		x := Status{State: r.state.String(), Up: r.state == up, Peer: -1, Dials: r.redial != nil, Losses: r.losses,
			Unreachable: len(r.unreachable), FD: -1}
		if r.peer != nil {
			x.Peer = r.peer.Rank
		}
		if r.linked() {
			x.FD, x.Remote = r.link.FD(), r.link.Remote()
		}
		all = append(all, x)
	}
	return all
}

// Limit gives the limits, which may be changed with the lock.
func (s *Set) Limit() *Limits { return &s.limit }
