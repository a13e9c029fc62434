package pt2pt

import (
	"fmt"
	"sync/atomic"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// state is where a request stands. The frames that move a request from state to state:
//
//	a send      announced ─CTS→ rndvSend ─last segment written→ sent ─Fin→ over
//	            announced ─Fin→ over                              (nothing to send)
//	            announced ─(cancel)→ cancelling ─CancelReply yes→ over, ─CTS→ rndvSend
//	            waiting ─Matched→ over                            (synchronous eager)
//	            any ─the receiver is lost→ over
//	a receive   posted ─Eager→ eagerRecv ─last byte→ over
//	            posted ─RTS→ rndvRecv ─all segments→ over
//	            posted ─native message→ native ─test→ over
//	            any but native ─the sender is lost→ over
type state uint8

const (
	idle       state = iota // not in use
	announced               // RTS sent; no receive has met it as far as we know
	cancelling              // like announced, and Cancel sent
	rndvSend                // CTS came: segments go out as credit allows
	sent                    // the last segment is written; the buffer is the program's again at Fin
	waiting                 // synchronous eager message sent, not known to be matched
	posted                  // receive in the posted queue
	eagerRecv               // receive matched, its eager payload is on its way from the link
	rndvRecv                // receive matched, CTS sent, segments land
	native                  // receive handed to native MPI
)

var stateNames = [...]string{"idle", "announced", "cancelling", "rndvSend", "sent", "waiting",
	"posted", "eagerRecv", "rndvRecv", "native"}

func (s state) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint16{
	idle:       1<<announced | 1<<waiting | 1<<posted | 1<<eagerRecv | 1<<rndvRecv | 1<<native,
	announced:  1<<cancelling | 1<<rndvSend | 1<<idle,
	cancelling: 1<<rndvSend | 1<<idle,
	rndvSend:   1<<sent | 1<<idle,
	sent:       1 << idle,
	waiting:    1 << idle,
	posted:     1<<eagerRecv | 1<<rndvRecv | 1<<native | 1<<idle,
	eagerRecv:  1 << idle,
	rndvRecv:   1 << idle,
	native:     1 << idle,
}

// remote reports whether a process in another cluster has to act for the request to end, or native
// messages must be probed for it (posted).
func (s state) remote() bool { return s != idle && s != native }

// needsPolling reports whether a thread must not block in native MPI while the request stands. It
// returns false for requests of communicators in the background; a caller that waits for one of
// those calls Endpoint.Hold.
func (r *Request) needsPolling() bool { return r.state.remote() && !r.comm.Background }

// Request is one outstanding operation. Requests are pooled; a handle names one for as long as it
// is in use.
type Request struct {
	state state
	index uint32 // the index in Endpoint.requests
	gen   uint32 // the generation, raised at each release so that old handles are stale
	comm  *Comm
	kind  int    // the kind of traffic
	cell  *Cell  // the owner's end
	buf   []byte // the memory that the caller gave

	// A receive has its pattern in source and tag, and the message's envelope once it is matched.
	peer   *peer  // the receiver of a send; the sender of a matched message
	source int    // the sender's rank in the communicator, or AnySource
	tag    int    // the tag of a receive, or AnyTag
	size   int64  // the size of a matched message in bytes
	remote uint64 // the handle of the send that a receive has cleared

	asks bool        // whether the send is announced, and counted in peer.asking
	out  link.Source // the bytes of a send that was cleared
	in   link.Sink   // the buffer of a receive that has cleared its send

	node   list.Node[*Request] // the entry in the posted queue
	sorted list.Node[*Request] // the entry in the list of its pattern if the posted queue is long
	local  list.Node[*Request] // the entry in Comm.locals
	order  uint64              // the position in the order of posting
	fixed  bool                // whether the receive in native MPI has a message, or was cancelled already
}

// Cell returns the owner's end of the request.
func (r *Request) Cell() *Cell { return r.cell }

// Comm returns the request's communicator.
func (r *Request) Comm() *Comm { return r.comm }

// Pattern returns a receive's pattern: a rank of the communicator or AnySource, and a tag or
// AnyTag.
func (r *Request) Pattern() (source, tag int) { return r.source, r.tag }

// String describes the message that is under way to the user: its size in bytes, the other rank,
// the tag and the communicator.
func (r *Request) String() string {
	what := "message"
	if r.kind == KindCollective {
		what = "part of a collective"
	}
	comm := "MPI_COMM_WORLD"
	if r.comm.context != WorldContext {
		comm = fmt.Sprintf("a communicator of %d processes", r.comm.size)
	}
	if r.state == eagerRecv || r.state == rndvRecv {
		return fmt.Sprintf("a %s of %d bytes from rank %d with tag %d in %s", what, r.size, r.source, r.tag, comm)
	}
	return fmt.Sprintf("a %s of %d bytes to virtual rank %d in %s", what, len(r.buf), r.peer.Rank, comm)
}

// Buffer returns the memory that was given with the request.
func (r *Request) Buffer() []byte { return r.buf }

// handle returns the name of the request on the wire and in its cell, which is never 0.
func (r *Request) handle() uint64 { return uint64(r.gen)<<32 | uint64(r.index+1) }

// to moves the request to the next state.
func (r *Request) to(s state) {
	if legal[r.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("engine: request goes from %v to %v", r.state, s))
	}
	ep := r.comm.ep
	if r.needsPolling() {
		ep.active--
	}
	r.state = s
	if r.needsPolling() {
		ep.active++
	}
}

// request takes a request from the pool.
func (ep *Endpoint) request(c *Comm, kind int, buf []byte, cell *Cell) *Request {
	var r *Request
	if n := len(ep.free); n > 0 {
		r = ep.free[n-1]
		ep.free = ep.free[:n-1]
	} else {
		r = &Request{index: uint32(len(ep.requests)), gen: 1}
		r.node.Of, r.local.Of = r, r
		ep.requests = append(ep.requests, r)
	}
	r.comm, r.kind, r.buf, r.cell = c, kind, buf, cell
	c.outstanding++
	cell.Error, cell.Cancelled, cell.Bytes = 0, 0, 0
	cell.request = r.handle()
	return r
}

// find returns the request with a handle that came from outside, or nil if there is none.
func (ep *Endpoint) find(handle uint64) *Request {
	i := handle & (1<<32 - 1)
	if i == 0 || i > uint64(len(ep.requests)) {
		return nil
	}
	r := ep.requests[i-1]
	if r.state == idle || r.gen != uint32(handle>>32) {
		return nil
	}
	return r
}

// over completes a request whose cell is filled in, and returns it to the pool.
func (r *Request) over() {
	r.to(idle)
	r.release()
}

// release returns a request to the pool and finishes its cell.
func (r *Request) release() {
	ep := r.comm.ep
	cell := r.cell
	r.comm.outstanding--
	if r.asks {
		r.asks = false
		r.peer.asking--
	}
	r.out.Release()
	r.in.Release()
	r.state, r.gen, r.fixed = idle, r.gen+1, false
	r.comm, r.cell, r.buf, r.peer, r.out.Buf, r.in.Buf = nil, nil, nil, nil, nil, nil
	ep.free = append(ep.free, r)
	cell.Finish()
	ep.Completions++
}

// fail ends a request with an error, in any state. It must not be in a queue.
func (r *Request) fail(code fault.Code) {
	r.cell.Error = int32(code)
	if r.state >= posted {
		r.cell.Source, r.cell.Tag = int32(r.source), int32(r.tag)
	}
	r.over()
}

// park tells the owner of a posted receive that its sender may be lost. The receive stays posted,
// with a cell of its own, until Resume.
func (r *Request) park() {
	ep := r.comm.ep
	if ep.parked[r.handle()] != nil {
		return
	}
	cell := r.cell
	own := &Cell{Owner: cell.Owner, Stage: cell.Stage, request: cell.request}
	ep.keep(r.handle(), own)
	r.cell = own
	cell.Error, cell.Source, cell.Tag = int32(fault.ProcFailedPending), AnySource, int32(r.tag)
	atomic.StoreUint32(&cell.done, 1) // it keeps its request, for Resume
	ep.Completions++
}

// answers makes a receive that was told to its owner tell that cell again when it ends.
func (r *Request) answers(cell *Cell) {
	r.cell = cell
	atomic.StoreUint32(&cell.done, 0)
}

// received completes a receive from another cluster of n bytes.
func (r *Request) received(n int64) {
	ep := r.comm.ep
	if ep.recorder != nil && r.comm.context != controlContext {
		ep.recorder.Arrived(ep.links.Now(), r.peer.Rank)
	}
	c := r.cell
	c.Source, c.Tag, c.Bytes = int32(r.source), int32(r.tag), n
	if r.size > n {
		c.Error, c.Sent = int32(fault.Truncate), r.size
	}
	r.over()
}
