package coll

import (
	"runtime"
	"unsafe"

	"github.com/leidenzipper/zipper/collectives"
)

// A native collective cannot be cancelled. If a cluster is lost meanwhile, the collective of the
// program ends, and its native stages are left behind: they may end much later, or never. So in a
// job that goes on when a cluster is lost, native stages work on memory of the engine. It gets a
// copy of the program's memory when the stage begins, and the result is copied back when it ends.

// memory is the engine's memory for a native stage.
type memory struct {
	set  *Set
	pins runtime.Pinner
	bufs [][]byte // the memory, from the pool
	back []copied // the parts of the program's memory that the stage writes
}

// copied is a part of the program's memory, and its copy.
type copied struct{ program, engine []byte }

// take returns memory of n bytes.
func (m *memory) take(n int) []byte {
	if n == 0 {
		return nil
	}
	b := m.set.ep.Links().Pool.Get(n)
	m.pins.Pin(&b[0])
	m.bufs = append(m.bufs, b)
	return b
}

// reads returns a copy of memory that the stage reads.
func (m *memory) reads(b []byte) []byte {
	c := m.take(len(b))
	copy(c, b)
	return c
}

// writes returns memory in place of b, which the stage writes. It has b's content, because a stage
// may leave gaps between the parts of an element as they are.
func (m *memory) writes(b []byte) []byte {
	c := m.reads(b)
	m.back = append(m.back, copied{b, c})
	return c
}

// blocks returns memory in place of the blocks of b, and their displacements there. The stage reads
// the blocks, or writes them.
func (m *memory) blocks(b []byte, counts, displs []int64, writes bool) ([]byte, []int64) {
	if counts == nil {
		return nil, displs
	}
	at, n := make([]int64, len(displs)), int64(0)
	for i, k := range counts {
		at[i] = n
		n += k
	}
	all := m.take(int(n))
	for i, k := range counts {
		if k == 0 {
			continue
		}
		c := copied{b[displs[i]:][:k], all[at[i]:][:k]}
		if writes {
			m.back = append(m.back, c)
		} else {
			copy(c.engine, c.program)
		}
	}
	return all, at
}

// end copies back what the stage has written, unless it was left behind, and frees the memory.
func (m *memory) end(behind bool) {
	if m == nil {
		return
	}
	if !behind {
		for _, c := range m.back {
			copy(c.program, c.engine)
		}
	}
	m.pins.Unpin()
	for _, b := range m.bufs {
		m.set.ep.Links().Pool.Put(b)
	}
	m.bufs, m.back = nil, nil
}

// apart replaces the buffers of a stage by memory of the engine.
func (l local) apart(a *collectives.Args) *memory {
	m := &memory{set: l.x.set}
	root := a.Root == l.Rank()
	switch a.Op {
	case collectives.OpBarrier:
	case collectives.OpBcast:
		if root {
			a.Recv = m.reads(a.Recv)
		} else {
			a.Recv = m.writes(a.Recv)
		}
	case collectives.OpGatherv, collectives.OpAllgatherv:
		a.Send = m.reads(a.Send)
		a.Recv, a.RecvDispls = m.blocks(a.Recv, a.RecvCounts, a.RecvDispls, true)
	case collectives.OpScatterv:
		a.Send, a.SendDispls = m.blocks(a.Send, a.SendCounts, a.SendDispls, false)
		a.Recv = m.writes(a.Recv)
	case collectives.OpAlltoallv:
		a.Send, a.SendDispls = m.blocks(a.Send, a.SendCounts, a.SendDispls, false)
		a.Recv, a.RecvDispls = m.blocks(a.Recv, a.RecvCounts, a.RecvDispls, true)
	default:
		m.reduction(a, root, l.Rank() == 0)
	}
	return m
}

// reduction is the part of apart for reductions. Their two buffers stay one if they are one.
func (m *memory) reduction(a *collectives.Args, root, first bool) {
	n, own := a.Count*a.Extent, a.Count*a.Extent
	if a.Op == collectives.OpReduceScatter {
		n = 0
		for _, k := range a.RecvCounts {
			n += int(k) * a.Extent
		}
		own = len(a.Recv)
	}
	send, recv := a.Send[:min(n, len(a.Send))], a.Recv[:min(own, len(a.Recv))]
	inPlace := unsafe.SliceData(send) == unsafe.SliceData(recv)
	a.Send, a.Recv = nil, nil
	switch {
	case a.Op == collectives.OpReduce && !root:
	case a.Op == collectives.OpExscan && first: // it is not written
		a.Recv = m.reads(recv)
	default:
		a.Recv = m.writes(recv)
	}
	if a.Send = a.Recv; !inPlace || a.Recv == nil {
		a.Send = m.reads(send)
	}
}
