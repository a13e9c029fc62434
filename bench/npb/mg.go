//go:build openmpi || mpich

package npb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/mmpi"
)

// MG runs the benchmark "multigrid": V-cycles on a 3-D Poisson problem with periodic borders. Each
// rank has a box; its faces are exchanged after every operation but interpolation, which computes
// its ghosts itself. Levels too coarse to give every rank two points a side are gathered and solved
// by all ranks alike. The number of ranks must be a power of two.
func MG(p *mmpi.Process, class Class) (Result, error) {
	par, ok := map[Class]mgClass{
		'S': {32, 4, 0.5307707005734e-04, false},
		'W': {128, 4, 0.6467329375339e-05, false},
		'A': {256, 4, 0.2433365309069e-05, false},
		'B': {256, 20, 0.1800564401355e-05, true},
		'C': {512, 20, 0.5706732285740e-06, true},
	}[class]
	if !ok {
		return Result{}, fmt.Errorf("npb: MG has no class %v", class)
	}
	w := p.World()
	if err := powerOfTwo("MG", w.Size()); err != nil {
		return Result{}, err
	}
	s, err := newMG(w, par)
	if err != nil {
		return Result{}, err
	}
	var norm, t float64
	for _, steps := range []int{1, par.steps} { // one step untimed first
		if err := s.reset(); err != nil {
			return Result{}, err
		}
		if err := w.Barrier(); err != nil {
			return Result{}, err
		}
		start := time.Now()
		if norm, err = s.run(steps); err != nil {
			return Result{}, err
		}
		t = seconds(start)
	}
	t, err = slowest(w, t)
	return Result{
		Kernel: "MG", Class: class.String(), Size: fmt.Sprintf("%dx%dx%d", par.n, par.n, par.n), Ranks: w.Size(),
		Steps: par.steps, Seconds: t,
		Mops:     58 * float64(par.steps) * math.Pow(float64(par.n), 3) / t / 1e6,
		Verified: closeTo(norm, par.norm, 1e-8), Detail: fmt.Sprintf("residual norm %.13e (official %.13e)", norm,
			par.norm),
	}, err
}

type mgClass struct {
	n, steps int // grid points a side, V-cycles
	norm     float64
	large    bool // classes from B on use another smoother
}

// level is one grid of the hierarchy. On a shared level every rank has the whole field.
type level struct {
	n      int
	shared bool
	u, r   *grid
}

type mg struct {
	w       *mmpi.Comm
	par     mgClass
	procs   [3]int // ranks along x, y, z
	at      [3]int // this rank's place
	prev    [3]int // its neighbours
	next    [3]int
	levels  []*level // coarsest (2 points a side) first
	v       *grid
	c       [3]float64
	t1, t2  []float64
	out, in []float64 // faces
}

func newMG(w *mmpi.Comm, par mgClass) (*mg, error) {
	s := &mg{w: w, par: par, procs: [3]int{1, 1, 1}, c: [3]float64{-3.0 / 8, 1.0 / 32, -1.0 / 64}}
	if par.large {
		s.c = [3]float64{-3.0 / 17, 1.0 / 33, -1.0 / 61}
	}
	for n, d := w.Size(), 2; n > 1; n, d = n/2, (d+2)%3 {
		s.procs[d] *= 2
	}
	if s.procs[2]*2 > par.n {
		return nil, fmt.Errorf("npb: %d ranks are too many for MG on %d^3 points", w.Size(), par.n)
	}
	place := func(at [3]int) int { return (at[2]*s.procs[1]+at[1])*s.procs[0] + at[0] }
	s.at = [3]int{w.Rank() % s.procs[0], w.Rank() / s.procs[0] % s.procs[1], w.Rank() / s.procs[0] / s.procs[1]}
	for d := range 3 {
		a, b := s.at, s.at
		a[d] = (a[d] + s.procs[d] - 1) % s.procs[d]
		b[d] = (b[d] + 1) % s.procs[d]
		s.prev[d], s.next[d] = place(a), place(b)
	}
	for n := 2; n <= par.n; n *= 2 {
		l := &level{n: n, shared: n < 2*s.procs[2]}
		nx, ny, nz := n, n, n
		if !l.shared {
			nx, ny, nz = n/s.procs[0], n/s.procs[1], n/s.procs[2]
		}
		l.u, l.r = newGrid(nx, ny, nz), newGrid(nx, ny, nz)
		s.levels = append(s.levels, l)
	}
	top := s.top()
	s.v = newGrid(top.u.nx, top.u.ny, top.u.nz)
	s.t1, s.t2 = make([]float64, par.n+2), make([]float64, par.n+2)
	face := (max(top.u.nx, top.u.ny) + 2) * (max(top.u.ny, top.u.nz) + 2)
	s.out, s.in = make([]float64, face), make([]float64, face)
	return s, nil
}

func (s *mg) top() *level { return s.levels[len(s.levels)-1] }

// run makes V-cycles from the present state and returns the norm of the residual.
func (s *mg) run(steps int) (float64, error) {
	top := s.top()
	if err := s.residual(top, s.v); err != nil {
		return 0, err
	}
	for range steps {
		if err := s.cycle(); err != nil {
			return 0, err
		}
		if err := s.residual(top, s.v); err != nil {
			return 0, err
		}
	}
	sum := []float64{0}
	top.r.inside(func(row []float64, _, _ int) {
		for _, x := range row {
			sum[0] += x * x
		}
	})
	err := mmpi.Allreduce(s.w, nil, sum, mmpi.Sum)
	return math.Sqrt(sum[0] / math.Pow(float64(s.par.n), 3)), err
}

func (s *mg) cycle() error {
	for k := len(s.levels) - 1; k > 0; k-- {
		if err := s.restrict(s.levels[k], s.levels[k-1]); err != nil {
			return err
		}
	}
	clear(s.levels[0].u.v)
	if err := s.smooth(s.levels[0]); err != nil {
		return err
	}
	for k := 1; k < len(s.levels); k++ {
		l, v := s.levels[k], s.levels[k].r
		if l == s.top() {
			v = s.v
		} else {
			clear(l.u.v)
		}
		interpolate(s.above(s.levels[k-1], l), l.u)
		if err := s.residual(l, v); err != nil {
			return err
		}
		if err := s.smooth(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *mg) residual(l *level, v *grid) error {
	residual(l.u, v, l.r, -8.0/3, 1.0/6, 1.0/12, s.t1, s.t2)
	return s.exchange(l, l.r)
}

func (s *mg) smooth(l *level) error {
	smooth(l.r, l.u, s.c[0], s.c[1], s.c[2], s.t1, s.t2)
	return s.exchange(l, l.u)
}

func (s *mg) restrict(fine, coarse *level) error {
	if fine.shared || !coarse.shared {
		restrict(fine.r, coarse.r, s.t1, s.t2)
		return s.exchange(coarse, coarse.r)
	}
	box := newGrid(fine.r.nx/2, fine.r.ny/2, fine.r.nz/2) // from boxes to a shared level: gather the parts of all ranks
	restrict(fine.r, box, s.t1, s.t2)
	var mine []float64
	box.inside(func(row []float64, _, _ int) { mine = append(mine, row...) })
	all := make([]float64, len(mine)*s.w.Size())
	if err := mmpi.Allgather(s.w, mine, all); err != nil {
		return err
	}
	for r := range s.w.Size() {
		x0 := r % s.procs[0] * box.nx
		y0 := r / s.procs[0] % s.procs[1] * box.ny
		z0 := r / s.procs[0] / s.procs[1] * box.nz
		part := all[r*len(mine):]
		for z := range box.nz {
			for y := range box.ny {
				copy(coarse.r.row(y0+y+1, z0+z+1)[x0+1:], part[(z*box.ny+y)*box.nx:][:box.nx])
			}
		}
	}
	return s.exchange(coarse, coarse.r)
}

// above returns the coarse field below this rank's fine box. From a shared level to boxes it is a
// cut-out with its ghosts.
func (s *mg) above(coarse, fine *level) *grid {
	if fine.shared || !coarse.shared {
		return coarse.u
	}
	box := newGrid(fine.u.nx/2, fine.u.ny/2, fine.u.nz/2)
	x0, y0, z0 := s.at[0]*box.nx, s.at[1]*box.ny, s.at[2]*box.nz
	for z := range box.nz + 2 {
		for y := range box.ny + 2 {
			copy(box.row(y, z), coarse.u.row(y0+y, z0+z)[x0:])
		}
	}
	return box
}

// exchange fills the ghost layers: x, then y, then z, each with the ghosts of the ones before, so
// that edges and corners are right.
func (s *mg) exchange(l *level, g *grid) error {
	for d, n := range [3]int{g.nx, g.ny, g.nz} {
		if l.shared || s.procs[d] == 1 {
			s.copyFace(g, d, n, 0)
			s.copyFace(g, d, 1, n+1)
			continue
		}
		if err := s.swap(g, d, n, 0, s.next[d], s.prev[d]); err != nil {
			return err
		}
		if err := s.swap(g, d, 1, n+1, s.prev[d], s.next[d]); err != nil {
			return err
		}
	}
	return nil
}

// swap sends layer from to one neighbour and receives layer into from the other.
func (s *mg) swap(g *grid, d, from, into, to, source int) error {
	n := 0
	face(g, d, from, func(cells []float64) { n += copy(s.out[n:], cells) }, func(c *float64) { s.out[n] = *c; n++ })
	if _, err := mmpi.Sendrecv(context.Background(), s.w, s.out[:n], to, d, s.in[:n], source, d); err != nil {
		return err
	}
	n = 0
	face(g, d, into, func(cells []float64) { n += copy(cells, s.in[n:]) }, func(c *float64) { *c = s.in[n]; n++ })
	return nil
}

func (s *mg) copyFace(g *grid, d, from, into int) {
	n := 0
	face(g, d, from, func(cells []float64) { n += copy(s.out[n:], cells) }, func(c *float64) { s.out[n] = *c; n++ })
	n = 0
	face(g, d, into, func(cells []float64) { n += copy(cells, s.out[n:]) }, func(c *float64) { *c = s.out[n]; n++ })
}

// face visits one layer across dimension d, by lines where they are contiguous.
func face(g *grid, d, at int, line func([]float64), cell func(*float64)) {
	switch d {
	case 0:
		for z := 1; z <= g.nz; z++ {
			for y := 1; y <= g.ny; y++ {
				cell(&g.row(y, z)[at])
			}
		}
	case 1:
		for z := 1; z <= g.nz; z++ {
			line(g.row(at, z))
		}
	case 2:
		for y := range g.ny + 2 {
			line(g.row(y, at))
		}
	}
}

// reset sets u to zero and v to +1 at the places of the ten largest of NPB's random numbers, -1 at
// the ten smallest.
func (s *mg) reset() error {
	for _, l := range s.levels {
		clear(l.u.v)
		clear(l.r.v)
	}
	clear(s.v.v)
	n := uint64(s.par.n)
	type spot struct{ value, place float64 }
	var high, low []spot // sorted, the most extreme first, at most ten
	keep := func(list []spot, c spot, before func(a, b float64) bool) []spot {
		if len(list) == 10 && !before(c.value, list[9].value) {
			return list
		}
		i := 0
		for i < len(list) && !before(c.value, list[i].value) {
			i++
		}
		list = slices.Insert(list, i, c)
		return list[:min(10, len(list))]
	}
	more, less := func(a, b float64) bool { return a > b }, func(a, b float64) bool { return a < b }
	x0, y0, z0 := uint64(s.at[0]*s.v.nx), uint64(s.at[1]*s.v.ny), uint64(s.at[2]*s.v.nz)
	for z := range uint64(s.v.nz) {
		for y := range uint64(s.v.ny) {
			g := newRandom(314159265)
			first := ((z0+z)*n+y0+y)*n + x0
			g.skip(first)
			for x := range uint64(s.v.nx) {
				c := spot{g.next(), float64(first + x)}
				high = keep(high, c, more)
				low = keep(low, c, less)
			}
		}
	}
	mine := make([]float64, 40)
	for i := range 10 { // ten of each, padded with values that never win
		h, l := spot{-1, -1}, spot{2, -1}
		if i < len(high) {
			h, l = high[i], low[i]
		}
		copy(mine[4*i:], []float64{h.value, h.place, l.value, l.place})
	}
	all := make([]float64, 40*s.w.Size())
	if err := mmpi.Allgather(s.w, mine, all); err != nil {
		return err
	}
	high, low = nil, nil
	for i := 0; i < len(all); i += 4 {
		high = keep(high, spot{all[i], all[i+1]}, more)
		low = keep(low, spot{all[i+2], all[i+3]}, less)
	}
	set := func(list []spot, v float64) {
		for _, c := range list {
			p := uint64(c.place)
			x, y, z := p%n-x0, p/n%n-y0, p/n/n-z0 // wraps far above the box when outside
			if x < uint64(s.v.nx) && y < uint64(s.v.ny) && z < uint64(s.v.nz) {
				s.v.row(int(y)+1, int(z)+1)[x+1] = v
			}
		}
	}
	set(high, 1)
	set(low, -1)
	return s.exchange(s.top(), s.v)
}
