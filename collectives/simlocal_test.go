package collectives

import (
	"bytes"
	"fmt"
)

// native is one native collective of a cluster. With early, a process finishes before others have
// called if MPI allows that (its data was copied at the call). Otherwise no process finishes before
// all have called, and data is read only then.
type native struct {
	kind  string
	root  int
	early bool
	args  []*nativeArgs // [local rank] its arguments; nil before its call
}

type nativeArgs struct {
	op           *simOp
	send         []byte // the buffer itself, or a copy if early
	recv         []byte
	count        int
	counts       []int64 // counts of recv, or in a scatter of send
	displs       []int64
	sendc, sendd []int64 // for alltoallv
	elements     []int64 // for reducescatter
	own          []byte  // this rank's data before anything was overwritten
	done         bool
}

type simLocal struct{ p *proc }

func (s simLocal) Rank() int { return s.p.l.LocalOf(s.p.l.Rank) }
func (s simLocal) Size() int { return s.p.l.SizeOf(s.p.l.Cluster) }

func (s simLocal) start(kind string, root int, a nativeArgs) (Request, error) {
	p, w := s.p, s.p.w
	list := &w.natives[p.l.Cluster]
	if p.calls == len(*list) {
		*list = append(*list, &native{kind, root, w.rng.Intn(2) == 0, make([]*nativeArgs, s.Size())})
	}
	n := (*list)[p.calls]
	if n.kind != kind || n.root != root {
		return nil, fmt.Errorf("native collective %d is %s root %d here, %s root %d elsewhere", p.calls, kind, root,
			n.kind, n.root)
	}
	p.calls++
	a.op = p.newOp(nil)
	inPlace := same(a.send, a.recv) || a.counts != nil && kind != "scatterv" &&
		same(a.send, block(a.recv, a.counts[s.Rank()], a.displs[s.Rank()]))
	if n.early || inPlace {
		a.send = bytes.Clone(a.send)
	}
	switch {
	case kind == "bcast" && s.Rank() == root, kind == "exscan" && s.Rank() == 0, inPlace:
	case kind == "scatterv" && a.sendc != nil && same(a.recv, block(a.send, a.sendc[s.Rank()], a.sendd[s.Rank()])):
	case a.counts != nil:
		for i := range a.counts {
			poison(block(a.recv, a.counts[i], a.displs[i]))
		}
	default:
		poison(a.recv)
	}
	if kind == "bcast" && s.Rank() == root {
		if a.send = a.recv; n.early {
			a.send = bytes.Clone(a.recv)
		}
	}
	n.args[s.Rank()] = &a
	me := s.Rank()
	w.later(func() bool { return w.finish(n, me) })
	return a.op, nil
}

// finish ends the collective for one local rank if it may end.
func (w *world) finish(n *native, me int) bool {
	all, time := true, 0
	for _, a := range n.args {
		if a == nil {
			all = false
		} else {
			time = max(time, a.op.started)
		}
	}
	root := n.args[n.root]
	mine := n.args[me]
	may := all
	if n.early {
		switch n.kind {
		case "bcast", "scatterv":
			may, time = root != nil, 0
			if may {
				time = root.op.started
			}
		case "gatherv", "reduce":
			if me != n.root {
				may, time = true, 0
			}
		case "scan", "exscan":
			may, time = true, 0
			for _, a := range n.args[:me] {
				if may = may && a != nil; a != nil {
					time = max(time, a.op.started)
				}
			}
		}
	}
	if !may {
		return false
	}
	if n.early {
		w.deliver(n, me)
	} else if !mine.done {
		for i := range n.args { // read the data of all ranks now, before any of them changes it
			n.args[i].own = bytes.Clone(n.args[i].send)
		}
		for i := range n.args {
			n.args[i].send = n.args[i].own
		}
		for i := range n.args {
			w.deliver(n, i)
			n.args[i].done = true
		}
	}
	mine.op.finish(time)
	return true
}

// deliver copies the result into the buffers of one rank.
func (w *world) deliver(n *native, me int) {
	a := n.args[me]
	fail := func(format string, v ...any) { a.op.err = fmt.Errorf(n.kind+": "+format, v...) }
	sum := func(from, to int) []byte {
		out := bytes.Clone(n.args[to-1].send)
		for i := to - 2; i >= from; i-- {
			if err := w.reduce(n.args[i].send, out, a.count); err != nil {
				fail("%v", err)
			}
		}
		return out
	}
	place := func(to, from []byte) {
		if len(to) != len(from) {
			fail("%d bytes for a place of %d", len(from), len(to))
		}
		w.largest = max(w.largest, len(from))
		copy(to, from)
	}
	switch n.kind {
	case "bcast":
		if me != n.root {
			place(a.recv, n.args[n.root].send)
		}
	case "gatherv":
		if me != n.root {
			return
		}
		fallthrough
	case "allgatherv":
		for i := range n.args {
			place(block(a.recv, a.counts[i], a.displs[i]), n.args[i].send)
		}
	case "scatterv":
		r := n.args[n.root]
		place(a.recv, block(r.send, r.sendc[me], r.sendd[me]))
	case "alltoallv":
		for i, s := range n.args {
			place(block(a.recv, a.counts[i], a.displs[i]), block(s.send, s.sendc[me], s.sendd[me]))
			if hosts := w.hosts[a.op.p.l.Cluster]; hosts[i] != hosts[me] {
				w.between += int(s.sendc[me])
			}
		}
	case "reduce":
		if me == n.root {
			place(a.recv, sum(0, len(n.args)))
		}
	case "allreduce":
		place(a.recv, sum(0, len(n.args)))
	case "reducescatter":
		from := 0
		for _, c := range a.elements[:me] {
			from += int(c) * w.extent
		}
		place(a.recv, sum(0, len(n.args))[from:][:int(a.elements[me])*w.extent])
	case "scan":
		place(a.recv, sum(0, me+1))
	case "exscan":
		if me > 0 {
			place(a.recv, sum(0, me))
		}
	}
}

func (s simLocal) Barrier() (Request, error) { return s.start("barrier", 0, nativeArgs{}) }
func (s simLocal) Bcast(b []byte, root int) (Request, error) {
	return s.start("bcast", root, nativeArgs{recv: b})
}
func (s simLocal) Gatherv(send, recv []byte, counts, displs []int64, root int) (Request, error) {
	return s.start("gatherv", root, nativeArgs{send: send, recv: recv, counts: counts, displs: displs})
}
func (s simLocal) Scatterv(send []byte, counts, displs []int64, recv []byte, root int) (Request, error) {
	return s.start("scatterv", root, nativeArgs{send: send, sendc: counts, sendd: displs, recv: recv})
}
func (s simLocal) Allgatherv(send, recv []byte, counts, displs []int64) (Request, error) {
	return s.start("allgatherv", 0, nativeArgs{send: send, recv: recv, counts: counts, displs: displs})
}
func (s simLocal) Alltoallv(send []byte, scounts, sdispls []int64, recv []byte, rcounts, rdispls []int64) (Request,
	error) {
	return s.start("alltoallv", 0, nativeArgs{send: send, sendc: scounts, sendd: sdispls, recv: recv, counts: rcounts,
		displs: rdispls})
}
func (s simLocal) Reduce(send, recv []byte, count, root int) (Request, error) {
	return s.start("reduce", root, nativeArgs{send: send, recv: recv, count: count})
}
func (s simLocal) Allreduce(send, recv []byte, count int) (Request, error) {
	return s.start("allreduce", 0, nativeArgs{send: send, recv: recv, count: count})
}
func (s simLocal) ReduceScatter(send, recv []byte, counts []int64) (Request, error) {
	total := 0
	for _, c := range counts {
		total += int(c)
	}
	return s.start("reducescatter", 0, nativeArgs{send: send, recv: recv, count: total, elements: counts})
}
func (s simLocal) Scan(send, recv []byte, count int) (Request, error) {
	return s.start("scan", 0, nativeArgs{send: send, recv: recv, count: count})
}
func (s simLocal) Exscan(send, recv []byte, count int) (Request, error) {
	return s.start("exscan", 0, nativeArgs{send: send, recv: recv, count: count})
}
