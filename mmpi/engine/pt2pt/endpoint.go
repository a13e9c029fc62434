// Package pt2pt is one process's end of all messages between two processes: communicators,
// matching, the eager and the rendezvous protocol, probes, and receives that native MPI completes.
// Links (package link) carry its frames.
//
// The way of a message: Isend (send.go) → link → proto.Frame (proto.go) → eager.go or rendezvous.go
// → match.go → the receive's buffer → the Cell.
//
// An Endpoint is not safe for concurrent use: all is done with the engine's lock, but for
// Endpoint.Comm. Methods that may call native MPI are for application threads only; they say so.
package pt2pt

import (
	"time"

	"github.com/leidenzipper/zipper/internal/idtable"
	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/sparse"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Native is what messages ask of the cluster's own MPI library: see engine.Native.
type Native interface {
	// Improbe looks for a message in the local part of the communicator; source is a native rank
	// there or AnySource.
	Improbe(comm *Comm, source, tag int) (Probe, bool, error)
	// Iprobe is Improbe that leaves the message where it is; Probe.Message is 0.
	Iprobe(comm *Comm, source, tag int) (Probe, bool, error)
	// Imrecv starts to receive a message found by Improbe into the request's own buffer.
	Imrecv(r *Request, message uint64) error
	// Irecv posts the request's receive natively after all: nothing shadows it any more.
	Irecv(r *Request) error
	// Test reports whether a receive started by Imrecv or Irecv is over, and fills in the cell but
	// for Done.
	Test(r *Request) (bool, error)
	// Cancel cancels a receive started by Irecv.
	Cancel(r *Request) error
}

// Probe is a message found in native MPI.
type Probe struct {
	Message uint64 // not 0 (except by Iprobe)
	Source  int    // rank in the spanning communicator
	Tag     int
	Bytes   int64
}

// Recorder keeps a process's traffic. Times are since the engine's start. Its methods are called
// from any thread, also at once.
type Recorder interface {
	// Sent notes a message to another virtual rank when its send is called. Those to ranks of the
	// own cluster are native MPI's.
	Sent(at time.Duration, to, bytes int)
	// Arrived notes that all of a message of another cluster is there. The program learns of it
	// when it next waits.
	Arrived(at time.Duration, from int)
	// Received notes that the program has received a message of its own cluster. Not of all that is
	// known.
	Received(at time.Duration, from int)
	// Waits notes that a thread begins to wait for messages, or no longer does.
	Waits(at time.Duration, begins bool)
	// Close is called once, when the engine has finished; its error is Finish's.
	Close(at time.Duration) error
}

// Config is what an Endpoint starts with.
type Config struct {
	World    *world.World
	Native   Native
	Recorder Recorder // nil: nobody
	// Fatal ends the job, and calls Fail.
	Fatal  func(code fault.Code, status int, reason string)
	Limits limits.Limits
}

// Endpoint is one process's end of all messages.
type Endpoint struct {
	world    *world.World
	links    *link.Set
	native   Native
	recorder Recorder
	fatal    func(code fault.Code, status int, reason string)
	limit    limits.Limits
	size     int // virtual ranks
	err      error

	comms     []*Comm             // by id
	table     idtable.Table[Comm] // the same for Comm, which does not lock
	freeIDs   []int32
	contextOf map[uint64]*Comm
	contexts  uint32
	orphans   []*message // for communicators not known here yet
	probed    map[uint64]*message
	probes    uint64

	peers    sparse.Table[*peer] // by virtual rank; nil until first used
	requests []*Request          // by index
	free     []*Request
	natives  []*Request // being received by native MPI
	messages []*message // free
	poolLeft int        // eager credit that may still be granted beyond first windows

	active      int // requests that somebody in another cluster has to do with, and the posted lists
	localPosted int // entries of all posted lists that a local message may match
	flushes     int // communicators with flush set

	arrived uint64 // see Arrived

	// Completions is how many operations have ended; whoever takes the lock sets it to 0.
	Completions int
}

// New makes an endpoint and its links; lc.Upper is filled in. Links().Start has to be called then.
func New(cfg Config, lc link.Config) (ep *Endpoint, err error) {
	ep = &Endpoint{world: cfg.World, native: cfg.Native, recorder: cfg.Recorder, fatal: cfg.Fatal,
		limit: cfg.Limits, size: cfg.World.Size(), contextOf: map[uint64]*Comm{},
		probed: map[uint64]*message{}, poolLeft: cfg.Limits.EagerPool}
	ep.peers = sparse.New[*peer](ep.size)
	lc.Upper = proto{ep}
	if ep.links, err = link.New(lc); err != nil {
		return nil, err
	}
	ep.addControl()
	return ep, nil
}

// Links are what carries the messages.
func (ep *Endpoint) Links() *link.Set { return ep.links }

// Err is why the endpoint has failed; nil if it has not.
func (ep *Endpoint) Err() error { return ep.err }

// End makes every further call fail.
func (ep *Endpoint) End(err error) {
	if ep.err == nil {
		ep.err = err
	}
}

// Fatal ends the job: every outstanding operation fails and the process ends, if native MPI does
// its work.
func (ep *Endpoint) Fatal(code fault.Code, status int, reason string) { ep.fatal(code, status, reason) }

// Fail closes the links and completes every request with an error; false: that has happened before.
func (ep *Endpoint) Fail(code fault.Code, reason string) bool {
	if ep.err != nil {
		return false
	}
	ep.err = fault.New(code, "%s", reason)
	ep.links.Close()
	for _, r := range ep.requests {
		if r.state == idle {
			continue
		}
		if r.keepsBusy() {
			ep.active--
		}
		r.cell.Error = int32(code)
		r.release()
	}
	ep.natives = ep.natives[:0]
	for _, c := range ep.comms {
		if c != nil {
			c.queues = [kinds]matchQueue{}
			c.wild, c.shadows, c.localPosted = list.List[*Request]{}, list.List[*Request]{}, 0
		}
	}
	ep.localPosted = 0
	return true
}

// Busy reports whether a thread must not block in native MPI: of receives handed to that only our
// progress notices the end.
func (ep *Endpoint) Busy() bool { return ep.active > 0 || ep.links.Unsent() > 0 || len(ep.natives) > 0 }

// AwaitsNative reports whether receives are under way whose end no link tells of.
func (ep *Endpoint) AwaitsNative() bool { return len(ep.natives) > 0 }

// Arrived returns how many messages, or announcements and segments of large ones, have come from
// other processes so far. The engine's own messages do not count.
func (ep *Endpoint) Arrived() uint64 { return ep.arrived }

// Hold counts (n may be -1) calls that keep the endpoint busy and are none of its requests.
func (ep *Endpoint) Hold(n int) { ep.active += n }

// Complete ends an operation that is none of the endpoint's requests.
func (ep *Endpoint) Complete(cell *Cell, code fault.Code) {
	cell.Error = int32(code)
	cell.Finish()
	ep.Completions++
}

// counted are the counters that are kept by hand; recount makes them anew.
type counted struct{ active, localPosted, flushes int }

// recount gives what the counters should be, Hold's part left out.
func (ep *Endpoint) recount() (n counted) {
	for _, r := range ep.requests {
		if r.keepsBusy() {
			n.active++
		}
	}
	for _, c := range ep.comms {
		if c == nil {
			continue
		}
		if c.flush {
			n.flushes++
		}
		q := &c.queues[KindP2P]
		for x := q.posted.First(); x != nil; x = x.Next() {
			if c.mayBeLocal(x.Of.source) {
				n.localPosted++
			}
		}
	}
	return n
}

// Check compares the counters that are kept by hand with what they count; held is the sum of Hold's
// calls. For tests.
func (ep *Endpoint) Check(held int) error {
	if err := ep.checkCredit(); err != nil {
		return err
	}
	want := ep.recount()
	want.active += held
	if got := (counted{ep.active, ep.localPosted, ep.flushes}); got != want {
		return fault.New(fault.Internal, "the endpoint counts %+v, there are %+v", got, want)
	}
	for _, c := range ep.comms {
		if c == nil {
			continue
		}
		outstanding := 0
		for _, r := range ep.requests {
			if r.state != idle && r.comm == c {
				outstanding++
			}
		}
		for _, m := range ep.probed {
			if m.context == c.context {
				outstanding++
			}
		}
		if c.outstanding != outstanding {
			return fault.New(fault.Internal, "communicator %x counts %d operations, there are %d",
				c.context, c.outstanding, outstanding)
		}
	}
	return nil
}

// checkCredit compares the eager payload that peers are charged for with the messages that are
// kept, and the one of each that may be arriving.
func (ep *Endpoint) checkCredit() error {
	if ep.Err() != nil {
		return nil // nobody sends any more
	}
	kept := map[*peer]uint64{}
	keep := func(m *message) {
		if !m.rts {
			kept[m.peer] += uint64(len(m.buf))
		}
	}
	for _, m := range ep.orphans {
		keep(m)
	}
	for _, m := range ep.probed {
		keep(m)
	}
	for _, c := range ep.comms {
		if c == nil {
			continue
		}
		for k := range c.queues {
			for n := c.queues[k].unexpected.First(); n != nil; n = n.Next() {
				keep(n.Of)
			}
		}
	}
	for _, p := range ep.peers.All() {
		if p == nil {
			continue
		}
		if n, least := p.eagerIn.Waiting(), kept[p]; n < least || n > least+uint64(p.Arriving()) {
			return fault.New(fault.Internal, "rank %d is charged for %d bytes, %d are kept and %d arrive",
				p.Rank, n, least, p.Arriving())
		}
	}
	return nil
}
