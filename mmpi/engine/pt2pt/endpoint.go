// Package pt2pt is one process's end of all messages between two processes: communicators,
// matching, the eager and the rendezvous protocol, probes, and receives that native MPI completes.
// Links (package link) carry its frames.
//
// The way of a message: Isend (send.go) → link → proto.Frame (proto.go) → eager.go or rendezvous.go
// → match.go → the receive's buffer → the Cell.
//
// An Endpoint is not safe for concurrent use: callers hold the engine's lock for every method but
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

// Native is the part of the cluster's own MPI library that messages use; see engine.Native.
type Native interface {
	// Improbe looks for a message in the local part of the communicator; source is a native rank
	// there or AnySource.
	Improbe(comm *Comm, source, tag int) (Probe, bool, error)
	// Iprobe looks for a message as Improbe does but leaves it in place; Probe.Message is 0.
	Iprobe(comm *Comm, source, tag int) (Probe, bool, error)
	// Imrecv starts to receive a message found by Improbe into the request's own buffer.
	Imrecv(r *Request, message uint64) error
	// Irecv posts the request's receive natively once no earlier receive shadows it.
	Irecv(r *Request) error
	// Test reports whether a receive started by Imrecv or Irecv is over, and fills in the cell
	// apart from Done.
	Test(r *Request) (bool, error)
	// Cancel cancels a receive started by Irecv.
	Cancel(r *Request) error
}

// Probe is a message found in native MPI.
type Probe struct {
	Message uint64 // the handle of the matched message; 0 from Iprobe
	Source  int    // the sender's rank in the spanning communicator
	Tag     int    // the message's tag
	Bytes   int64  // the message's size in bytes
}

// Recorder records a process's traffic. Times are since the engine's start. Its methods are called
// from any thread, also concurrently.
type Recorder interface {
	// Sent records a message to another virtual rank when its send is called. Messages to ranks of
	// the own cluster are sent by native MPI and are not recorded.
	Sent(at time.Duration, to, bytes int)
	// Arrived records that all of a message of another cluster has arrived. The program learns of
	// it when it next waits.
	Arrived(at time.Duration, from int)
	// Received records that the program has received a message of its own cluster. The engine does
	// not see all of these.
	Received(at time.Duration, from int)
	// Waits records that a thread begins to wait for messages, or no longer waits.
	Waits(at time.Duration, begins bool)
	// Close is called once, when the engine has finished; Finish returns its error.
	Close(at time.Duration) error
}

// Config is the configuration of an Endpoint.
type Config struct {
	World    *world.World
	Native   Native
	Recorder Recorder // the recorder of traffic; nil: no recording
	// Fatal ends the job, and calls Fail.
	Fatal func(code fault.Code, status int, reason string)
	// Lost is called after a cluster was lost and the operations with its ranks have ended; nil: it
	// is not called.
	Lost   func(cluster int, reason string)
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
	size     int   // the number of virtual ranks
	err      error // the reason why the endpoint has failed, or nil

	comms     []*Comm             // the communicators by id
	table     idtable.Table[Comm] // a copy of comms that can be read without the lock
	freeIDs   []int32             // the ids of dropped communicators
	contextOf map[uint64]*Comm    // the communicators by context
	contexts  uint32              // the number of contexts that this process has made
	orphans   []*message          // the messages for communicators not known here yet
	probed    map[uint64]*message // the matched messages, by the handles that Improbe returned
	probes    uint64              // the last handle in probed

	peers    sparse.Table[*peer] // the peers by virtual rank; nil until first used
	requests []*Request          // all requests by index
	free     []*Request          // the requests not in use
	natives  []*Request          // the receives that native MPI completes
	messages []*message          // the messages not in use
	poolLeft int                 // eager credit in bytes that may still be granted beyond first windows

	active      int // the number of requests that keep the engine busy, and the sum of Hold's calls
	localPosted int // the entries of all posted queues that a local message may match
	flushes     int // the number of communicators with flush set

	arrived uint64 // the count that Arrived returns

	losses

	// Completions is the number of operations that have ended since a caller that holds the lock
	// last set it to 0.
	Completions int
}

// New returns an endpoint and its links; it sets lc.Upper. The caller must call Links().Start.
func New(cfg Config, lc link.Config) (ep *Endpoint, err error) {
	ep = &Endpoint{world: cfg.World, native: cfg.Native, recorder: cfg.Recorder, fatal: cfg.Fatal,
		limit: cfg.Limits, size: cfg.World.Size(), contextOf: map[uint64]*Comm{},
		probed: map[uint64]*message{}, poolLeft: cfg.Limits.EagerPool}
	ep.losses = losses{ep: ep, onLost: cfg.Lost}
	ep.peers = sparse.New[*peer](ep.size)
	lc.Upper = proto{ep}
	if ep.links, err = link.New(lc); err != nil {
		return nil, err
	}
	ep.addControl()
	return ep, nil
}

// Links returns the links that carry the messages.
func (ep *Endpoint) Links() *link.Set { return ep.links }

// Err returns the reason why the endpoint has failed, or nil if it has not.
func (ep *Endpoint) Err() error { return ep.err }

// End makes every further call fail.
func (ep *Endpoint) End(err error) {
	if ep.err == nil {
		ep.err = err
	}
}

// Fatal ends the job: every outstanding operation fails, and the process exits, provided that
// native MPI aborts.
func (ep *Endpoint) Fatal(code fault.Code, status int, reason string) { ep.fatal(code, status, reason) }

// Fail closes the links and completes every request with an error. It returns false, and does
// nothing, if the endpoint has already failed.
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
		if r.needsPolling() {
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

// Busy reports whether a thread must not block in native MPI. Receives handed to native MPI count,
// because only the engine's progress notices their end.
func (ep *Endpoint) Busy() bool { return ep.active > 0 || ep.links.Unsent() > 0 || len(ep.natives) > 0 }

// AwaitsNative reports whether receives are under way that native MPI completes.
func (ep *Endpoint) AwaitsNative() bool { return len(ep.natives) > 0 }

// Arrived returns the number of messages, or announcements and segments of large ones, that have
// arrived from other processes so far. The engine's own messages do not count.
func (ep *Endpoint) Arrived() uint64 { return ep.arrived }

// Hold adds n, which may be -1, to the number of operations that keep the endpoint busy and are
// none of its requests.
func (ep *Endpoint) Hold(n int) { ep.active += n }

// Complete ends an operation that is none of the endpoint's requests.
func (ep *Endpoint) Complete(cell *Cell, code fault.Code) {
	cell.Error = int32(code)
	cell.Finish()
	ep.Completions++
}

// counted has the counters that are kept by hand; recount computes them from scratch.
type counted struct{ active, localPosted, flushes int }

// recount returns the correct values of the counters, without Hold's part.
func (ep *Endpoint) recount() (n counted) {
	for _, r := range ep.requests {
		if r.needsPolling() {
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
		return fault.New(fault.Internal, "the endpoint's counters are %+v, but there are %+v", got, want)
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
			return fault.New(fault.Internal, "the counter of communicator %x is %d operations, but there are %d",
				c.context, c.outstanding, outstanding)
		}
	}
	return nil
}

// checkCredit compares the eager payload that each peer is charged for with the messages that are
// kept and the one that may be arriving.
func (ep *Endpoint) checkCredit() error {
	if ep.Err() != nil {
		return nil // a failed endpoint keeps no messages
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
		if p == nil || p.Lost() {
			continue
		}
		if n, least := p.eagerIn.Waiting(), kept[p]; n < least || n > least+uint64(p.Arriving()) {
			return fault.New(fault.Internal, "rank %d is charged for %d bytes, %d are kept and %d arrive",
				p.Rank, n, least, p.Arriving())
		}
	}
	return nil
}
