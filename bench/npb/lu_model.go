package npb

// The physics of LU: the compressible Navier–Stokes equations in five unknowns (density, three
// momenta, energy) on a cube, discretized by central differences with fourth-order dissipation, as
// the benchmark's specification defines them.

type vec5 = [5]float64
type mat5 [5][5]float64

const (
	luC1    = 1.4
	luC2    = 0.4
	luC34   = 0.1 * 1.0 // c3·c4
	luC1345 = 1.4 * 0.1 * 1.0 * 1.4
	luR43   = 4.0 / 3
	luDssp  = 0.25
)

// Diffusion coefficients in each direction, the same for all five equations.
var luDiff = [3]float64{0.75, 0.75, 1.0}

// The exact solution's polynomial coefficients: constant, linear in x, y, z, quadratic in x, y, z,
// and so on.
var luCoef = [5][13]float64{
	{2, 0, 0, 4, 5, 3, .5, .02, .01, .03, .5, .4, .3},
	{1, 0, 0, 0, 1, 2, 3, .01, .03, .02, .4, .3, .5},
	{2, 2, 0, 0, 0, 2, 3, .04, .03, .05, .3, .5, .4},
	{2, 2, 0, 0, 0, 2, 3, .03, .05, .04, .2, .1, .3},
	{5, 4, 3, 2, .1, .4, .3, .05, .04, .03, .1, .3, .2},
}

// luExact returns the exact solution at a point of the unit cube.
func luExact(x, y, z float64) (u vec5) {
	for m, c := range luCoef {
		u[m] = c[0] + (c[1]+(c[4]+(c[7]+c[10]*x)*x)*x)*x + (c[2]+(c[5]+(c[8]+c[11]*y)*y)*y)*y +
			(c[3]+(c[6]+(c[9]+c[12]*z)*z)*z)*z
	}
	return u
}

// luFlux returns the convective flux of u in direction d (0, 1, 2).
func luFlux(u *vec5, d int) (f vec5) {
	v := u[1+d] / u[0]
	q := 0.5 * (u[1]*u[1] + u[2]*u[2] + u[3]*u[3]) / u[0]
	f[0] = u[1+d]
	for m := 1; m <= 3; m++ {
		f[m] = u[m] * v
	}
	f[1+d] += luC2 * (u[4] - q)
	f[4] = (luC1*u[4] - luC2*q) * v
	return f
}

// luViscous returns the viscous flux between neighbours a and b (b after a) in direction d; t3 is
// 1/spacing.
func luViscous(a, b *vec5, d int, t3 float64) (f vec5) {
	var va, vb [4]float64 // velocities and specific energy
	for m := range 4 {
		va[m], vb[m] = a[m+1]/a[0], b[m+1]/b[0]
	}
	var kin float64
	for m := range 3 {
		f[m+1] = t3 * (vb[m] - va[m])
		kin += vb[m]*vb[m] - va[m]*va[m]
	}
	f[1+d] *= luR43
	f[4] = 0.5*(1-luC1*1.4)*t3*kin + 1.0/6*t3*(vb[d]*vb[d]-va[d]*va[d]) + luC1*1.4*t3*(vb[3]-va[3])
	return f
}

// luJacobian sets b to the matrix sign·dt·t2·A(u) - dt·t1·(V(u) + diffusion) of a neighbour with
// the state u in direction d: A is the Jacobian of the convective flux, V of the viscous one.
func luJacobian(b *mat5, u *vec5, d int, sign, dt, t1, t2 float64) {
	*b = mat5{}
	r := 1 / u[0]
	v := [3]float64{u[1] * r, u[2] * r, u[3] * r}
	e := u[4] * r
	n := 1 + d
	vv := v[0]*v[0] + v[1]*v[1] + v[2]*v[2]
	ct, dd := sign*dt*t2, dt*t1
	w := v[d]

	b[0][n] = ct
	for m := 1; m <= 3; m++ {
		k := luC34
		if m == n {
			k *= luR43
		}
		b[m][0] = ct*(-v[m-1]*w) + dd*k*r*v[m-1]
		b[m][m] = ct*w - dd*k*r
		if m != n {
			b[m][n] = ct * v[m-1]
		}
	}
	b[n][0] += ct * luC2 * 0.5 * vv
	for m := 1; m <= 3; m++ {
		if m == n {
			b[n][m] = ct*(2-luC2)*w - dd*luR43*luC34*r
		} else {
			b[n][m] = ct * (-luC2 * v[m-1])
		}
	}
	b[n][4] = ct * luC2

	b[4][0] = ct*(luC2*vv-luC1*e)*w + dd*luC1345*r*e
	for m := 1; m <= 3; m++ {
		k := luC34
		if m == n {
			k *= luR43
		}
		k -= luC1345
		b[4][0] += dd * k * r * v[m-1] * v[m-1]
		b[4][m] = ct*(-luC2*v[m-1]*w) - dd*k*r*v[m-1]
	}
	b[4][n] += ct * (luC1*e - 0.5*luC2*vv)
	b[4][4] = ct*luC1*w - dd*luC1345*r
	for m := range 5 {
		b[m][m] -= dd * luDiff[d]
	}
}

// luDiagonal sets b to the diagonal block at state u: identity plus twice, for the two sides, the
// diffusive parts of all directions.
func luDiagonal(b *mat5, u *vec5, dt float64, t1 [3]float64) {
	*b = mat5{}
	r := 1 / u[0]
	v := [3]float64{u[1] * r, u[2] * r, u[3] * r}
	all := t1[0] + t1[1] + t1[2]
	var diffusion float64
	for d, t := range t1 {
		diffusion += t * luDiff[d]
	}
	b[0][0] = 1 + 2*dt*diffusion
	b[4][0] = -2 * dt * all * luC1345 * r * r * u[4]
	for m := 1; m <= 3; m++ {
		k := luC34 * (all + (luR43-1)*t1[m-1])
		b[m][0] = -2 * dt * k * r * v[m-1]
		b[m][m] = 1 + 2*dt*k*r + 2*dt*diffusion
		k -= luC1345 * all
		b[4][0] -= 2 * dt * k * r * v[m-1] * v[m-1]
		b[4][m] = 2 * dt * k * r * v[m-1]
	}
	b[4][4] = 1 + 2*dt*all*luC1345*r + 2*dt*diffusion
}

// subtract computes x -= f·B·y.
func (b *mat5) subtract(x *vec5, f float64, y *vec5) {
	for m := range 5 {
		x[m] -= f * (b[m][0]*y[0] + b[m][1]*y[1] + b[m][2]*y[2] + b[m][3]*y[3] + b[m][4]*y[4])
	}
}

// solve replaces x by B⁻¹·x, by elimination without pivoting (the blocks are diagonally dominant).
// It destroys B.
func (b *mat5) solve(x *vec5) {
	for p := range 4 {
		inv := 1 / b[p][p]
		for m := p + 1; m < 5; m++ {
			f := inv * b[m][p]
			for n := p + 1; n < 5; n++ {
				b[m][n] -= f * b[p][n]
			}
			x[m] -= f * x[p]
		}
	}
	for m := 4; m >= 0; m-- {
		for n := m + 1; n < 5; n++ {
			x[m] -= b[m][n] * x[n]
		}
		x[m] /= b[m][m]
	}
}
