//go:build openmpi || mpich

// Package mpimod opens the modules of netgauge.MPIModules on the processes of an MPI job.
package mpimod

import (
	"context"
	"fmt"

	"github.com/leidenzipper/zipper/bench/netgauge"
	"github.com/leidenzipper/zipper/mmpi"
)

// Modules returns netgauge.MPIModules over w.
func Modules(w *mmpi.Comm) []netgauge.Module {
	opens := map[string]func() (netgauge.Endpoint, error){
		"mpi":     func() (netgauge.Endpoint, error) { return endpoint{w}, w.Barrier() },
		"mpi_nb":  func() (netgauge.Endpoint, error) { return starter{endpoint{w}}, w.Barrier() },
		"mpi_put": func() (netgauge.Endpoint, error) { return openPut(w) },
	}
	all := netgauge.MPIModules()
	for i := range all {
		open := opens[all[i].Name]
		all[i].Open = func(context.Context, netgauge.Place) (netgauge.Endpoint, error) { return open() }
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

// tag is that of all messages, because the patterns determine which rank sends when.
const tag = 1

type endpoint struct{ w *mmpi.Comm }

func (e endpoint) Rank() int                   { return e.w.Rank() }
func (e endpoint) Size() int                   { return e.w.Size() }
func (e endpoint) Send(to int, b []byte) error { return mmpi.Send(e.w, b, to, tag) }
func (e endpoint) Close() error                { return e.w.Barrier() }

func (e endpoint) Recv(from int, b []byte) error {
	s, err := mmpi.Recv(context.Background(), e.w, b, from, tag)
	if err == nil && s.Bytes != len(b) {
		err = fmt.Errorf("received %d bytes from rank %d instead of %d", s.Bytes, from, len(b))
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
