//go:build openmpi || mpich

package npb

import (
	"context"
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi"
)

// receive receives column i from a neighbour in x and row j from one in y, for plane k of rsd.
func (s *lu) receive(k, fromX, i, fromY, j int) error {
	if err := s.line(fromX, func() []vec5 { return s.room(s.j1 - s.j0) }, true); err != nil {
		return err
	}
	if fromX != mmpi.ProcNull {
		for n := range s.j1 - s.j0 {
			s.rsd[s.at(i, s.j0+n, k)] = s.edge[n]
		}
	}
	if err := s.line(fromY, func() []vec5 { return s.room(s.i1 - s.i0) }, true); err != nil {
		return err
	}
	if fromY != mmpi.ProcNull {
		copy(s.rsd[s.at(s.i0, j, k):], s.edge[:s.i1-s.i0])
	}
	return nil
}

// pass sends column i and row j of plane k of rsd to the neighbours after this rank.
func (s *lu) pass(k, toX, i, toY, j int) error {
	if err := s.line(toX, func() []vec5 {
		e := s.room(s.j1 - s.j0)
		for n := range e {
			e[n] = s.rsd[s.at(i, s.j0+n, k)]
		}
		return e
	}, false); err != nil {
		return err
	}
	return s.line(toY, func() []vec5 {
		e := s.room(s.i1 - s.i0)
		copy(e, s.rsd[s.at(s.i0, j, k):])
		return e
	}, false)
}

func (s *lu) room(n int) []vec5 {
	if cap(s.edge) < n {
		s.edge = make([]vec5, n)
	}
	return s.edge[:n]
}

// line sends or receives a line of points. It does nothing beyond the border.
func (s *lu) line(peer int, points func() []vec5, receive bool) error {
	if peer == mmpi.ProcNull {
		return nil
	}
	b := flat(points())
	if receive {
		_, err := mmpi.Recv(context.Background(), s.w, b, peer, 10)
		return err
	}
	return mmpi.Send(s.w, b, peer, 10)
}

func flat(p []vec5) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(p))), 5*len(p))
}

// ghosts exchanges two layers of u with each neighbour.
func (s *lu) ghosts() error {
	type side struct{ out, in, from, into int }
	ni, nj, n := s.i1-s.i0, s.j1-s.j0, s.par.n
	for _, x := range []side{{s.east, s.west, s.i1 - 2, s.i0 - 2}, {s.west, s.east, s.i0, s.i1}} {
		out, in := make([]vec5, 2*nj*n), make([]vec5, 2*nj*n)
		each := func(i0 int, f func(at, n int)) {
			c := 0
			for k := range n {
				for j := s.j0; j < s.j1; j++ {
					for i := i0; i < i0+2; i++ {
						f(s.at(i, j, k), c)
						c++
					}
				}
			}
		}
		each(x.from, func(at, n int) { out[n] = s.u[at] })
		if _, err := mmpi.Sendrecv(context.Background(), s.w, flat(out), x.out, 11, flat(in), x.in, 11); err != nil {
			return err
		}
		if x.in != mmpi.ProcNull {
			each(x.into, func(at, n int) { s.u[at] = in[n] })
		}
	}
	for _, y := range []side{{s.north, s.south, s.j1 - 2, s.j0 - 2}, {s.south, s.north, s.j0, s.j1}} {
		out, in := make([]vec5, 2*(ni+4)*n), make([]vec5, 2*(ni+4)*n)
		each := func(j0 int, f func(row []vec5, n int)) {
			for k := range n {
				for r := range 2 {
					f(s.u[s.at(s.i0-2, j0+r, k):][:ni+4], (2*k+r)*(ni+4))
				}
			}
		}
		each(y.from, func(row []vec5, n int) { copy(out[n:], row) })
		if _, err := mmpi.Sendrecv(context.Background(), s.w, flat(out), y.out, 12, flat(in), y.in, 12); err != nil {
			return err
		}
		if y.in != mmpi.ProcNull {
			each(y.into, func(row []vec5, n int) { copy(row, in[n:]) })
		}
	}
	return nil
}
