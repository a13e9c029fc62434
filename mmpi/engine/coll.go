package engine

import (
	"runtime"
	"slices"

	"github.com/leidenzipper/zipper/collectives"
)

// Coll is one collective: of the program over a spanning communicator, or a native one over the local part. Type and Operator are handles
// of the native library, for Native only.
type Coll struct {
	collectives.Args
	Type, Operator uint64
	// Skipped is how many collectives before it this process has done without the engine since the last one: those in which it was a leaf.
	Skipped uint32
}

// collQueue is a communicator's collectives in the order they were started. One runs at a time, so that their native stages start in the same
// order in all processes.
type collQueue struct {
	waiting []*collective
	number  uint32 // of collectives started so far
}

func (q *collQueue) busy() bool { return len(q.waiting) > 0 }

// collective is one that is under way. It is the communicator that its algorithm sees.
type collective struct {
	e       *Engine
	c       *Comm
	cell    *Cell
	tag     int // its number, shifted: the stage is added
	what    Coll
	run     collectives.Runner
	scratch [][]byte
	pins    runtime.Pinner // scratch is handed to native MPI
	stages  [2]nativeColl  // the first ones: small collectives have no more
	started int            // of them
}

// maxCollective wraps the number of a collective in its tag: 23 bits of number, 8 of stage.
const maxCollective = 1<<23 - 1

// Collective starts a collective; the cell is done when it is over in this process. Buffers belong to the engine until then; counts and
// displacements too. Processes start the collectives of a communicator in the same order. Application threads only.
func (e *Engine) Collective(c *Comm, what Coll, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if e.err != nil {
		return e.err
	}
	e.layoutFor(c)
	c.colls.number += what.Skipped
	x := &collective{e: e, c: c, cell: cell, what: what, tag: int(c.colls.number&maxCollective) << 8}
	s, err := collectives.New(x, what.Args, e.collTuning)
	if err != nil {
		return failure(ErrArg, "%v", err)
	}
	c.colls.number++
	x.run = *collectives.NewRunner(s)
	cell.Error, cell.Cancelled, cell.Bytes, cell.request = 0, 0, 0, 0
	c.colls.waiting = append(c.colls.waiting, x)
	e.collCount++
	if len(c.colls.waiting) == 1 {
		e.collComms = append(e.collComms, c)
		e.advanceCollectives()
		e.writeOut()
	}
	return nil
}

// Leaf reports whether this process could do a collective by itself, without the engine, and what is to be done then; see collectives.Leaf.
func (e *Engine) Leaf(c *Comm, what Coll) (collectives.Part, bool) {
	e.lock()
	defer e.unlock()
	e.layoutFor(c)
	return collectives.Leaf(c.layout, what.Args, e.collTuning)
}

func (e *Engine) layoutFor(c *Comm) {
	if c.layout == nil {
		c.layout = e.layoutOf(c)
	}
}

func (e *Engine) layoutOf(c *Comm) *collectives.Layout {
	clusters := make([]int, len(c.world))
	for i, v := range c.world {
		clusters[i], _ = e.world.Place(int(v))
	}
	l := collectives.NewLayout(clusters, c.rank)
	if e.world.Hosts != nil {
		_, first := e.world.Place(e.world.Rank)
		hosts := make([]int, len(c.local))
		for i, r := range c.local {
			hosts[i] = int(e.world.Hosts[int(c.world[r])-first])
		}
		l.SetHosts(hosts)
	}
	return l
}

// advanceCollectives steps the first collective of every communicator.
func (e *Engine) advanceCollectives() (n int) {
	if len(e.collComms) == 0 {
		return 0
	}
	left := e.collComms[:0]
	for _, c := range e.collComms {
		q := &c.colls
		for len(q.waiting) > 0 && e.err == nil {
			x := q.waiting[0]
			left := x.run.Left()
			over, err := x.run.Step()
			n += left - x.run.Left()
			if !over {
				break
			}
			q.waiting = slices.Delete(q.waiting, 0, 1)
			x.end(CodeOf(err))
			n++
		}
		if len(q.waiting) > 0 {
			left = append(left, c)
		}
	}
	clear(e.collComms[len(left):])
	e.collComms = left
	return n
}

// end completes the collective.
func (x *collective) end(code Code) {
	x.pins.Unpin()
	for _, b := range x.scratch {
		x.e.pool.put(b)
	}
	x.e.collCount--
	x.cell.Error = int32(code)
	x.cell.finish()
	x.e.completions++
}

// failCollectives completes all collectives with an error.
func (e *Engine) failCollectives(code Code) {
	for _, c := range e.collComms {
		for _, x := range c.colls.waiting {
			x.scratch = nil // the native library may still write there
			x.end(code)
		}
		c.colls.waiting = nil
	}
	e.collComms = nil
}

func (x *collective) Layout() *collectives.Layout { return x.c.layout }

// collMessage is a send or receive of an algorithm.
type collMessage struct {
	cell Cell
	size int64 // of a receive; -1: a send
}

func (m *collMessage) Done() (bool, error) {
	if !m.cell.Done() {
		return false, nil
	}
	err := m.cell.Err()
	if err == nil && m.size >= 0 && m.cell.Bytes != m.size {
		err = failure(ErrTruncate, "collective: %d bytes came where the counts say %d", m.cell.Bytes, m.size)
	}
	return true, err
}

func (x *collective) Send(to, stage int, b []byte) (collectives.Request, error) {
	m := &collMessage{size: -1}
	if err := x.e.isend(x.c, KindCollective, b, to, x.tag|stage, false, &m.cell); err != nil {
		return nil, err
	}
	return m, nil
}

func (x *collective) Recv(from, stage int, b []byte) (collectives.Request, error) {
	m := &collMessage{size: int64(len(b))}
	if err := x.e.irecv(x.c, KindCollective, b, from, x.tag|stage, &m.cell); err != nil {
		return nil, err
	}
	return m, nil
}

func (x *collective) Reduce(in, inout []byte, count int) error {
	if err := x.e.native.ReduceLocal(in, inout, count, x.what.Type, x.what.Operator); err != nil {
		return failure(ErrOp, "%v", err)
	}
	return nil
}

func (x *collective) Scratch(n int) []byte {
	b := x.e.pool.get(n)
	if cap(b) > 0 {
		x.pins.Pin(&b[:1][0])
	}
	x.scratch = append(x.scratch, b)
	return b
}

func (x *collective) Local() collectives.Local { return local{x} }

// local is the native part.
type local struct{ x *collective }

func (l local) Rank() int { return l.x.c.layout.LocalOf[l.x.c.rank] }
func (l local) Size() int { return len(l.x.c.local) }

type nativeColl struct {
	e     *Engine
	token uint64
	over  bool
}

func (r *nativeColl) Done() (bool, error) {
	if r.over {
		return true, nil
	}
	over, err := r.e.native.CollTest(r.token)
	if over || err != nil {
		r.over = true
		r.e.nativeColls--
	}
	if err != nil {
		return true, failure(ErrInternal, "native collective: %v", err)
	}
	return over, nil
}

func (l local) start(a collectives.Args) (collectives.Request, error) {
	w := l.x.what
	a.Extent, a.Commutative = w.Extent, w.Commutative
	l.x.e.stage = Coll{Args: a, Type: w.Type, Operator: w.Operator}
	token, err := l.x.e.native.Coll(l.x.c, &l.x.e.stage)
	l.x.e.stage = Coll{}
	if err != nil {
		return nil, failure(ErrInternal, "native collective: %v", err)
	}
	l.x.e.nativeColls++
	var r *nativeColl
	if l.x.started < len(l.x.stages) {
		r = &l.x.stages[l.x.started]
		l.x.started++
	} else {
		r = new(nativeColl)
	}
	r.e, r.token = l.x.e, token
	return r, nil
}

func (l local) Barrier() (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpBarrier})
}

func (l local) Bcast(b []byte, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpBcast, Recv: b, Root: root})
}

func (l local) Gatherv(send, recv []byte, counts, displs []int64, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpGatherv, Send: send, Recv: recv, RecvCounts: counts, RecvDispls: displs, Root: root})
}

func (l local) Scatterv(send []byte, counts, displs []int64, recv []byte, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpScatterv, Send: send, SendCounts: counts, SendDispls: displs, Recv: recv, Root: root})
}

func (l local) Allgatherv(send, recv []byte, counts, displs []int64) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpAllgatherv, Send: send, Recv: recv, RecvCounts: counts, RecvDispls: displs})
}

func (l local) Alltoallv(send []byte, scounts, sdispls []int64, recv []byte, rcounts, rdispls []int64) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpAlltoallv, Send: send, SendCounts: scounts, SendDispls: sdispls, Recv: recv, RecvCounts: rcounts, RecvDispls: rdispls})
}

func (l local) Reduce(send, recv []byte, count int, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpReduce, Send: send, Recv: recv, Count: count, Root: root})
}

func (l local) Allreduce(send, recv []byte, count int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpAllreduce, Send: send, Recv: recv, Count: count})
}

func (l local) ReduceScatter(send, recv []byte, counts []int64) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpReduceScatter, Send: send, Recv: recv, RecvCounts: counts})
}

func (l local) Scan(send, recv []byte, count int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpScan, Send: send, Recv: recv, Count: count})
}

func (l local) Exscan(send, recv []byte, count int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpExscan, Send: send, Recv: recv, Count: count})
}
