package npb

import "math"

// sparse is one block of CG's matrix in compressed rows: row i (from 0, within the block) has
// values v[start[i]:start[i+1]] in the columns col[...] (from 0, within the block).
type sparse struct {
	start []int32
	col   []int32
	v     []float64
}

// times computes out = A·x for the block. len(out) is the number of rows.
func (a *sparse) times(x, out []float64) {
	for i := range out {
		lo, hi := a.start[i], a.start[i+1]
		v, c := a.v[lo:hi], a.col[lo:hi]
		sum := 0.0
		for k, j := range c {
			sum += v[k] * x[j]
		}
		out[i] = sum
	}
}

// makeMatrix builds the block [r0,r1)×[c0,c1) of NPB's CG matrix of order n. The matrix is the sum
// of n outer products of sparse random vectors, which have nonzer elements and one diagonal
// element, weighted so that the condition number is about 1/rcond, less shift on the diagonal. g is
// the benchmark's stream after its first number.
func makeMatrix(n, nonzer int, rcond, shift float64, g *random, r0, r1, c0, c1 int) *sparse {
	pow2 := 1
	for pow2 < n {
		pow2 *= 2
	}
	type term struct {
		col int32
		v   float64
	}
	rows := make([][]term, r1-r0)
	ratio, size := math.Pow(rcond, 1/float64(n)), 1.0
	seen := make([]int, n) // number of the last vector that used the place, + 1
	idx, val := make([]int, 0, nonzer+1), make([]float64, 0, nonzer+1)
	for i := range n {
		idx, val = idx[:0], val[:0]
		for len(idx) < nonzer { // a sparse vector: distinct places, uniform values
			v := g.next()
			at := int(float64(pow2) * g.next())
			if at >= n || seen[at] == i+1 {
				continue
			}
			seen[at] = i + 1
			idx, val = append(idx, at), append(val, v)
		}
		found := false // its element i is 1/2
		for k, at := range idx {
			if at == i {
				val[k], found = 0.5, true
			}
		}
		if !found {
			idx, val = append(idx, i), append(val, 0.5)
		}
		for k, row := range idx {
			if row < r0 || row >= r1 {
				continue
			}
			scale := size * val[k]
			for l, col := range idx {
				if col < c0 || col >= c1 {
					continue
				}
				v := val[l] * scale
				if row == col && row == i {
					v += rcond - shift
				}
				rows[row-r0] = append(rows[row-r0], term{int32(col - c0), v})
			}
		}
		size *= ratio
	}
	a := &sparse{start: make([]int32, 1, len(rows)+1)}
	place := make([]int32, c1-c0) // column → its position in a.v, while in the row
	for i, r := range rows {
		from := len(a.v)
		for _, t := range r { // equal columns are summed in the order of their vectors
			if k := place[t.col]; int(k) >= from && int(k) < len(a.v) && a.col[k] == t.col {
				a.v[k] += t.v
				continue
			}
			place[t.col] = int32(len(a.v))
			a.col, a.v = append(a.col, t.col), append(a.v, t.v)
		}
		rows[i] = nil
		a.start = append(a.start, int32(len(a.v)))
	}
	return a
}
