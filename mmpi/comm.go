//go:build openmpi || mpich

package mmpi

import (
	"context"
	"fmt"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Comm is a communicator: an ordered set of processes with a matching space of its own.
type Comm struct {
	p          *Process
	h          mpi.Communicator
	rank, size int
}

// These are special values for source, tag and colour.
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
	Undefined = -3 // for Split: this process joins no new communicator
)

func (p *Process) comm(h mpi.Communicator) (*Comm, error) {
	c := &Comm{p: p, h: h}
	var err error
	if c.rank, err = h.Rank(); err != nil {
		return nil, err
	}
	c.size, err = h.Size()
	return c, err
}

// Rank returns the rank of this process, 0 … Size-1.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of processes.
func (c *Comm) Size() int { return c.size }

// Dup creates a communicator with the same processes. It is collective.
func (c *Comm) Dup() (*Comm, error) {
	unlock := c.p.lock()
	pending, r, err := c.h.Idup()
	unlock()
	if err != nil {
		return nil, err
	}
	req := &Request{p: c.p, r: r}
	if _, err := req.Wait(context.Background()); err != nil {
		return nil, err
	}
	unlock = c.p.lock()
	defer unlock()
	return c.p.comm(pending.Get())
}

// Split creates one communicator per colour (≥ 0), ordered by key and then by rank here. It returns
// nil for Undefined. It is collective, and blocks other goroutines' calls while it runs.
func (c *Comm) Split(color, key int) (*Comm, error) {
	if color == Undefined {
		color = mpi.Undefined()
	}
	unlock := c.p.lock()
	defer unlock()
	h, err := c.h.Split(color, key)
	return c.made(h, err)
}

// SplitHost creates one communicator per host, of processes that can share memory. It is
// collective.
func (c *Comm) SplitHost(key int) (*Comm, error) {
	unlock := c.p.lock()
	defer unlock()
	h, err := c.h.SplitHost(key)
	return c.made(h, err)
}

// Create creates a communicator of the given ranks, in that order. It returns nil for a process
// that is not among them. It is collective over c, with the same ranks in all processes.
func (c *Comm) Create(ranks []int) (*Comm, error) {
	for _, r := range ranks {
		if r < 0 || r >= c.size {
			return nil, fmt.Errorf("mmpi: Create: no rank %d in a communicator of %d", r, c.size)
		}
	}
	unlock := c.p.lock()
	defer unlock()
	h, err := c.h.Create(ranks)
	return c.made(h, err)
}

func (c *Comm) made(h mpi.Communicator, err error) (*Comm, error) {
	if err != nil || h == mpi.Null() {
		return nil, err
	}
	return c.p.comm(h)
}

// Free frees the communicator. It is collective. World and Self must not be freed.
func (c *Comm) Free() error {
	unlock := c.p.lock()
	defer unlock()
	return c.h.Free()
}

// TagUB returns the largest tag that is allowed.
func (c *Comm) TagUB() (int, error) {
	unlock := c.p.lock()
	defer unlock()
	return c.h.TagUB()
}

func source(s int) int {
	switch s {
	case AnySource:
		return mpi.AnySource()
	case ProcNull:
		return mpi.ProcNull()
	}
	return s
}

func dest(d int) int {
	if d == ProcNull {
		return mpi.ProcNull()
	}
	return d
}

func tag(t int) int {
	if t == AnyTag {
		return mpi.AnyTag()
	}
	return t
}
