package npb

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestRandomSkip(t *testing.T) {
	a, b := newRandom(314159265), newRandom(314159265)
	for range 1000 {
		a.next()
	}
	b.skip(1000)
	if a.x != b.x {
		t.Errorf("1000 steps give %d, a jump of 1000 gives %d", a.x, b.x)
	}
	// The first number of the sequence by hand: 5^13·314159265 mod 2^46.
	c := newRandom(314159265)
	if got, want := c.next(), float64((1220703125*314159265)%(1<<46))/(1<<46); got != want {
		t.Errorf("first number %v, want %v", got, want)
	}
}

// TestMatrixIsSymmetric checks that the matrix is symmetric and that its blocks fit together.
func TestMatrixIsSymmetric(t *testing.T) {
	const n = 200
	build := func(r0, r1, c0, c1 int) *sparse {
		g := newRandom(314159265)
		g.next()
		return makeMatrix(n, 5, 0.1, 10, g, r0, r1, c0, c1)
	}
	whole := build(0, n, 0, n)
	dense := make([][]float64, n)
	for i := range dense {
		dense[i] = make([]float64, n)
		for k := whole.start[i]; k < whole.start[i+1]; k++ {
			dense[i][whole.col[k]] += whole.v[k]
		}
	}
	for i := range n {
		for j := range n {
			if math.Abs(dense[i][j]-dense[j][i]) > 1e-15 {
				t.Fatalf("a(%d,%d) = %v, a(%d,%d) = %v", i, j, dense[i][j], j, i, dense[j][i])
			}
		}
	}
	block := build(50, 120, 30, 90)
	for i := range 70 {
		row := make([]float64, 60)
		for k := block.start[i]; k < block.start[i+1]; k++ {
			row[block.col[k]] += block.v[k]
		}
		for j, v := range row {
			if v != dense[50+i][30+j] {
				t.Fatalf("block element (%d,%d) is %v, in the whole matrix %v", i, j, v, dense[50+i][30+j])
			}
		}
	}
	x, out := make([]float64, n), make([]float64, n)
	x[7] = 2
	whole.times(x, out)
	for i := range n {
		if math.Abs(out[i]-2*dense[i][7]) > 1e-15 {
			t.Fatalf("A·2e7 at %d is %v, want %v", i, out[i], 2*dense[i][7])
		}
	}
}

// TestLUJacobian checks that the convective part of LU's Jacobian is the derivative of the flux;
// the rest vanishes with the other factor of the time step.
func TestLUJacobian(t *testing.T) {
	u := vec5{1.2, 0.3, -0.4, 0.5, 3.1}
	for d := range 3 {
		var b mat5
		luJacobian(&b, &u, d, 1, 1, 0, 1) // dt = t2 = 1, t1 = 0: A alone
		for k := range 5 {
			const h = 1e-6
			up, down := u, u
			up[k] += h
			down[k] -= h
			fu, fd := luFlux(&up, d), luFlux(&down, d)
			for m := range 5 {
				if got, want := b[m][k], (fu[m]-fd[m])/(2*h); math.Abs(got-want) > 1e-8 {
					t.Errorf("direction %d: A[%d][%d] = %v, the flux's derivative is %v", d, m, k, got, want)
				}
			}
		}
	}
}

// TestLUViscousJacobian checks that its viscous part is the derivative of the viscous flux by the
// second state, at equal states.
func TestLUViscousJacobian(t *testing.T) {
	u := vec5{1.2, 0.3, -0.4, 0.5, 3.1}
	for d := range 3 {
		var b mat5
		luJacobian(&b, &u, d, 1, 1, 1, 0) // -(V + diffusion)
		for k := range 5 {
			const h = 1e-6
			up, down := u, u
			up[k] += h
			down[k] -= h
			fu, fd := luViscous(&u, &up, d, 1), luViscous(&u, &down, d, 1)
			for m := range 5 {
				want := luC34 * (fu[m] - fd[m]) / (2 * h)
				if m == k {
					want += luDiff[d]
				}
				if got := -b[m][k]; math.Abs(got-want) > 1e-7 {
					t.Errorf("direction %d: V[%d][%d] = %v, the flux's derivative is %v", d, m, k, got, want)
				}
			}
		}
	}
}

func TestSolve(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var b mat5
	var x vec5
	for i := range 5 {
		x[i] = rng.Float64()
		for j := range 5 {
			b[i][j] = rng.Float64() - 0.5
		}
		b[i][i] += 4
	}
	var rhs vec5
	b.subtract(&rhs, -1, &x) // rhs = B·x
	c := b
	c.solve(&rhs)
	for i := range 5 {
		if math.Abs(rhs[i]-x[i]) > 1e-12 {
			t.Errorf("x[%d] = %v, want %v", i, rhs[i], x[i])
		}
	}
}

// TestGridStencilsOnConstants checks that interpolating a constant gives the constant, restricting
// it gives four times the constant, and that the Poisson operator annihilates it.
func TestGridStencilsOnConstants(t *testing.T) {
	fill := func(g *grid, v float64) *grid {
		for i := range g.v {
			g.v[i] = v
		}
		return g
	}
	t1, t2 := make([]float64, 18), make([]float64, 18)
	coarse, fine := fill(newGrid(4, 4, 4), 3), newGrid(8, 8, 8)
	interpolate(coarse, fine)
	fine.inside(func(row []float64, y, z int) {
		for x, v := range row {
			if math.Abs(v-3) > 1e-14 {
				t.Fatalf("interpolated %v at (%d,%d,%d)", v, x+1, y, z)
			}
		}
	})
	fill(fine, 3)
	restrict(fine, coarse, t1, t2)
	coarse.inside(func(row []float64, _, _ int) {
		for _, v := range row {
			// the weights sum to 4: a coarse cell's residual stands for twice the spacing squared
			if math.Abs(v-4*3) > 1e-13 {
				t.Fatalf("restricted %v", v)
			}
		}
	})
	r := newGrid(8, 8, 8)
	residual(fine, newGrid(8, 8, 8), r, -8.0/3, 1.0/6, 1.0/12, t1, t2)
	r.inside(func(row []float64, _, _ int) {
		for _, v := range row {
			if math.Abs(v) > 1e-13 {
				t.Fatalf("the operator gives %v for a constant", v)
			}
		}
	})
}

func TestClasses(t *testing.T) {
	for _, s := range []string{"S", "W", "A", "B", "C"} {
		if c, err := ParseClass(s); err != nil || c.String() != s {
			t.Errorf("class %s: %v, %v", s, c, err)
		}
	}
	for _, s := range []string{"", "s", "D", "AB"} {
		if _, err := ParseClass(s); err == nil {
			t.Errorf("class %q was accepted", s)
		}
	}
}

// TestUnsuitableNumberOfRanksIsRefused checks that an unsuitable number of ranks is known before
// any rank is started.
func TestUnsuitableNumberOfRanksIsRefused(t *testing.T) {
	for _, name := range names {
		if err := Check(strings.ToLower(name), 4); err != nil {
			t.Error(err)
		}
		if err := Check(name, 3); (err == nil) != (name == "EP") {
			t.Errorf("%s on 3 ranks: %v", name, err)
		}
	}
	if err := Check("bt", 4); err == nil || !strings.Contains(err.Error(), "there are EP") {
		t.Errorf("a kernel that is not there: %v", err)
	}
}
