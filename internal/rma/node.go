// Package rma is one-sided communication over messages: one process's end of a window, a state
// machine without I/O, threads or clock.
//
// Every operation is a message to the process whose memory it is about, this process included, and
// is carried out there, one message after the other: that is what makes accumulates atomic and what
// orders them. Messages from one process to another have to arrive in order; then an answer to a
// flush says that all operations before it are done. An origin copies what it sends, so operations
// are locally complete when they have been issued, except those with results.
//
// Node is not safe for concurrent use.
package rma

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Errors of calls that do not fit the epochs or the window. They wrap these.
var (
	ErrSync  = errors.New("the call does not fit the window's epochs")
	ErrRange = errors.New("the target's memory is not in the window")
)

// Config describes a process's window.
type Config struct {
	Rank, Size int
	Unit       int64 // bytes in a unit of displacement
	Dynamic    bool  // displacements are addresses in attached memory
	Memory     []byte
	// Across gives memory of a dynamic window that begins in one attached region and ends in
	// another, all of it attached. nil: there is none such.
	Across func(addr uint64, n int) []byte
	// Compute makes inout = inout fn in, for elements of a kind; Replace and NoOp never come here.
	Compute func(fn, kind uint8, inout, in []byte) error
}

// Operation is one call of the program's.
type Operation struct {
	Verb     Verb
	Fn, Kind uint8
	Target   int
	Disp     int64
	Data     View   // what goes there (Put, Accumulate, Fetch; Swap: new and compare value)
	There    Layout // at the target
	Result   View   // what comes back (Get, Fetch, Swap)
}

// Limits of what may be on its way to one target, in bytes: memory that others have to have for us.
const (
	markEvery = 1 << 20
	maxFlight = 4 << 20
	// of one origin that waits for the lock: it has sent more than maxFlight only by what says so
	maxKept = 2 * maxFlight
)

// Node is one process's end of a window.
type Node struct {
	cfg   Config
	peers []peer
	out   []Outgoing
	spare [][]byte
	done  []any
	runs  []Run // scratch

	pending map[uint64]pending // answers that are to come, by id
	ids     uint64

	fenced  bool
	lockAll bool
	asked   bool  // lock_all takes locks; without, it is one of MPI_MODE_NOCHECK
	access  []int // targets of MPI_Win_start; nil: none
	start   *waiter
	exposed []int // origins of MPI_Win_post
	posted  bool
	closing *waiter // MPI_Win_wait

	regions []region // by address; none overlaps another
	locks   lockTable
	stalled map[int]*backlog // of origins that wait for the lock
}

// backlog is messages that have come and wait.
type backlog struct {
	messages [][]byte
	bytes    int
}

// peer is what is known of another process.
type peer struct {
	sent, acked uint64 // operations; acked: known to be done
	// bytes of messages, and of answers to them, not known to have been taken; of them, since the
	// last flush
	flight, fresh int64
	last          uint64 // the answer that will say that most is done
	locked, asked bool   // asked: the target knows of the lock; without, it is one of MPI_MODE_NOCHECK
	granted       bool   // the target has said so
	started       bool   // in the access epoch of MPI_Win_start
	posts         int    // exposure epochs that no MPI_Win_start has met
	awaited       bool   // MPI_Win_start waits for its post, or
	completes     int    // access epochs over that no MPI_Win_wait has met
	expected      bool   // MPI_Win_wait waits for its complete
}

type region struct {
	addr uint64
	mem  []byte
}

func (r *region) end() uint64 { return r.addr + uint64(len(r.mem)) }

// Outgoing is a message to another process.
type Outgoing struct {
	To      int
	Message []byte
}

// waiter is somebody who waits for some events.
type waiter struct {
	left  int
	token any
}

// pending is an answer that is to come. It says that so many operations are done, which took so
// many bytes.
type pending struct {
	w      *waiter
	also   []*waiter // for whom all of those have to be done
	target int
	sent   uint64
	bytes  int64
	grants bool  // it is the lock
	space  Space // of a reply
	runs   []Run
}

// NewNode makes a process's end of a window.
func NewNode(cfg Config) *Node {
	n := &Node{cfg: cfg, peers: make([]peer, cfg.Size), pending: map[uint64]pending{}, stalled: map[int]*backlog{}}
	if !cfg.Dynamic {
		n.regions = []region{{0, cfg.Memory}}
	}
	return n
}

// Attach adds memory to a dynamic window; addr is what origins call its first byte.
func (n *Node) Attach(addr uint64, mem []byte) error {
	i := n.regionAt(addr)
	if i < len(n.regions) && n.regions[i].addr < addr+uint64(len(mem)) {
		return fmt.Errorf("%w: the memory is attached already", ErrRange)
	}
	n.regions = slices.Insert(n.regions, i, region{addr, mem})
	return nil
}

// Detach takes memory back that was attached at addr.
func (n *Node) Detach(addr uint64) error {
	for i, r := range n.regions {
		if r.addr == addr {
			n.regions = slices.Delete(n.regions, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("%w: no memory is attached at %#x", ErrRange, addr)
}

// regionAt gives the first region that ends after addr.
func (n *Node) regionAt(addr uint64) int {
	return sort.Search(len(n.regions), func(i int) bool { return addr < n.regions[i].end() })
}

// covered reports whether all of so much memory is in regions that follow each other without a gap,
// the first of which is number i.
func (n *Node) covered(i int, addr, size uint64) bool {
	for end := addr; i < len(n.regions) && n.regions[i].addr <= end; i++ {
		if end = n.regions[i].end(); end-addr >= size {
			return true
		}
	}
	return false
}

// Next gives the next message to send. Its memory comes back by Reuse, if at all.
func (n *Node) Next() (Outgoing, bool) {
	if len(n.out) == 0 {
		return Outgoing{}, false
	}
	o := n.out[0]
	n.out = n.out[1:]
	if len(n.out) == 0 {
		n.out = nil
	}
	return o, true
}

// Reuse gives a message's memory back.
func (n *Node) Reuse(b []byte) {
	if len(n.spare) < 16 {
		n.spare = append(n.spare, b)
	}
}

// Done gives the tokens of calls that are over.
func (n *Node) Done() []any {
	d := n.done
	n.done = nil
	return d
}

func (n *Node) buffer() []byte {
	if k := len(n.spare); k > 0 {
		b := n.spare[k-1]
		n.spare = n.spare[:k-1]
		return b[:0]
	}
	return make([]byte, 0, MaxMessage)
}

func (n *Node) send(to int, m *message) {
	b := n.buffer()
	n.out = append(n.out, Outgoing{to, append(m.appendHead(b), m.data...)})
}

// finish notes one event.
func (n *Node) finish(w *waiter) {
	if w == nil {
		return
	}
	if w.left--; w.left == 0 && w.token != nil {
		n.done = append(n.done, w.token)
	}
}

// expect makes the id of an answer.
func (n *Node) expect(p pending) uint64 {
	if p.w != nil {
		p.w.left++
	}
	n.ids++
	n.pending[n.ids] = p
	return n.ids
}
