// Package rma implements one-sided communication over messages: one process's end of a window, a
// state machine without I/O, threads or clock.
//
// Every operation is a message to the process that owns the memory, including this process, and is
// carried out there, one message after the other. That makes accumulates atomic and ordered.
// Messages from one process to another must arrive in order, so an answer to a flush means that all
// operations before it are done. An origin copies the data that it sends, so operations are locally
// complete when they have been issued, except those with results.
//
// Node is not safe for concurrent use.
package rma

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// These are the errors of calls that do not fit the epochs or the window. The returned errors wrap
// them.
var (
	ErrSync  = errors.New("the call does not fit the window's epochs")
	ErrRange = errors.New("the target's memory is not in the window")
)

// Config describes a process's window.
type Config struct {
	Rank, Size int
	Unit       int64 // bytes of a displacement unit
	Dynamic    bool  // whether displacements are addresses in attached memory
	Memory     []byte
	// Device says that Memory is that of a device, which only Copy can read and write.
	Device bool
	// Copy copies between memory of which one side is that of a device. It is nil if no memory is.
	Copy func(to, from []byte) error
	// Across returns memory of a dynamic window that begins in one attached region and ends in
	// another, all of it attached. It is nil if that cannot happen.
	Across func(addr uint64, n int) []byte
	// Compute sets inout = inout fn in, for elements of a kind. It is never called for Replace and
	// NoOp.
	Compute func(fn, kind uint8, inout, in []byte) error
	// Recode converts elements of a kind in place: from the format of memory to that between
	// processes, or back with in. It is nil if these are equal.
	Recode func(kind uint8, b []byte, in bool)
}

// Operation is one call of the program.
type Operation struct {
	Verb     Verb
	Fn, Kind uint8
	Target   int
	Disp     int64
	// Data is the data for the target (Put, Accumulate, Fetch; for Swap the new and the compare
	// value).
	Data   View
	There  Layout // layout at the target
	Result View   // place of the result (Get, Fetch, Swap)
}

// These limits bound the messages in flight to one target, in bytes: memory that other processes
// need for them.
const (
	markEvery = 1 << 20
	maxFlight = 4 << 20
	// maxKept bounds the messages of one origin that waits for the lock. Only messages that tell
	// the target about the lock can exceed maxFlight.
	maxKept = 2 * maxFlight
)

// Node is one process's end of a window.
type Node struct {
	cfg   Config
	peers []peer
	out   []Outgoing
	spare [][]byte
	done  []any
	runs  []Run // scratch space

	pending map[uint64]pending // answers that have not arrived, by id
	ids     uint64

	fenced  bool
	lockAll bool
	// asked says that lock_all requests locks. Without it lock_all was called with
	// MPI_MODE_NOCHECK.
	asked   bool
	access  []int // targets of MPI_Win_start; nil if there are none
	start   *waiter
	exposed []int // origins of MPI_Win_post
	posted  bool
	closing *waiter // waiter of MPI_Win_wait

	regions []region // sorted by address, without overlap
	locks   lockTable
	stalled map[int]*backlog // messages of origins that wait for the lock
}

// backlog has messages that have arrived and wait.
type backlog struct {
	messages [][]byte
	bytes    int
}

// peer is the state of the communication with another process.
type peer struct {
	// sent counts the messages of operations, acked those that are known to be done.
	sent, acked uint64
	// flight is the number of bytes of messages, and of answers to them, that may not have been
	// received. fresh is the part of it since the last message that asked for an answer.
	flight, fresh int64
	last          uint64 // id of the answer that covers most operations
	// locked says that this process holds the target's lock. asked says that the target knows of
	// it; without it the lock was taken with MPI_MODE_NOCHECK.
	locked, asked bool
	granted       bool // the target has confirmed the lock
	started       bool // the target is in the access epoch of MPI_Win_start
	posts         int  // exposure epochs that no MPI_Win_start has used yet
	awaited       bool // MPI_Win_start waits for its post
	completes     int  // finished access epochs that no MPI_Win_wait has seen yet
	expected      bool // MPI_Win_wait waits for its complete
}

type region struct {
	addr   uint64
	mem    []byte
	device bool // whether mem is memory of a device
}

func (r *region) end() uint64 { return r.addr + uint64(len(r.mem)) }

// Outgoing is a message to another process.
type Outgoing struct {
	To      int
	Message []byte
}

// waiter waits for a number of events.
type waiter struct {
	left  int
	token any
}

// pending is an answer that has not arrived. It covers a number of operations and their bytes.
type pending struct {
	w      *waiter
	also   []*waiter // further waiters for all of those operations
	target int
	sent   uint64
	bytes  int64
	grants bool  // the answer grants the lock
	space  Space // place of a reply
	runs   []Run
	kind   uint8 // kind of the reply's elements
}

// recode calls Recode, if formats differ.
func (c *Config) recode(kind uint8, b []byte, in bool) {
	if c.Recode != nil {
		c.Recode(kind, b, in)
	}
}

// NewNode creates a process's end of a window.
func NewNode(cfg Config) *Node {
	n := &Node{cfg: cfg, peers: make([]peer, cfg.Size), pending: map[uint64]pending{}, stalled: map[int]*backlog{}}
	if !cfg.Dynamic {
		n.regions = []region{{0, cfg.Memory, cfg.Device}}
	}
	return n
}

// Attach adds memory to a dynamic window. addr is the address of its first byte for origins. device
// says that it is memory of a device.
func (n *Node) Attach(addr uint64, mem []byte, device bool) error {
	i := n.regionAt(addr)
	if i < len(n.regions) && n.regions[i].addr < addr+uint64(len(mem)) {
		return fmt.Errorf("%w: the memory is attached already", ErrRange)
	}
	n.regions = slices.Insert(n.regions, i, region{addr, mem, device})
	return nil
}

// Detach removes memory that was attached at addr.
func (n *Node) Detach(addr uint64) error {
	for i, r := range n.regions {
		if r.addr == addr {
			n.regions = slices.Delete(n.regions, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("%w: no memory is attached at %#x", ErrRange, addr)
}

// regionAt returns the index of the first region that ends after addr.
func (n *Node) regionAt(addr uint64) int {
	return sort.Search(len(n.regions), func(i int) bool { return addr < n.regions[i].end() })
}

// covered reports whether size bytes from addr are in adjacent regions without a gap, the first of
// which is region i.
func (n *Node) covered(i int, addr, size uint64) bool {
	for end := addr; i < len(n.regions) && n.regions[i].addr <= end; i++ {
		if end = n.regions[i].end(); end-addr >= size {
			return true
		}
	}
	return false
}

// Next returns the next message to send. Its memory may be returned by Reuse.
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

// Reuse gives the memory of a message that has been sent back to the node.
func (n *Node) Reuse(b []byte) {
	if len(n.spare) < 16 {
		n.spare = append(n.spare, b)
	}
}

// Done returns the tokens of calls that have completed.
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

// finish counts one event of a waiter.
func (n *Node) finish(w *waiter) {
	if w == nil {
		return
	}
	if w.left--; w.left == 0 && w.token != nil {
		n.done = append(n.done, w.token)
	}
}

// expect registers an answer and returns its id.
func (n *Node) expect(p pending) uint64 {
	if p.w != nil {
		p.w.left++
	}
	n.ids++
	n.pending[n.ids] = p
	return n.ids
}
