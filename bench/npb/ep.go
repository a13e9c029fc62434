//go:build openmpi || mpich

package npb

import (
	"fmt"
	"math"
	"time"

	"github.com/leidenzipper/zipper/mmpi"
)

// EP runs the benchmark "embarrassingly parallel": it counts pairs of Gaussian deviates by the
// polar method in square annuli. It has one reduction at the end, and runs on any number of ranks.
func EP(p *mmpi.Process, class Class) (Result, error) {
	par := map[Class]struct {
		m      uint
		sx, sy float64
	}{
		'S': {24, -3.247834652034740e+3, -6.958407078382297e+3},
		'W': {25, -2.863319731645753e+3, -6.320053679109499e+3},
		'A': {28, -4.295875165629892e+3, -1.580732573678431e+4},
		'B': {30, 4.033815542441498e+4, -2.660669192809235e+4},
		'C': {32, 4.764367927995374e+4, -8.084072988043731e+4},
	}[class]
	const batch = 1 << 16 // pairs that one jump of the generator starts
	w := p.World()
	batches := 1 << par.m / batch
	if err := w.Barrier(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	var q [10]float64
	var sx, sy float64
	for k := w.Rank(); k < batches; k += w.Size() {
		g := newRandom(271828183)
		g.skip(2 * batch * uint64(k))
		for range batch {
			x, y := 2*g.next()-1, 2*g.next()-1
			if t := x*x + y*y; t <= 1 {
				f := math.Sqrt(-2 * math.Log(t) / t)
				x, y = x*f, y*f
				q[int(max(math.Abs(x), math.Abs(y)))]++
				sx += x
				sy += y
			}
		}
	}
	all := append([]float64{sx, sy}, q[:]...)
	if err := mmpi.Allreduce(w, nil, all, mmpi.Sum); err != nil {
		return Result{}, err
	}
	t, err := slowest(w, seconds(start))
	return Result{
		Kernel: "EP", Class: class.String(), Size: fmt.Sprintf("2^%d", par.m+1), Ranks: w.Size(), Seconds: t,
		Mops:     float64(uint64(1)<<(par.m+1)) / t / 1e6,
		Verified: closeTo(all[0], par.sx, 1e-8) && closeTo(all[1], par.sy, 1e-8),
		Detail:   fmt.Sprintf("sums %.15e %.15e (official %.15e %.15e)", all[0], all[1], par.sx, par.sy),
	}, err
}

// slowest returns the largest of all ranks' times.
func slowest(w *mmpi.Comm, t float64) (float64, error) {
	v := []float64{t}
	err := mmpi.Allreduce(w, nil, v, mmpi.Max)
	return v[0], err
}
