//go:build openmpi || mpich

package osu

import (
	"context"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/mmpi"
)

var ctx = context.Background()

// runner is a running benchmark on one rank.
type runner struct {
	p    *mmpi.Process
	w    *mmpi.Comm
	name string
	o    Options
	size int
	send []byte
	recv []byte
}

// benchmark describes a benchmark.
type benchmark struct {
	unit    string
	maxSize int
	// even tells that it needs an even number of ranks, two at least.
	even   bool
	noSize bool
	// room returns the number of bytes that it sends, and receives, at r.size.
	room func(r *runner) int
	// measure runs iterations of the operation at r.size and returns this rank's seconds per
	// operation, or 0 on ranks that only take part.
	measure func(r *runner, iterations int) (float64, error)
	// perRank tells that the value is the mean over ranks, for collectives.
	perRank bool
	// convert converts seconds to the unit.
	convert func(r *runner, seconds float64) float64
	// overlaps starts the nonblocking form.
	overlaps func(r *runner) (*mmpi.Request, error)
}

// Run runs a benchmark on all processes of World, with buffers in mem; the Result is complete on
// rank 0. progress, if not nil, is called on rank 0 before the first size and after each.
func Run(p *mmpi.Process, mem *Memory, name string, o Options, progress func(*Result)) (*Result, error) {
	b, ok := benchmarks()[name]
	if !ok {
		return nil, Known(name)
	}
	w := p.World()
	if (b.even && w.Size()%2 != 0) || w.Size() < 2 {
		return nil, fmt.Errorf("osu: %s needs an even number of ranks, at least 2 (there are %d)", name, w.Size())
	}
	hi := o.MaxSize
	if hi == 0 {
		hi = b.maxSize
	}
	list := sizes(o.MinSize, hi)
	if b.noSize {
		hi, list = 0, []int{0}
	}
	res := &Result{Name: name, Unit: b.unit, Ranks: w.Size()}
	r := &runner{p: p, w: w, name: name, o: o, size: hi}
	if err := mem.hold(b.room(r)); err != nil {
		return nil, err
	}
	if w.Rank() != 0 || progress == nil {
		progress = func(*Result) {}
	}
	progress(res)
	for _, n := range list {
		r.size = n
		r.send, r.recv = mem.fill(b.room(r))
		row, err := r.size1(b)
		if err != nil {
			return nil, err
		}
		if w.Rank() == 0 {
			res.Rows = append(res.Rows, row)
		}
		progress(res)
	}
	return res, nil
}

// size1 measures one size: warm-up, then repetitions until rank 0 has enough.
func (r *runner) size1(b benchmark) (Row, error) {
	row := Row{Size: r.size}
	if _, err := b.measure(r, warmup(r.name, r.size, r.o.Warmup)); err != nil {
		return row, err
	}
	each, err := b.measure(r, 1)
	if err != nil {
		return row, err
	}
	iterations := []int64{int64(max(1, min(mostIterations, r.o.RepSeconds/max(each, shortestCall))))}
	if err := mmpi.Bcast(r.w, iterations, 0); err != nil {
		return row, err
	}
	var lows, highs []float64
	for {
		if err := r.w.Barrier(); err != nil {
			return row, err
		}
		t, err := b.measure(r, int(iterations[0]))
		if err != nil {
			return row, err
		}
		if b.perRank {
			all := make([]float64, r.w.Size())
			if err := mmpi.Gather(r.w, []float64{t}, all, 0); err != nil {
				return row, err
			}
			if r.w.Rank() == 0 {
				t = 0
				for _, v := range all {
					t += v / float64(len(all))
				}
				lows, highs = append(lows, slices.Min(all)*1e6), append(highs, slices.Max(all)*1e6)
			}
		}
		stop := []int8{0}
		if r.w.Rank() == 0 {
			row.Samples = append(row.Samples, b.convert(r, t))
			enough, reached := r.o.Rule.Enough(row.Samples)
			if enough {
				stop[0], row.Reached = 1, reached
			}
		}
		if err := mmpi.Bcast(r.w, stop, 0); err != nil {
			return row, err
		}
		if stop[0] == 1 {
			break
		}
	}
	if r.w.Rank() == 0 {
		row.Value = stat.Summarize(row.Samples)
		if b.perRank {
			row.MinRank, row.MaxRank = stat.Median(lows), stat.Median(highs)
		}
		if b.unit == "MB/s" {
			row.Rate = row.Value.Mean * 1e6 / float64(r.size)
		}
	}
	if b.overlaps != nil {
		return row, r.overlap(b, &row, int(iterations[0]))
	}
	return row, nil
}

func microseconds(_ *runner, s float64) float64 { return s * 1e6 }
