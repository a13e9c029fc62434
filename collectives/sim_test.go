package collectives

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
)

// world simulates processes in clusters. Messages between clusters and native collectives finish in
// an order that the seed decides, as early or as late as MPI allows. Time is virtual: a crossing
// takes 1, everything else 0.
type world struct {
	rng      *rand.Rand
	procs    []*proc
	pipes    map[pipe]*queue
	natives  [][]*native   // [cluster] native collectives in order of call
	pending  []func() bool // possible events; true means that the event happened and is over
	crossed  [][]int       // [from cluster][to cluster] payload bytes
	messages [][]int
	hosts    [][]int // [cluster][local rank]
	between  int     // bytes of native alltoalls between hosts
	largest  int     // bytes of the largest block of a native collective
	eager    bool    // every send finishes at once, as with credit granted beforehand
	op       func(in, inout []byte)
	extent   int
}

type pipe struct{ from, to, stage int }

type queue struct{ sends, recvs []*simOp }

// simOp is a request: of a message or of a native collective.
type simOp struct {
	p       *proc
	buf     []byte
	started int // virtual time of its start
	over    bool
	time    int  // virtual time of its end
	shorter bool // the message may be shorter than the buffer
	err     error
}

func (o *simOp) Done() (bool, error) {
	if o.over {
		o.p.clock = max(o.p.clock, o.time)
	}
	return o.over, o.err
}

func (o *simOp) finish(time int) { o.over, o.time = true, max(time, o.started) }

type proc struct {
	w       *world
	l       *Layout
	clock   int
	calls   int // number of native collectives so far
	runner  *Runner
	ops     []*simOp // all requests so far
	largest int      // largest amount of scratch memory, in bytes
	fail    error    // error of the next send
	over    bool
	err     error
}

// newOp returns an operation of this process that starts now.
func (p *proc) newOp(buf []byte) *simOp {
	o := &simOp{p: p, buf: buf, started: p.clock}
	p.ops = append(p.ops, o)
	return o
}

// idle reports whether all operations of the process have finished.
func (p *proc) idle() bool {
	for _, o := range p.ops {
		if !o.over {
			return false
		}
	}
	return true
}

// hostsOf places a cluster's ranks on hosts: all on one, two neighbours on each, or alternating on
// two.
func hostsOf(ranks int, seed int64) []int {
	hosts := make([]int, ranks)
	for r := range hosts {
		hosts[r] = []int{0, r / 2, r % 2}[(seed%3+3)%3]
	}
	return hosts
}

func newWorld(clusterOf []int, seed int64) *world {
	w := &world{rng: rand.New(rand.NewSource(seed)), pipes: map[pipe]*queue{}}
	for r := range clusterOf {
		l := NewLayout(clusterOf, r)
		l.SetHosts(hostsOf(len(l.mine()), seed))
		w.procs = append(w.procs, &proc{w: w, l: l})
	}
	for _, size := range w.procs[0].l.Sizes {
		w.hosts = append(w.hosts, hostsOf(size, seed))
	}
	c := w.procs[0].l.Clusters()
	w.natives = make([][]*native, c)
	for range c {
		w.crossed, w.messages = append(w.crossed, make([]int, c)), append(w.messages, make([]int, c))
	}
	return w
}

// run steps all processes until they have finished. It fails if no event is possible any more or
// something is left over.
func (w *world) run() error {
	for {
		left := false
		for _, i := range w.rng.Perm(len(w.procs)) {
			p := w.procs[i]
			if !p.over && (w.rng.Intn(3) > 0 || len(w.pending) == 0) {
				p.over, p.err = p.runner.Step()
				if p.err != nil {
					return fmt.Errorf("rank %d: %w", p.l.Rank, p.err)
				}
				if p.over && !p.idle() {
					return fmt.Errorf("rank %d is over while its operations use its buffers", p.l.Rank)
				}
			}
			left = left || !p.over
		}
		if !left {
			break
		}
		happened := false
		w.rng.Shuffle(len(w.pending), func(i, j int) { w.pending[i], w.pending[j] = w.pending[j], w.pending[i] })
		todo := w.pending
		w.pending = nil
		for _, f := range todo {
			if w.rng.Intn(4) == 0 || !f() {
				w.pending = append(w.pending, f)
			} else {
				happened = true
			}
		}
		if happened {
			continue
		}
		// No event was chosen by chance: try all.
		if w.any() {
			continue
		}
		progress := false
		for _, p := range w.procs {
			before := len(p.runner.rounds)
			if !p.over {
				p.over, p.err = p.runner.Step()
				progress = progress || p.over || len(p.runner.rounds) != before
			}
		}
		if !progress && !w.any() {
			return fmt.Errorf("deadlock")
		}
	}
	for k, q := range w.pipes {
		if len(q.sends)+len(q.recvs) > 0 {
			return fmt.Errorf("%d sends and %d receives left in %+v", len(q.sends), len(q.recvs), k)
		}
	}
	for _, p := range w.procs {
		if n := len(w.natives[p.l.Cluster]); p.calls != n {
			return fmt.Errorf("rank %d made %d of its cluster's %d native collectives", p.l.Rank, p.calls, n)
		}
	}
	return nil
}

// any makes the first possible event happen.
func (w *world) any() bool {
	for i, f := range w.pending {
		if f() {
			w.pending = slices.Delete(w.pending, i, i+1)
			return true
		}
	}
	return false
}

func (w *world) later(f func() bool) { w.pending = append(w.pending, f) }

func (p *proc) Layout() *Layout { return p.l }
func (p *proc) Local() Local    { return simLocal{p} }

func (p *proc) Scratch(n int) []byte {
	p.largest = max(p.largest, n)
	b := make([]byte, n)
	poison(b)
	return b
}

func poison(b []byte) {
	if len(b) > 0 {
		b[0] = 0xEE
		for n := 1; n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}
}

func (p *proc) Reduce(in, inout []byte, count int) error {
	return p.w.reduce(in, inout, count)
}

// Recode implements Comm. The format between clusters is the complement of that in memory.
func (p *proc) Recode(b []byte, count int, _ bool) error {
	if len(b) != count*p.w.extent {
		return fmt.Errorf("recode of %d elements with %d bytes", count, len(b))
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return nil
}

func (w *world) reduce(in, inout []byte, count int) error {
	if len(in) != count*w.extent || len(inout) != count*w.extent {
		return fmt.Errorf("reduce of %d elements with %d and %d bytes", count, len(in), len(inout))
	}
	w.op(in, inout)
	return nil
}

func (w *world) queue(k pipe) *queue {
	if w.pipes[k] == nil {
		w.pipes[k] = &queue{}
	}
	return w.pipes[k]
}

func (p *proc) Send(to, stage int, b []byte) (Request, error) {
	w := p.w
	if p.l.ClusterOf(to) == p.l.Cluster {
		return nil, fmt.Errorf("message to local rank %d", to)
	}
	w.crossed[p.l.Cluster][p.l.ClusterOf(to)] += len(b)
	w.messages[p.l.Cluster][p.l.ClusterOf(to)]++
	if err := p.fail; err != nil {
		p.fail = nil
		return nil, err
	}
	s, k := p.newOp(b), pipe{p.l.Rank, to, stage}
	if w.eager || w.rng.Intn(2) == 0 {
		s.buf = bytes.Clone(b)
		s.finish(p.clock)
	}
	w.queue(k).sends = append(w.queue(k).sends, s)
	w.later(func() bool { return w.transfer(k) })
	return s, nil
}

func (p *proc) Recv(from, stage int, b []byte) (Request, error) {
	if p.l.ClusterOf(from) == p.l.Cluster {
		return nil, fmt.Errorf("message from local rank %d", from)
	}
	poison(b)
	r, k := p.newOp(b), pipe{from, p.l.Rank, stage}
	p.w.queue(k).recvs = append(p.w.queue(k).recvs, r)
	return r, nil
}

func (p *proc) RecvAtMost(from, stage int, b []byte) (Request, error) {
	r, err := p.Recv(from, stage, b)
	if err == nil {
		r.(*simOp).shorter = true
	}
	return r, err
}

// transfer moves the first message of a pipe, if there is a receive for it.
func (w *world) transfer(k pipe) bool {
	q := w.queue(k)
	if len(q.sends) == 0 || len(q.recvs) == 0 {
		return false
	}
	s, r := q.sends[0], q.recvs[0]
	q.sends, q.recvs = q.sends[1:], q.recvs[1:]
	if len(s.buf) > len(r.buf) || len(s.buf) < len(r.buf) && !r.shorter {
		r.err = fmt.Errorf("message of %d bytes for a receive of %d from %+v", len(s.buf), len(r.buf), k)
	}
	copy(r.buf, s.buf)
	r.finish(s.started + 1)
	if !s.over {
		s.finish(r.time)
	}
	return true
}
