package engine

import (
	"fmt"

	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// state is where a request stands. The frames that move a request from state to state:
//
//	sender     announced ─CTS→ clear ─last segment written→ sent ─Fin→ over      announced ─Fin→ over (nothing to send)
//	           announced ─(cancel)→ cancelling ─CancelReply yes→ over, ─CTS→ clear
//	           waiting ─Matched→ over                                            (synchronous eager)
//	receiver   posted ─Eager→ landing ─last byte→ over                           posted ─RTS→ cleared ─all segments→ over
//	           posted ─native message→ native ─test→ over
type state uint8

const (
	idle         state = iota // not in use
	announced                 // RTS sent; no receive has met it as far as we know
	cancelling                // like announced, and Cancel sent
	clear2send                // CTS came: segments go out as credit allows
	sent                      // the last segment is written; the buffer is the program's again at Fin
	waiting                   // synchronous eager message sent, not known to be matched
	posted                    // receive in the posted list
	landingState              // receive matched, its eager payload is on its way from the link
	cleared                   // receive matched, CTS sent, segments land
	native                    // receive handed to native MPI
)

var stateNames = [...]string{"idle", "announced", "cancelling", "clear to send", "sent", "waiting", "posted", "landing", "cleared", "native"}

func (s state) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint16{
	idle:         1<<announced | 1<<waiting | 1<<posted | 1<<landingState | 1<<cleared | 1<<native,
	announced:    1<<cancelling | 1<<clear2send | 1<<idle,
	cancelling:   1<<clear2send | 1<<idle,
	clear2send:   1 << sent,
	sent:         1 << idle,
	waiting:      1 << idle,
	posted:       1<<landingState | 1<<cleared | 1<<native | 1<<idle,
	landingState: 1 << idle,
	cleared:      1 << idle,
	native:       1 << idle,
}

// remote reports whether somebody in another cluster has to act for the request to end, or native messages
// must be probed for it (posted).
func (s state) remote() bool { return s != idle && s != native }

// keepsBusy reports whether a thread must not block in native MPI while the request stands: not for those of windows, which the background
// thread serves too; who waits for an answer counts by himself (window.go).
func (r *Request) keepsBusy() bool { return r.state.remote() && r.comm.window == nil }

// Request is one outstanding operation. Requests are pooled; a handle names one for as long as it is in use.
type Request struct {
	state state
	index uint32 // in Engine.requests
	gen   uint32 // raised at each release, so old handles are dead
	comm  *Comm
	kind  int
	cell  *Cell
	buf   []byte

	// A send: where to, and what. A receive: the pattern, then what it met.
	peer    *peer
	source  int // rank in the communicator or AnySource
	tag     int // or AnyTag
	size    int64
	moved   int64      // bytes given to a rail, or landed
	writing int        // segments being written
	cover   flow.Cover // of a receive: what has landed
	clear   int64      // bytes that the CTS asked for
	remote  uint64     // the other end's request

	pins     []pin // what links know of buf (place.go)
	expected int64 // of a receive: up to where
	copied   bool  // nothing more of buf is made known to links

	prev, next *Request // in the posted list, or (next) in a peer's bulk queue
	probed     bool     // native: came by Imrecv and cannot be cancelled
}

// Cell is the owner's end of the request.
func (r *Request) Cell() *Cell { return r.cell }

// Comm is the request's communicator.
func (r *Request) Comm() *Comm { return r.comm }

// handle names the request on the wire and in its cell; never 0.
func (r *Request) handle() uint64 { return uint64(r.gen)<<32 | uint64(r.index+1) }

// to moves the request to the next state.
func (e *Engine) to(r *Request, s state) {
	if legal[r.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("engine: request goes from %v to %v", r.state, s))
	}
	if r.keepsBusy() {
		e.active--
	}
	r.state = s
	if r.keepsBusy() {
		e.active++
	}
}

// request takes a request from the pool.
func (e *Engine) request(c *Comm, kind int, buf []byte, cell *Cell) *Request {
	var r *Request
	if n := len(e.idle); n > 0 {
		r = e.idle[n-1]
		e.idle = e.idle[:n-1]
	} else {
		r = &Request{index: uint32(len(e.requests)), gen: 1}
		e.requests = append(e.requests, r)
	}
	r.comm, r.kind, r.buf, r.cell = c, kind, buf, cell
	c.outstanding++
	cell.Error, cell.Cancelled, cell.Bytes = 0, 0, 0
	cell.request = r.handle()
	return r
}

// find gives the request of a handle that came from outside; nil if there is none.
func (e *Engine) find(handle uint64) *Request {
	i := handle & (1<<32 - 1)
	if i == 0 || i > uint64(len(e.requests)) {
		return nil
	}
	r := e.requests[i-1]
	if r.state == idle || r.gen != uint32(handle>>32) {
		return nil
	}
	return r
}

// over completes a request whose cell is filled in, and gives it back to the pool.
func (e *Engine) over(r *Request) {
	e.to(r, idle)
	cell := r.cell
	r.comm.outstanding--
	r.reset()
	e.idle = append(e.idle, r)
	cell.finish()
	e.completions++
}

// reset makes the request a new one.
func (r *Request) reset() {
	r.unpin()
	*r = Request{index: r.index, gen: r.gen + 1, pins: r.pins}
}

// received completes a receive from another cluster.
func (e *Engine) received(r *Request) {
	e.recordReceived(r)
	c := r.cell
	c.Source, c.Tag, c.Bytes = int32(r.source), int32(r.tag), r.moved
	if r.size > r.moved {
		c.Error = int32(ErrTruncate)
	}
	e.over(r)
}
