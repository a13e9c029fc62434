//go:build openmpi || mpich

// Package mpimod opens the modules of netgauge.MPIModules on the processes of an MPI job.
package mpimod

import (
	"context"
	"fmt"

	"github.com/leidenzipper/zipper/bench/netgauge"
	"github.com/leidenzipper/zipper/mmpi"
)

// Modules are netgauge.MPIModules over w.
func Modules(w *mmpi.Comm) []netgauge.Module {
	all := netgauge.MPIModules()
	for i := range all {
		nonblocking := all[i].Offers&netgauge.Nonblocking != 0
		all[i].Open = func(context.Context, netgauge.Place) (netgauge.Endpoint, error) {
			if err := w.Barrier(); err != nil {
				return nil, err
			}
			if nonblocking {
				return starter{endpoint{w}}, nil
			}
			return endpoint{w}, nil
		}
	}
	return all
}

// Run runs a pattern over an MPI module on all processes of w; the report is complete on rank 0.
func Run(w *mmpi.Comm, pattern, module string, o netgauge.Options) (*netgauge.Report, error) {
	p, m, err := netgauge.FindIn(netgauge.Patterns(), Modules(w), pattern, module)
	if err != nil {
		return nil, err
	}
	return netgauge.Run(context.Background(), p, m, netgauge.Place{Rank: w.Rank(), Addrs: make([]string, w.Size())}, o)
}

// The patterns agree on who sends when, so one tag does.
const tag = 1

type endpoint struct{ w *mmpi.Comm }

func (e endpoint) Rank() int                   { return e.w.Rank() }
func (e endpoint) Size() int                   { return e.w.Size() }
func (e endpoint) Send(to int, b []byte) error { return mmpi.Send(e.w, b, to, tag) }
func (e endpoint) Close() error                { return e.w.Barrier() }

func (e endpoint) Recv(from int, b []byte) error {
	s, err := mmpi.Recv(context.Background(), e.w, b, from, tag)
	if err == nil && s.Bytes != len(b) {
		err = fmt.Errorf("%d bytes came from rank %d instead of %d", s.Bytes, from, len(b))
	}
	return err
}

type starter struct{ endpoint }

func (e starter) Send(to int, b []byte) error {
	p, err := e.Isend(to, b)
	if err != nil {
		return err
	}
	return p.Wait()
}

func (e starter) Recv(from int, b []byte) error {
	p, err := e.Irecv(from, b)
	if err != nil {
		return err
	}
	return p.Wait()
}

func (e starter) Isend(to int, b []byte) (netgauge.Pending, error) {
	r, err := mmpi.Isend(e.w, b, to, tag)
	return pending{r}, err
}

func (e starter) Irecv(from int, b []byte) (netgauge.Pending, error) {
	r, err := mmpi.Irecv(e.w, b, from, tag)
	return pending{r}, err
}

type pending struct{ r *mmpi.Request }

func (p pending) Wait() error {
	_, err := p.r.Wait(context.Background())
	return err
}
