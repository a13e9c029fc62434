//go:build openmpi || mpich

package npb

import (
	"math"

	"github.com/leidenzipper/zipper/mmpi"
)

// norms returns the root mean squares of residual and error over the interior, and the surface
// integral of the pressure over a box inside the cube, by the trapezoidal rule.
func (s *lu) norms() (luNorms, error) {
	sum := make([]float64, 11)
	s.interior(func(i, j, k int) {
		c := s.at(i, j, k)
		e := s.exact(i, j, k)
		for m := range 5 {
			sum[m] += s.rsd[c][m] * s.rsd[c][m]
			sum[5+m] += (e[m] - s.u[c][m]) * (e[m] - s.u[c][m])
		}
	})
	pressure := func(i, j, k int) float64 {
		u := &s.u[s.at(i, j, k)]
		return luC2 * (u[4] - 0.5*(u[1]*u[1]+u[2]*u[2]+u[3]*u[3])/u[0])
	}
	n := s.par.n
	lo, hi := [3]int{1, 1, 2}, [3]int{n - 2, n - 3, n - 2} // the box's first and last points
	owns := func(i, j int) bool { return i >= s.i0 && i < s.i1 && j >= s.j0 && j < s.j1 }
	for i := lo[0]; i < hi[0]; i++ {
		for j := lo[1]; j < hi[1]; j++ {
			if owns(i, j) {
				for _, k := range []int{lo[2], hi[2]} {
					sum[10] += pressure(i, j, k) + pressure(i+1, j, k) + pressure(i, j+1, k) + pressure(i+1, j+1, k)
				}
			}
		}
	}
	for k := lo[2]; k < hi[2]; k++ {
		for _, j := range []int{lo[1], hi[1]} {
			for i := lo[0]; i < hi[0]; i++ {
				if owns(i, j) {
					sum[10] += pressure(i, j, k) + pressure(i+1, j, k) + pressure(i, j, k+1) + pressure(i+1, j, k+1)
				}
			}
		}
		for _, i := range []int{lo[0], hi[0]} {
			for j := lo[1]; j < hi[1]; j++ {
				if owns(i, j) {
					sum[10] += pressure(i, j, k) + pressure(i, j+1, k) + pressure(i, j, k+1) + pressure(i, j+1, k+1)
				}
			}
		}
	}
	if err := mmpi.Allreduce(s.w, nil, sum, mmpi.Sum); err != nil {
		return luNorms{}, err
	}
	points := math.Pow(float64(n-2), 3)
	var r luNorms
	for m := range 5 {
		r.residual[m], r.err[m] = math.Sqrt(sum[m]/points), math.Sqrt(sum[5+m]/points)
	}
	r.surface = 0.25 * s.h * s.h * sum[10]
	return r, nil
}
