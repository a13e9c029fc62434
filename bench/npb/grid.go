package npb

// grid is one rank's box of a periodic 3-D field with one layer of ghost cells all around: value
// (x,y,z), with x = 1…nx inside, at (z·(ny+2) + y)·(nx+2) + x.
type grid struct {
	nx, ny, nz int
	v          []float64
}

func newGrid(nx, ny, nz int) *grid {
	return &grid{nx, ny, nz, make([]float64, (nx+2)*(ny+2)*(nz+2))}
}

// row returns the x line at (y,z), ghosts included.
func (g *grid) row(y, z int) []float64 {
	w := g.nx + 2
	at := (z*(g.ny+2) + y) * w
	return g.v[at : at+w : at+w]
}

func (g *grid) inside(f func(row []float64, y, z int)) {
	for z := 1; z <= g.nz; z++ {
		for y := 1; y <= g.ny; y++ {
			f(g.row(y, z)[1:g.nx+1], y, z)
		}
	}
}

// The four stencils of MG. t1 and t2 hold sums over the neighbours in y and z of one x line: t1 the
// four nearest, t2 the four diagonal ones.

func sums(g *grid, y, z int, t1, t2 []float64) {
	n, s, u, d := g.row(y-1, z), g.row(y+1, z), g.row(y, z-1), g.row(y, z+1)
	nu, su, nd, sd := g.row(y-1, z-1), g.row(y+1, z-1), g.row(y-1, z+1), g.row(y+1, z+1)
	t1, t2 = t1[:len(n)], t2[:len(n)]
	s, u, d, nu, su, nd, sd = s[:len(n)], u[:len(n)], d[:len(n)], nu[:len(n)], su[:len(n)], nd[:len(n)], sd[:len(n)]
	for i := range n {
		t1[i] = n[i] + s[i] + u[i] + d[i]
		t2[i] = nu[i] + su[i] + nd[i] + sd[i]
	}
}

// residual computes r = v - A·u, A with weights a0 (centre), 0 (faces), a2 (edges), a3 (corners). v
// may be r.
func residual(u, v, r *grid, a0, a2, a3 float64, t1, t2 []float64) {
	for z := 1; z <= u.nz; z++ {
		for y := 1; y <= u.ny; y++ {
			sums(u, y, z, t1, t2)
			ur, vr, rr := u.row(y, z), v.row(y, z), r.row(y, z)
			n := len(ur)
			vr, rr, p, q := vr[:n], rr[:n], t1[:n], t2[:n]
			for i := 1; i < n-1; i++ {
				rr[i] = vr[i] - a0*ur[i] - a2*(q[i]+p[i-1]+p[i+1]) - a3*(q[i-1]+q[i+1])
			}
		}
	}
}

// smooth computes u += C·r with weights c0, c1 (faces), c2 (edges), 0 (corners).
func smooth(r, u *grid, c0, c1, c2 float64, t1, t2 []float64) {
	for z := 1; z <= u.nz; z++ {
		for y := 1; y <= u.ny; y++ {
			sums(r, y, z, t1, t2)
			rr, ur := r.row(y, z), u.row(y, z)
			n := len(rr)
			ur, p, q := ur[:n], t1[:n], t2[:n]
			for i := 1; i < n-1; i++ {
				ur[i] += c0*rr[i] + c1*(rr[i-1]+rr[i+1]+p[i]) + c2*(q[i]+p[i-1]+p[i+1])
			}
		}
	}
}

// restrict computes the coarse field by full weighting; coarse point j lies at fine point 2j.
func restrict(fine, coarse *grid, t1, t2 []float64) {
	for z := 1; z <= coarse.nz; z++ {
		for y := 1; y <= coarse.ny; y++ {
			sums(fine, 2*y, 2*z, t1, t2)
			f, c := fine.row(2*y, 2*z), coarse.row(y, z)
			for x := 1; x <= coarse.nx; x++ {
				i := 2 * x
				c[x] = 0.5*f[i] + 0.25*(f[i-1]+f[i+1]+t1[i]) + 0.125*(t2[i]+t1[i-1]+t1[i+1]) + 0.0625*(t2[i-1]+t2[i+1])
			}
		}
	}
}

// interpolate adds the trilinear interpolation of coarse to fine, ghosts included.
func interpolate(coarse, fine *grid) {
	n := coarse.nx + 2
	z1, z2, z3 := make([]float64, n), make([]float64, n), make([]float64, n)
	for z := 0; z <= coarse.nz; z++ {
		for y := 0; y <= coarse.ny; y++ {
			c, cy, cz, cyz := coarse.row(y, z), coarse.row(y+1, z), coarse.row(y, z+1), coarse.row(y+1, z+1)
			for i := range n {
				z1[i] = cy[i] + c[i]
				z2[i] = cz[i] + c[i]
				z3[i] = cyz[i] + cz[i] + z1[i]
			}
			f, fy, fz, fyz := fine.row(2*y, 2*z), fine.row(2*y+1, 2*z), fine.row(2*y, 2*z+1), fine.row(2*y+1, 2*z+1)
			for x := 0; x <= coarse.nx; x++ {
				i := 2 * x
				f[i] += c[x]
				f[i+1] += 0.5 * (c[x+1] + c[x])
				fy[i] += 0.5 * z1[x]
				fy[i+1] += 0.25 * (z1[x] + z1[x+1])
				fz[i] += 0.5 * z2[x]
				fz[i+1] += 0.25 * (z2[x] + z2[x+1])
				fyz[i] += 0.25 * z3[x]
				fyz[i+1] += 0.125 * (z3[x] + z3[x+1])
			}
		}
	}
}
