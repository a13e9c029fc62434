//go:build openmpi || mpich

package mmpi

import (
	"context"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Isend starts to send buf to rank to with a tag (0 … TagUB).
func Isend[T Scalar](c *Comm, buf []T, to, t int) (*Request, error) {
	b, err := buffer(buf)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Isend(b, dest(to), t) }, b.P)
}

// Issend is Isend whose request is done only when the receive has begun.
func Issend[T Scalar](c *Comm, buf []T, to, t int) (*Request, error) {
	b, err := buffer(buf)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Issend(b, dest(to), t) }, b.P)
}

// Irecv starts to receive at most len(buf) elements from rank from (or AnySource) with a tag (or
// AnyTag).
func Irecv[T Scalar](c *Comm, buf []T, from, t int) (*Request, error) {
	b, err := buffer(buf)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Irecv(b, source(from), tag(t)) }, b.P)
}

// Send sends buf to rank to. The buffer may be used again on return.
func Send[T Scalar](c *Comm, buf []T, to, t int) error {
	if c.p.direct() {
		b, err := buffer(buf)
		if err != nil {
			return err
		}
		return c.h.Send(b, dest(to), t)
	}
	q, err := Isend(c, buf, to, t)
	if err != nil {
		return err
	}
	_, err = q.Wait(context.Background())
	return err
}

// Recv receives a message into buf. If ctx ends first the receive is cancelled and the error is
// ctx's, unless a message has arrived at the same moment.
func Recv[T Scalar](ctx context.Context, c *Comm, buf []T, from, t int) (Status, error) {
	if c.p.direct() && ctx.Done() == nil {
		b, err := buffer(buf)
		if err != nil {
			return Status{}, err
		}
		s, err := c.h.Recv(b, source(from), tag(t))
		return status(s), err
	}
	q, err := Irecv(c, buf, from, t)
	if err != nil {
		return Status{}, err
	}
	st, err := q.Wait(ctx)
	if q.done || err == nil {
		return st, err
	}
	if cancelled, cerr := q.Cancel(); cancelled || cerr != nil {
		return Status{}, err
	}
	return q.st, q.err
}

// Sendrecv sends and receives at the same time.
func Sendrecv[T Scalar](ctx context.Context, c *Comm, send []T, to, stag int, recv []T,
	from, rtag int) (Status, error) {
	r, err := Irecv(c, recv, from, rtag)
	if err != nil {
		return Status{}, err
	}
	s, err := Isend(c, send, to, stag)
	if err != nil {
		_, _ = r.Cancel() // the error of the send is the cause
		return Status{}, err
	}
	if _, err := s.Wait(ctx); err != nil {
		return Status{}, err
	}
	return r.Wait(ctx)
}

// Iprobe reports whether there is a message that Recv with these arguments would take.
func (c *Comm) Iprobe(from, t int) (Status, bool, error) {
	unlock := c.p.lock()
	defer unlock()
	s, found, err := c.h.Iprobe(source(from), tag(t))
	return status(s), found, err
}

// Probe waits for a message that Recv with these arguments would take.
func (c *Comm) Probe(ctx context.Context, from, t int) (Status, error) {
	var st Status
	err := c.p.await(ctx, func() (bool, error) {
		s, found, err := c.h.Iprobe(source(from), tag(t))
		st = status(s)
		return found, err
	})
	return st, err
}
