//go:build openmpi || mpich

package mmpi

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Status describes a finished receive or a probe.
type Status struct {
	Source int // rank in the communicator
	Tag    int
	Bytes  int // size of the message in bytes
}

// Request is an operation under way. When Wait or Test report that it is done, its buffer belongs
// to the caller again.
type Request struct {
	p   *Process
	r   mpi.Request
	pin *runtime.Pinner
	// keep has objects that C still reads: arrays of counts.
	keep any
	done bool
	st   Status
	err  error
}

func status(s mpi.Status) Status {
	src, t := s.Source, s.Tag
	switch src {
	case mpi.ProcNull():
		src = ProcNull
	case mpi.AnySource():
		src = AnySource
	}
	if t == mpi.AnyTag() {
		t = AnyTag
	}
	return Status{src, t, int(s.Bytes)}
}

// start makes a Request out of a nonblocking call and pins its memory until it is done.
func start(p *Process, call func() (mpi.Request, error), pinned ...unsafe.Pointer) (*Request, error) {
	q := &Request{p: p, pin: p.pinner()}
	for _, m := range pinned {
		if m != nil {
			q.pin.Pin(m)
		}
	}
	unlock := p.lock()
	r, err := call()
	unlock()
	if err != nil {
		q.unpin()
		return nil, err
	}
	q.r = r
	return q, nil
}

func (q *Request) finish(s mpi.Status, err error) {
	q.done, q.err, q.st = true, err, status(s)
	q.unpin()
	q.keep = nil
}

func (q *Request) unpin() {
	if q.pin != nil {
		q.pin.Unpin()
		q.p.pinners.Put(q.pin)
		q.pin = nil
	}
}

// try tests once. The caller holds the lock.
func (q *Request) try() (bool, error) {
	if q.done {
		return true, q.err
	}
	s, done, err := q.r.Test()
	if done || err != nil {
		q.finish(s, err)
		return true, err
	}
	return false, nil
}

// Test reports whether the operation is done. It does not block.
func (q *Request) Test() (Status, bool, error) {
	unlock := q.p.lock()
	defer unlock()
	done, err := q.try()
	return q.st, done, err
}

// Wait blocks until the operation is done. If ctx ends first, Wait returns its error and the
// operation continues: the caller may call Wait again, or Cancel.
func (q *Request) Wait(ctx context.Context) (Status, error) {
	if !q.done && q.p.direct() && ctx.Done() == nil {
		q.finish(q.r.Wait())
	}
	err := q.p.await(ctx, q.try)
	return q.st, err
}

// Cancel tries to cancel a receive without a matching message. cancelled reports whether it
// succeeded. The request is done afterwards in either case. A send is never cancelled: Cancel waits
// for it.
func (q *Request) Cancel() (cancelled bool, err error) {
	if q.done {
		return false, q.err
	}
	unlock := q.p.lock()
	err = q.r.Cancel()
	unlock()
	if err != nil {
		return false, err
	}
	err = q.p.await(context.Background(), func() (bool, error) {
		s, done, err := q.r.Test()
		if done || err != nil {
			cancelled = s.Cancelled
			q.finish(s, err)
		}
		return done, err
	})
	return cancelled, err
}

// WaitAll waits for all requests (nil ones are skipped). It returns the first error, after all are
// done or ctx has ended.
func WaitAll(ctx context.Context, reqs ...*Request) error {
	waitTogether(ctx, reqs)
	var first error
	for _, q := range reqs {
		if q == nil {
			continue
		}
		if _, err := q.Wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// waitTogether completes requests that MPI itself may wait for, with one call of C for many.
func waitTogether(ctx context.Context, reqs []*Request) {
	i := 0
	for i < len(reqs) && reqs[i] == nil {
		i++
	}
	if i == len(reqs) || ctx.Done() != nil || !reqs[i].p.direct() {
		return
	}
	b := reqs[i].p.batch()
	defer reqs[i].p.batches.Put(b)
	for i < len(reqs) {
		b.open = b.open[:0]
		for ; i < len(reqs) && len(b.open) < cap(b.open); i++ {
			if q := reqs[i]; q != nil && !q.done && b.Add(q.r) {
				q.done = true // the request may be in the list twice
				b.open = append(b.open, q)
			}
		}
		b.Wait(func(k int, s mpi.Status, err error) { b.open[k].finish(s, err) })
	}
	clear(b.open[:cap(b.open)])
}

// WaitAny waits until one of the requests is done and returns its index. It returns -1 without
// error if every request is nil.
func WaitAny(ctx context.Context, reqs ...*Request) (int, Status, error) {
	var p *Process
	for _, q := range reqs {
		if q != nil {
			p = q.p
		}
	}
	if p == nil {
		return -1, Status{}, nil
	}
	found := -1
	err := p.await(ctx, func() (bool, error) {
		for i, q := range reqs {
			if q == nil {
				continue
			}
			if done, err := q.try(); done {
				found = i
				return true, err
			}
		}
		return false, nil
	})
	if found < 0 {
		return -1, Status{}, err
	}
	return found, reqs[found].st, err
}
