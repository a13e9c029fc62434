//go:build openmpi || mpich

package osu

import (
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi"
)

// start is a nonblocking collective on the runner's buffers; block is its blocking form.
type (
	start func(r *runner) (*mmpi.Request, error)
	block func(r *runner) error
)

func collectives() map[string]benchmark {
	all := func(r *runner) int { return r.size * r.w.Size() } // the parts of all ranks, on both sides
	even := func(r *runner) (counts, displs []int) {
		counts, displs = make([]int, r.w.Size()), make([]int, r.w.Size())
		for i := range counts {
			counts[i], displs[i] = r.size, i*r.size
		}
		return counts, displs
	}
	type forms struct {
		start start
		block block
	}
	kinds := map[string]forms{
		"barrier": {
			func(r *runner) (*mmpi.Request, error) { return r.w.Ibarrier() },
			func(r *runner) error { return r.w.Barrier() },
		},
		"bcast": {
			func(r *runner) (*mmpi.Request, error) { return mmpi.Ibcast(r.w, r.send[:r.size], 0) },
			func(r *runner) error { return mmpi.Bcast(r.w, r.send[:r.size], 0) },
		},
		"reduce": {
			func(r *runner) (*mmpi.Request, error) {
				return mmpi.Ireduce(r.w, r.floats(r.send), r.floats(r.recv), mmpi.Sum, 0)
			},
			func(r *runner) error { return mmpi.Reduce(r.w, r.floats(r.send), r.floats(r.recv), mmpi.Sum, 0) },
		},
		"allreduce": {
			func(r *runner) (*mmpi.Request, error) {
				return mmpi.Iallreduce(r.w, r.floats(r.send), r.floats(r.recv), mmpi.Sum)
			},
			func(r *runner) error { return mmpi.Allreduce(r.w, r.floats(r.send), r.floats(r.recv), mmpi.Sum) },
		},
		"gather": {
			func(r *runner) (*mmpi.Request, error) { return mmpi.Igather(r.w, r.send[:r.size], r.recv, 0) },
			func(r *runner) error { return mmpi.Gather(r.w, r.send[:r.size], r.recv, 0) },
		},
		"scatter": {
			func(r *runner) (*mmpi.Request, error) { return mmpi.Iscatter(r.w, r.send, r.recv[:r.size], 0) },
			func(r *runner) error { return mmpi.Scatter(r.w, r.send, r.recv[:r.size], 0) },
		},
		"allgather": {
			func(r *runner) (*mmpi.Request, error) { return mmpi.Iallgather(r.w, r.send[:r.size], r.recv) },
			func(r *runner) error { return mmpi.Allgather(r.w, r.send[:r.size], r.recv) },
		},
		"allgatherv": {
			func(r *runner) (*mmpi.Request, error) {
				c, d := even(r)
				return mmpi.Iallgatherv(r.w, r.send[:r.size], r.recv, c, d)
			},
			func(r *runner) error {
				c, d := even(r)
				return mmpi.Allgatherv(r.w, r.send[:r.size], r.recv, c, d)
			},
		},
		"alltoall": {
			func(r *runner) (*mmpi.Request, error) { return mmpi.Ialltoall(r.w, r.send, r.recv) },
			func(r *runner) error { return mmpi.Alltoall(r.w, r.send, r.recv) },
		},
		"alltoallv": {
			func(r *runner) (*mmpi.Request, error) {
				c, d := even(r)
				return mmpi.Ialltoallv(r.w, r.send, c, d, r.recv, c, d)
			},
			func(r *runner) error {
				c, d := even(r)
				return mmpi.Alltoallv(r.w, r.send, c, d, r.recv, c, d)
			},
		},
	}
	b := map[string]benchmark{}
	for name, f := range kinds {
		base := benchmark{unit: "us", maxSize: largestToAll, room: all, perRank: true, convert: microseconds,
			noSize: name == "barrier"}
		base.measure = timed(f.block)
		b[name] = base
		base.measure = timed(func(r *runner) error {
			q, err := f.start(r)
			if err == nil {
				_, err = q.Wait(ctx)
			}
			return err
		})
		base.overlaps = f.start
		b["i"+name] = base
	}
	return b
}

// floats returns bytes as float32, as in the original's reductions; sizes below 4 bytes reduce one
// number.
func (r *runner) floats(b []byte) []float32 {
	if len(b) < 4 {
		return []float32{0}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), max(1, r.size/4))
}

// timed returns the mean time of the operation alone, with a barrier between iterations that is not
// counted.
func timed(f block) func(*runner, int) (float64, error) {
	return func(r *runner, iterations int) (float64, error) {
		var sum float64
		for range iterations {
			t := r.p.Wtime()
			if err := f(r); err != nil {
				return 0, err
			}
			sum += r.p.Wtime() - t
			if err := r.w.Barrier(); err != nil {
				return 0, err
			}
		}
		return sum / float64(iterations), nil
	}
}

// overlap measures the part of a nonblocking collective that can hide behind computation that takes
// as long as the collective alone: 100·max(0, 1 - (total - compute)/pure).
func (r *runner) overlap(b benchmark, row *Row, iterations int) error {
	pure, err := b.measure(r, iterations)
	if err != nil {
		return err
	}
	var total, compute float64
	for range iterations {
		t := r.p.Wtime()
		q, err := b.overlaps(r)
		if err != nil {
			return err
		}
		c := r.p.Wtime()
		for r.p.Wtime()-c < pure {
		}
		compute += r.p.Wtime() - c
		if _, err := q.Wait(ctx); err != nil {
			return err
		}
		total += r.p.Wtime() - t
		if err := r.w.Barrier(); err != nil {
			return err
		}
	}
	v := []float64{pure, compute / float64(iterations), total / float64(iterations)}
	if err := mmpi.Allreduce(r.w, nil, v, mmpi.Sum); err != nil {
		return err
	}
	if r.w.Rank() == 0 && v[0] > 0 {
		n := float64(r.w.Size())
		row.Pure, row.Compute, row.Overall = v[0]/n*1e6, v[1]/n*1e6, v[2]/n*1e6
		row.Overlap = 100 * min(1, max(0, 1-(v[2]-v[1])/v[0]))
	}
	return nil
}
