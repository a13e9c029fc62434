package coll

import (
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// This file has the native nonblocking collectives of an algorithm, over the communicator's local
// part.

// local implements collectives.Local.
type local struct{ x *collective }

func (l local) Rank() int { return l.x.q.layout.LocalOf(l.x.q.c.Rank()) }
func (l local) Size() int { return l.x.q.c.LocalSize() }

// nativeStage is a native collective under way.
type nativeStage struct {
	set    *Set
	token  uint64
	over   bool
	memory *memory // the engine's memory that it works on; nil: it works on the program's
}

func (r *nativeStage) Done() (bool, error) {
	if r.over {
		return true, nil
	}
	over, err := r.set.native.CollTest(r.token)
	if over || err != nil {
		r.over = true
		r.set.natives--
		r.memory.end(false)
	}
	if err != nil {
		return true, nativeFailed(err)
	}
	return over, nil
}

// nativeFailed returns the error of a collective whose native stage has failed with err. It keeps
// the code of err, by which the program gets the error class.
func nativeFailed(err error) error {
	return fault.New(fault.CodeOf(err), "native collective: %v", err)
}

func (l local) start(a collectives.Args) (collectives.Request, error) {
	w := l.x.what
	a.Extent, a.Commutative = w.Extent, w.Commutative
	var m *memory
	if l.x.set.onLoss {
		m = l.apart(&a)
	}
	l.x.set.stage = Operation{Args: a, Type: w.Type, Operator: w.Operator}
	token, err := l.x.set.native.Coll(l.x.q.c, &l.x.set.stage)
	l.x.set.stage = Operation{}
	if err != nil {
		m.end(true)
		return nil, nativeFailed(err)
	}
	l.x.set.natives++
	var r *nativeStage
	if l.x.started < len(l.x.stages) {
		r = &l.x.stages[l.x.started]
		l.x.started++
	} else {
		r = new(nativeStage)
	}
	r.set, r.token, r.memory = l.x.set, token, m
	if m != nil {
		l.x.keepStage(r)
	}
	return r, nil
}

func (l local) Barrier() (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpBarrier})
}

func (l local) Bcast(b []byte, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpBcast, Recv: b, Root: root})
}

func (l local) Gatherv(send, recv []byte, counts, displs []int64, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpGatherv,
		Send: send, Recv: recv, RecvCounts: counts, RecvDispls: displs, Root: root})
}

func (l local) Scatterv(send []byte, counts, displs []int64, recv []byte, root int) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpScatterv,
		Send: send, SendCounts: counts, SendDispls: displs, Recv: recv, Root: root})
}

func (l local) Allgatherv(send, recv []byte, counts, displs []int64) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpAllgatherv,
		Send: send, Recv: recv, RecvCounts: counts, RecvDispls: displs})
}

func (l local) Alltoallv(send []byte, scounts, sdispls []int64,
	recv []byte, rcounts, rdispls []int64) (collectives.Request, error) {
	return l.start(collectives.Args{Op: collectives.OpAlltoallv,
		Send: send, SendCounts: scounts, SendDispls: sdispls, Recv: recv, RecvCounts: rcounts, RecvDispls: rdispls})
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
