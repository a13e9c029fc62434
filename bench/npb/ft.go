//go:build openmpi || mpich

package npb

import (
	"fmt"
	"math"
	"math/cmplx"
	"time"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/leidenzipper/zipper/mmpi"
)

// FT solves a 3-D heat equation by FFT, in slabs of z; every step transforms back, with one
// all-to-all. The number of ranks must be a power of two, at most min(ny, nz).
func FT(p *mmpi.Process, class Class) (Result, error) {
	par, ok := ftClasses[class]
	if !ok {
		return Result{}, fmt.Errorf("npb: FT has no class %v", class)
	}
	w := p.World()
	if err := powerOfTwo("FT", w.Size()); err != nil {
		return Result{}, err
	}
	if most := min(par.ny, par.nz); w.Size() > most {
		return Result{}, fmt.Errorf("npb: FT class %v runs on at most %d ranks", class, most)
	}
	s := newFT(w, par)
	if err := w.Barrier(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	s.initial()
	if err := s.forward(); err != nil {
		return Result{}, err
	}
	right, worst := 0, 0.0
	for _, want := range par.sums {
		s.evolve()
		if err := s.backward(); err != nil {
			return Result{}, err
		}
		sum, err := s.checksum()
		if err != nil {
			return Result{}, err
		}
		e := cmplx.Abs((sum - want) / want)
		worst = max(worst, e)
		if e <= 1e-12 {
			right++
		}
	}
	t, err := slowest(w, seconds(start))
	n := float64(par.nx * par.ny * par.nz)
	steps := len(par.sums)
	return Result{
		Kernel: "FT", Class: class.String(), Size: fmt.Sprintf("%dx%dx%d", par.nx, par.ny, par.nz), Ranks: w.Size(),
		Steps: steps, Seconds: t,
		Mops:     1e-6 * n * (14.8157 + 7.19641*math.Log(n) + (5.23518+7.21113*math.Log(n))*float64(steps)) / t,
		Verified: right == steps, Detail: fmt.Sprintf("%d of %d checksums right, worst relative error %.1e", right,
			steps, worst),
	}, err
}

// ft is one rank's part. In space a slab of z: value (x,y,z) at ((z-z0)·ny + y)·nx + x. In
// frequency, after the exchange, a slab of y with z fastest: value (x,y,z) at ((y-y0)·nx + x)·nz +
// z.
type ft struct {
	w             *mmpi.Comm
	par           ftClass
	z0, zs        int // slab of z
	y0, ys        int // slab of y
	space, freq   []complex128
	work, tmp     []complex128
	factor        []float64 // one step's decay of each frequency
	fx, fy, fz    *fourier.CmplxFFT
	line, lineOut []complex128
}

func newFT(w *mmpi.Comm, par ftClass) *ft {
	s := &ft{w: w, par: par, zs: par.nz / w.Size(), ys: par.ny / w.Size()}
	s.z0, s.y0 = w.Rank()*s.zs, w.Rank()*s.ys
	n := par.nx * par.ny * s.zs
	s.space, s.freq = make([]complex128, n), make([]complex128, n)
	s.work, s.tmp = make([]complex128, n), make([]complex128, n)
	s.factor = make([]float64, n)
	s.fx, s.fy, s.fz = fourier.NewCmplxFFT(par.nx), fourier.NewCmplxFFT(par.ny), fourier.NewCmplxFFT(par.nz)
	longest := max(par.nx, par.ny, par.nz)
	s.line, s.lineOut = make([]complex128, longest), make([]complex128, longest)
	wave := func(k, n int) float64 { // signed wave number
		if k >= n/2 {
			k -= n
		}
		return float64(k)
	}
	i := 0
	for y := range s.ys {
		for x := range par.nx {
			for z := range par.nz {
				kx, ky, kz := wave(x, par.nx), wave(s.y0+y, par.ny), wave(z, par.nz)
				s.factor[i] = math.Exp(-4e-6 * math.Pi * math.Pi * (kx*kx + ky*ky + kz*kz))
				i++
			}
		}
	}
	return s
}

// initial fills space with NPB's random numbers, real and imaginary part in turn.
func (s *ft) initial() {
	g := newRandom(314159265)
	g.skip(2 * uint64(s.par.nx*s.par.ny) * uint64(s.z0))
	for i := range s.space {
		re := g.next()
		s.space[i] = complex(re, g.next())
	}
}

// forward transforms space to freq.
func (s *ft) forward() error {
	nx, ny, nz := s.par.nx, s.par.ny, s.par.nz
	for z := range s.zs {
		plane := s.space[z*nx*ny : (z+1)*nx*ny]
		for y := range ny {
			row := plane[y*nx : (y+1)*nx]
			copy(row, s.fx.Coefficients(s.lineOut[:nx], row))
		}
		s.columns(plane, s.fy.Coefficients)
	}
	// The blocks for the all-to-all: rank r gets its y values, as (y, x, z of this slab).
	block := len(s.space) / s.w.Size()
	for r := range s.w.Size() {
		out := s.work[r*block : (r+1)*block]
		for y := range s.ys {
			for x := range nx {
				for z := range s.zs {
					out[(y*nx+x)*s.zs+z] = s.space[(z*ny+r*s.ys+y)*nx+x]
				}
			}
		}
	}
	if err := mmpi.Alltoall(s.w, s.work, s.tmp); err != nil {
		return err
	}
	for r := range s.w.Size() {
		in := s.tmp[r*block : (r+1)*block]
		for i := range s.ys * nx {
			copy(s.freq[i*nz+r*s.zs:i*nz+(r+1)*s.zs], in[i*s.zs:(i+1)*s.zs])
		}
	}
	for i := range s.ys * nx {
		row := s.freq[i*nz : (i+1)*nz]
		copy(row, s.fz.Coefficients(s.lineOut[:nz], row))
	}
	return nil
}

// backward transforms freq to space, without a factor, and keeps freq.
func (s *ft) backward() error {
	nx, ny, nz := s.par.nx, s.par.ny, s.par.nz
	block := len(s.space) / s.w.Size()
	for i := range s.ys * nx {
		row := s.fz.Sequence(s.lineOut[:nz], s.freq[i*nz:(i+1)*nz])
		for r := range s.w.Size() {
			copy(s.work[r*block+i*s.zs:r*block+(i+1)*s.zs], row[r*s.zs:(r+1)*s.zs])
		}
	}
	if err := mmpi.Alltoall(s.w, s.work, s.tmp); err != nil {
		return err
	}
	for r := range s.w.Size() {
		in := s.tmp[r*block : (r+1)*block]
		for y := range s.ys {
			for x := range nx {
				for z := range s.zs {
					s.space[(z*ny+r*s.ys+y)*nx+x] = in[(y*nx+x)*s.zs+z]
				}
			}
		}
	}
	for z := range s.zs {
		plane := s.space[z*nx*ny : (z+1)*nx*ny]
		s.columns(plane, s.fy.Sequence)
		for y := range ny {
			row := plane[y*nx : (y+1)*nx]
			copy(row, s.fx.Sequence(s.lineOut[:nx], row))
		}
	}
	return nil
}

// columns transforms a plane along y.
func (s *ft) columns(plane []complex128, fft func(dst, src []complex128) []complex128) {
	nx, ny := s.par.nx, s.par.ny
	for x := range nx {
		for y := range ny {
			s.line[y] = plane[y*nx+x]
		}
		for y, v := range fft(s.lineOut[:ny], s.line[:ny]) {
			plane[y*nx+x] = v
		}
	}
}

func (s *ft) evolve() {
	for i, f := range s.factor {
		s.freq[i] *= complex(f, 0)
	}
}

// checksum returns the mean-scaled sum of 1024 values scattered over space.
func (s *ft) checksum() (complex128, error) {
	nx, ny, nz := s.par.nx, s.par.ny, s.par.nz
	sum := []complex128{0}
	for j := 1; j <= 1024; j++ {
		x, y, z := j%nx, 3*j%ny, 5*j%nz
		if z >= s.z0 && z < s.z0+s.zs {
			sum[0] += s.space[((z-s.z0)*ny+y)*nx+x]
		}
	}
	err := mmpi.Allreduce(s.w, nil, sum, mmpi.Sum)
	return sum[0] / complex(float64(nx*ny*nz), 0), err
}
