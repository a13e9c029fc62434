//go:build openmpi || mpich

package npb

import (
	"fmt"
	"math"
	"time"

	"github.com/leidenzipper/zipper/mmpi"
)

// LU is a lower-upper symmetric Gauss–Seidel solver on columns of a 2-D grid of ranks; in every
// plane of z a wave of many small messages runs from one corner to the other. The number of ranks
// must be a power of two.
func LU(p *mmpi.Process, class Class) (Result, error) {
	par, ok := luClasses[class]
	if !ok {
		return Result{}, fmt.Errorf("npb: LU has no class %v", class)
	}
	w := p.World()
	if err := powerOfTwo("LU", w.Size()); err != nil {
		return Result{}, err
	}
	s, err := newLU(w, par)
	if err != nil {
		return Result{}, err
	}
	var res luNorms
	var t float64
	for _, steps := range []int{1, par.steps} { // one step untimed first
		s.initial()
		if err := s.forcing(); err != nil {
			return Result{}, err
		}
		if err := w.Barrier(); err != nil {
			return Result{}, err
		}
		start := time.Now()
		if res, err = s.run(steps); err != nil {
			return Result{}, err
		}
		t = seconds(start)
	}
	t, err = slowest(w, t)
	n := float64(par.n)
	worst := res.worst(par.want)
	return Result{
		Kernel: "LU", Class: class.String(), Size: fmt.Sprintf("%dx%dx%d", par.n, par.n, par.n), Ranks: w.Size(),
		Steps: par.steps, Seconds: t,
		Mops:     1e-6 * float64(par.steps) * (1984.77*n*n*n - 10923.3*n*n + 27770.9*n - 144010) / t,
		Verified: worst <= 1e-8, Detail: fmt.Sprintf("residual, error and surface integral: worst relative difference %.1e (allowed 1e-8)", worst),
	}, err
}

// luNorms are the verified figures: norms of the residual and of the error, and a surface integral
// of the pressure.
type luNorms struct {
	residual, err vec5
	surface       float64
}

func (r luNorms) worst(want luNorms) float64 {
	w := math.Abs((r.surface - want.surface) / want.surface)
	for m := range 5 {
		w = max(w, math.Abs((r.residual[m]-want.residual[m])/want.residual[m]),
			math.Abs((r.err[m]-want.err[m])/want.err[m]))
	}
	if math.IsNaN(w) {
		return math.Inf(1)
	}
	return w
}

type luClass struct {
	n, steps int
	dt       float64
	want     luNorms
}

var luClasses = map[Class]luClass{
	'S': {12, 50, 0.5, luNorms{
		vec5{1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03, 3.4264073155896461e-02},
		vec5{6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05, 1.3103347914111294e-03},
		7.8418928865937083}},
	'W': {33, 300, 1.5e-3, luNorms{
		vec5{0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02},
		vec5{0.4867877144216, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01},
		0.1161399311023e+02}},
	'A': {64, 250, 2, luNorms{
		vec5{7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02, 1.8384760349464247e+03},
		vec5{2.9964085685471943e+01, 2.8194576365003349, 7.3473412698774742, 6.7139225687777051, 7.0715315688392578e+01},
		2.6030925604886277e+01}},
	'B': {102, 250, 2, luNorms{
		vec5{3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02, 7.7812774739425265e+02, 7.3087969592545314e+03},
		vec5{1.1401176380212709e+02, 8.1098963655421574, 2.8480597317698308e+01, 2.5905394567832939e+01, 2.6054907504857413e+02},
		4.7887162703308227e+01}},
	'C': {162, 250, 2, luNorms{
		vec5{1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03, 2.19194343857831427e+03, 1.78078057261061185e+04},
		vec5{2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01, 4.82262643154045421e+01, 4.55902910043250358e+02},
		6.66404553572181300e+01}},
}

// lu is one rank's columns: points i0…i1-1 in x and j0…j1-1 in y, all of z, with two ghost layers
// in x and y.
type lu struct {
	w              *mmpi.Comm
	par            luClass
	i0, i1, j0, j1 int
	west, east     int // neighbours in x, mmpi.ProcNull at the border
	south, north   int // in y
	stride, plane  int
	u, rsd, frct   []vec5
	t1, t2, t3     [3]float64
	h              float64
	edge           []vec5
}

func newLU(w *mmpi.Comm, par luClass) (*lu, error) {
	s := &lu{w: w, par: par, west: mmpi.ProcNull, east: mmpi.ProcNull, south: mmpi.ProcNull, north: mmpi.ProcNull}
	l := log2(w.Size())
	px := 1 << (l / 2)
	py := w.Size() / px
	x, y := w.Rank()%px, w.Rank()/px
	s.i0, s.i1 = par.n*x/px, par.n*(x+1)/px
	s.j0, s.j1 = par.n*y/py, par.n*(y+1)/py
	if par.n/py < 3 {
		return nil, fmt.Errorf("npb: %d ranks are too many for LU on %d^3 points", w.Size(), par.n)
	}
	if x > 0 {
		s.west = w.Rank() - 1
	}
	if x < px-1 {
		s.east = w.Rank() + 1
	}
	if y > 0 {
		s.south = w.Rank() - px
	}
	if y < py-1 {
		s.north = w.Rank() + px
	}
	s.stride = s.i1 - s.i0 + 4
	s.plane = s.stride * (s.j1 - s.j0 + 4)
	s.u, s.rsd, s.frct = make([]vec5, s.plane*par.n), make([]vec5, s.plane*par.n), make([]vec5, s.plane*par.n)
	s.h = 1 / float64(par.n-1)
	for d := range 3 {
		s.t1[d], s.t2[d], s.t3[d] = 1/(s.h*s.h), 1/(2*s.h), 1/s.h
	}
	return s, nil
}

// at returns the index of a point by its global coordinates; those up to two points outside the
// rank's columns are ghosts.
func (s *lu) at(i, j, k int) int { return k*s.plane + (j-s.j0+2)*s.stride + i - s.i0 + 2 }

func (s *lu) exact(i, j, k int) vec5 {
	return luExact(float64(i)*s.h, float64(j)*s.h, float64(k)*s.h)
}

// interior visits the rank's points that are not on the border of the cube.
func (s *lu) interior(f func(i, j, k int)) {
	n := s.par.n
	for k := 1; k < n-1; k++ {
		for j := max(s.j0, 1); j < min(s.j1, n-1); j++ {
			for i := max(s.i0, 1); i < min(s.i1, n-1); i++ {
				f(i, j, k)
			}
		}
	}
}

// initial sets the border to the exact solution and the inside to a transfinite interpolation of
// it.
func (s *lu) initial() {
	n := s.par.n
	last := n - 1
	for k := range n {
		for j := s.j0; j < s.j1; j++ {
			for i := s.i0; i < s.i1; i++ {
				u := s.exact(i, j, k)
				if i > 0 && i < last && j > 0 && j < last && k > 0 && k < last {
					x, y, z := float64(i)*s.h, float64(j)*s.h, float64(k)*s.h
					x0, x1 := s.exact(0, j, k), s.exact(last, j, k)
					y0, y1 := s.exact(i, 0, k), s.exact(i, last, k)
					z0, z1 := s.exact(i, j, 0), s.exact(i, j, last)
					for m := range 5 {
						p, q, r := (1-x)*x0[m]+x*x1[m], (1-y)*y0[m]+y*y1[m], (1-z)*z0[m]+z*z1[m]
						u[m] = p + q + r - p*q - q*r - r*p + p*q*r
					}
				}
				s.u[s.at(i, j, k)] = u
			}
		}
	}
}

// forcing makes the exact solution a steady state: frct is the operator applied to it.
func (s *lu) forcing() error {
	saved := s.u
	s.u = make([]vec5, len(saved))
	defer func() { s.u = saved }()
	for k := range s.par.n {
		for j := s.j0 - 2; j < s.j1+2; j++ {
			for i := s.i0 - 2; i < s.i1+2; i++ {
				s.u[s.at(i, j, k)] = s.exact(i, j, k)
			}
		}
	}
	clear(s.frct)
	s.operator(s.frct)
	return nil
}

// residual sets rsd to the operator applied to u minus the forcing.
func (s *lu) residual() error {
	if err := s.ghosts(); err != nil {
		return err
	}
	for i, f := range s.frct {
		for m := range 5 {
			s.rsd[i][m] = -f[m]
		}
	}
	s.operator(s.rsd)
	return nil
}

// operator adds the discretized right-hand side of u, at interior points, to out.
func (s *lu) operator(out []vec5) {
	step := [3]int{1, s.stride, s.plane}
	last := s.par.n - 1
	s.interior(func(i, j, k int) {
		c := s.at(i, j, k)
		o := &out[c]
		for d, at := range [3]int{i, j, k} {
			a, b, e := &s.u[c-step[d]], &s.u[c], &s.u[c+step[d]]
			fa, fe := luFlux(a, d), luFlux(e, d)
			va, ve := luViscous(a, b, d, s.t3[d]), luViscous(b, e, d, s.t3[d])
			for m := range 5 {
				o[m] += -s.t2[d]*(fe[m]-fa[m]) + luDiff[d]*s.t1[d]*(a[m]-2*b[m]+e[m]) + s.t3[d]*luC34*(ve[m]-va[m])
			}
			// Fourth difference, one-sided beside the border.
			wa, wb, we, waa, wee := -4.0, 6.0, -4.0, 1.0, 1.0
			if at <= 2 {
				waa = 0
			}
			if at >= last-2 {
				wee = 0
			}
			if at == 1 {
				wa, wb = 0, 5
			}
			if at == last-1 {
				we, wb = 0, 5
			}
			for m := range 5 {
				v := wa*a[m] + wb*b[m] + we*e[m]
				if waa != 0 {
					v += s.u[c-2*step[d]][m]
				}
				if wee != 0 {
					v += s.u[c+2*step[d]][m]
				}
				o[m] -= luDssp * v
			}
		}
	})
}

// run makes SSOR steps and returns the figures to verify.
func (s *lu) run(steps int) (luNorms, error) {
	const omega = 1.2
	dt := s.par.dt
	if err := s.residual(); err != nil {
		return luNorms{}, err
	}
	for range steps {
		s.interior(func(i, j, k int) {
			for m, v := range s.rsd[s.at(i, j, k)] {
				s.rsd[s.at(i, j, k)][m] = dt * v
			}
		})
		for k := 1; k < s.par.n-1; k++ {
			if err := s.lower(k, omega); err != nil {
				return luNorms{}, err
			}
		}
		for k := s.par.n - 2; k > 0; k-- {
			if err := s.upper(k, omega); err != nil {
				return luNorms{}, err
			}
		}
		f := 1 / (omega * (2 - omega))
		s.interior(func(i, j, k int) {
			c := s.at(i, j, k)
			for m := range 5 {
				s.u[c][m] += f * s.rsd[c][m]
			}
		})
		if err := s.residual(); err != nil {
			return luNorms{}, err
		}
	}
	return s.norms()
}

// lower solves one plane of the block lower triangular system, in order of i and j, after the
// neighbours before it.
func (s *lu) lower(k int, omega float64) error {
	if err := s.receive(k, s.west, s.i0-1, s.south, s.j0-1); err != nil {
		return err
	}
	var b mat5
	n := s.par.n
	for j := max(s.j0, 1); j < min(s.j1, n-1); j++ {
		for i := max(s.i0, 1); i < min(s.i1, n-1); i++ {
			c := s.at(i, j, k)
			v := s.rsd[c]
			for d, step := range [3]int{1, s.stride, s.plane} {
				luJacobian(&b, &s.u[c-step], d, -1, s.par.dt, s.t1[d], s.t2[d])
				b.subtract(&v, omega, &s.rsd[c-step])
			}
			luDiagonal(&b, &s.u[c], s.par.dt, s.t1)
			b.solve(&v)
			s.rsd[c] = v
		}
	}
	return s.pass(k, s.east, s.i1-1, s.north, s.j1-1)
}

// upper solves one of the upper triangular system, in the opposite order.
func (s *lu) upper(k int, omega float64) error {
	if err := s.receive(k, s.east, s.i1, s.north, s.j1); err != nil {
		return err
	}
	var b mat5
	n := s.par.n
	for j := min(s.j1, n-1) - 1; j >= max(s.j0, 1); j-- {
		for i := min(s.i1, n-1) - 1; i >= max(s.i0, 1); i-- {
			c := s.at(i, j, k)
			var v vec5
			for d, step := range [3]int{1, s.stride, s.plane} {
				luJacobian(&b, &s.u[c+step], d, 1, s.par.dt, s.t1[d], s.t2[d])
				b.subtract(&v, -omega, &s.rsd[c+step])
			}
			luDiagonal(&b, &s.u[c], s.par.dt, s.t1)
			b.solve(&v)
			for m := range 5 {
				s.rsd[c][m] -= v[m]
			}
		}
	}
	return s.pass(k, s.west, s.i0, s.south, s.j0)
}
