//go:build openmpi || mpich

package npb

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/leidenzipper/zipper/mmpi"
)

// CG computes the smallest eigenvalue of a large sparse symmetric matrix by inverse power iteration
// with conjugate gradients. The matrix lies in blocks on a grid of rows × cols ranks (cols = rows
// or 2·rows); every step sums along rows, then exchanges with the transposed rank. The number of
// ranks must be a power of two.
func CG(p *mmpi.Process, class Class) (Result, error) {
	par, ok := map[Class]cgClass{
		'S': {1400, 7, 15, 10, 8.5971775078648},
		'W': {7000, 8, 15, 12, 10.362595087124},
		'A': {14000, 11, 15, 20, 17.130235054029},
		'B': {75000, 13, 75, 60, 22.712745482631},
		'C': {150000, 15, 75, 110, 28.973605592845},
	}[class]
	if !ok {
		return Result{}, fmt.Errorf("npb: CG has no class %v", class)
	}
	w := p.World()
	if err := powerOfTwo("CG", w.Size()); err != nil {
		return Result{}, err
	}
	s := newCG(w, par)
	var zeta float64
	var t float64
	for _, timed := range []bool{false, true} { // one step untimed first, as in the original
		for i := range s.x {
			s.x[i] = 1
		}
		if err := w.Barrier(); err != nil {
			return Result{}, err
		}
		start, steps := time.Now(), 1
		if timed {
			steps = par.steps
		}
		for range steps {
			var err error
			if zeta, err = s.power(); err != nil {
				return Result{}, err
			}
		}
		t = seconds(start)
	}
	t, err := slowest(w, t)
	nz := float64(par.nonzer * (par.nonzer + 1))
	return Result{
		Kernel: "CG", Class: class.String(), Size: fmt.Sprint(par.n), Ranks: w.Size(), Steps: par.steps, Seconds: t,
		Mops:     float64(2*par.steps*par.n) * (3 + nz + 25*(5+nz) + 3) / t / 1e6,
		Verified: closeTo(zeta, par.zeta, 1e-10),
		Detail:   fmt.Sprintf("zeta %.13e (official %.13e)", zeta, par.zeta),
	}, err
}

type cgClass struct {
	n, nonzer, steps int
	shift, zeta      float64
}

// cg is one rank's part: its block of the matrix and its piece of each vector. Vectors are held per
// column block, the same in all ranks of a grid column.
type cg struct {
	w                *mmpi.Comm
	par              cgClass
	a                *sparse
	rows, cols       int // grid
	row, col         int // this rank's place in it
	r0, r1, c0, c1   int // its block
	partners         []int
	transposed       int
	x, z, p, q, r    []float64 // over the columns
	sum, tmp         []float64 // over the rows
	sendLo, sendSize int       // the piece of sum that the transposed rank needs
}

func newCG(w *mmpi.Comm, par cgClass) *cg {
	s := &cg{w: w, par: par}
	l := log2(w.Size())
	s.cols = 1 << ((l + 1) / 2)
	s.rows = w.Size() / s.cols
	s.row, s.col = w.Rank()/s.cols, w.Rank()%s.cols
	s.r0, s.r1 = span(par.n, s.rows, s.row)
	s.c0, s.c1 = span(par.n, s.cols, s.col)
	for d := s.cols / 2; d >= 1; d /= 2 {
		s.partners = append(s.partners, s.row*s.cols+s.col^d)
	}
	// The transposed rank holds as row piece the values that this one needs as column piece. On a
	// square grid that is the transposed place; on one twice as wide, columns 2i and 2i+1 split row
	// block i between them.
	if s.cols == s.rows {
		s.transposed = s.col*s.cols + s.row
		s.sendLo, s.sendSize = 0, s.r1-s.r0
	} else {
		s.transposed = s.col/2*s.cols + 2*s.row + s.col%2
		lo, hi := span(par.n, s.cols, 2*s.row+s.col%2)
		s.sendLo, s.sendSize = lo-s.r0, hi-lo
	}
	g := newRandom(314159265)
	g.next()
	s.a = makeMatrix(par.n, par.nonzer, 0.1, par.shift, g, s.r0, s.r1, s.c0, s.c1)
	n := s.c1 - s.c0
	s.x, s.z, s.p, s.q, s.r = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n),
		make([]float64, n)
	s.sum, s.tmp = make([]float64, s.r1-s.r0), make([]float64, s.r1-s.r0)
	return s
}

// span returns part i of n elements cut in parts pieces, nested: halves of a piece are pieces of
// the doubled cut.
func span(n, parts, i int) (lo, hi int) {
	lo, hi = 0, n
	for bit := parts / 2; bit >= 1; bit /= 2 {
		if mid := lo + (hi-lo+1)/2; i&bit == 0 {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo, hi
}

// power makes one step of the inverse power iteration: solve A z = x, then x = z/|z|. It returns
// the estimate of the eigenvalue.
func (s *cg) power() (zeta float64, err error) {
	if err := s.solve(); err != nil {
		return 0, err
	}
	v, err := s.dots(dot(s.x, s.z), dot(s.z, s.z))
	if err != nil {
		return 0, err
	}
	f := 1 / math.Sqrt(v[1])
	for i := range s.x {
		s.x[i] = f * s.z[i]
	}
	return s.par.shift + 1/v[0], nil
}

// solve makes 25 steps of conjugate gradient, from zero.
func (s *cg) solve() error {
	for i, x := range s.x {
		s.z[i], s.r[i], s.p[i] = 0, x, x
	}
	v, err := s.dots(dot(s.r, s.r))
	if err != nil {
		return err
	}
	rho := v[0]
	for range 25 {
		if err := s.times(s.p, s.q); err != nil {
			return err
		}
		if v, err = s.dots(dot(s.p, s.q)); err != nil {
			return err
		}
		alpha := rho / v[0]
		local := 0.0
		for i := range s.z {
			s.z[i] += alpha * s.p[i]
			s.r[i] -= alpha * s.q[i]
			local += s.r[i] * s.r[i]
		}
		if v, err = s.dots(local); err != nil {
			return err
		}
		beta := v[0] / rho
		rho = v[0]
		for i := range s.p {
			s.p[i] = s.r[i] + beta*s.p[i]
		}
	}
	return nil
}

// times computes out = A·x, both over the columns of this rank.
func (s *cg) times(x, out []float64) error {
	ctx := context.Background()
	s.a.times(x, s.sum)
	for _, peer := range s.partners { // the row's sum, by halving distance
		if _, err := mmpi.Sendrecv(ctx, s.w, s.sum, peer, 1, s.tmp, peer, 1); err != nil {
			return err
		}
		for i, t := range s.tmp {
			s.sum[i] += t
		}
	}
	piece := s.sum[s.sendLo : s.sendLo+s.sendSize]
	if s.transposed == s.w.Rank() {
		copy(out, piece)
		return nil
	}
	_, err := mmpi.Sendrecv(ctx, s.w, piece, s.transposed, 2, out, s.transposed, 2)
	return err
}

// dots sums numbers over the ranks of this grid row, whose column pieces together are the whole
// vector.
func (s *cg) dots(v ...float64) ([]float64, error) {
	tmp := make([]float64, len(v))
	for _, peer := range s.partners {
		if _, err := mmpi.Sendrecv(context.Background(), s.w, v, peer, 3, tmp, peer, 3); err != nil {
			return nil, err
		}
		for i, t := range tmp {
			v[i] += t
		}
	}
	return v, nil
}

func dot(a, b []float64) float64 {
	sum := 0.0
	b = b[:len(a)]
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
