//go:build openmpi || mpich

package osu

import (
	"github.com/leidenzipper/zipper/mmpi"
)

func benchmarks() map[string]benchmark {
	b := map[string]benchmark{
		"latency":   {unit: "us", maxSize: largestToOne, room: oneMessage, measure: latency(1), convert: microseconds},
		"multi_lat": {unit: "us", maxSize: largestToOne, even: true, room: oneMessage, measure: latency(0), convert: microseconds},
		"bw":        {unit: "MB/s", maxSize: largestToOne, room: oneMessage, measure: bandwidth(1, false), convert: rate(1)},
		"bibw":      {unit: "MB/s", maxSize: largestToOne, room: oneMessage, measure: bandwidth(1, true), convert: rate(2)},
		"mbw_mr":    {unit: "MB/s", maxSize: largestToOne, even: true, room: oneMessage, measure: bandwidth(0, false), convert: pairRate},
		startup: {unit: "us", noSize: true, room: func(*runner) int { return 0 }, convert: microseconds,
			measure: func(r *runner, _ int) (float64, error) { return r.init() }},
	}
	for name, c := range collectives() {
		b[name] = c
	}
	return b
}

func oneMessage(r *runner) int { return r.size }

// init returns the time that MPI_Init took in the process in which it was shortest. That process
// was the last one to start, so it has waited for no other one to start.
func (r *runner) init() (float64, error) {
	all := []float64{0}
	err := mmpi.Allreduce(r.w, []float64{r.o.Init.Seconds()}, all, mmpi.Min)
	return all[0], err
}

// pair returns this rank's partner: rank 0 and the last one if pairs is 1, else rank i and i +
// Size/2. first tells that this rank sends; partner is -1 for a rank that takes no part.
func (r *runner) pair(pairs int) (partner int, first bool) {
	n := r.w.Rank()
	if pairs == 1 {
		// The partner is the last rank, not rank 1, so that the two are in different clusters for
		// all sizes.
		last := r.w.Size() - 1
		switch n {
		case 0:
			return last, true
		case last:
			return 0, false
		}
		return -1, false
	}
	half := r.w.Size() / 2
	if n < half {
		return n + half, true
	}
	return n - half, false
}

// latency measures ping-pong, as half the round trip.
func latency(pairs int) func(*runner, int) (float64, error) {
	return func(r *runner, iterations int) (float64, error) {
		partner, first := r.pair(pairs)
		if partner < 0 {
			return 0, nil
		}
		start := r.p.Wtime()
		for range iterations {
			if first {
				if err := mmpi.Send(r.w, r.send, partner, 1); err != nil {
					return 0, err
				}
			}
			if _, err := mmpi.Recv(ctx, r.w, r.recv, partner, 1); err != nil {
				return 0, err
			}
			if !first {
				if err := mmpi.Send(r.w, r.send, partner, 1); err != nil {
					return 0, err
				}
			}
		}
		return (r.p.Wtime() - start) / float64(iterations) / 2, nil
	}
}

// bandwidth sends windows of messages, each answered by a short one, and returns seconds per
// window.
func bandwidth(pairs int, both bool) func(*runner, int) (float64, error) {
	return func(r *runner, iterations int) (float64, error) {
		partner, first := r.pair(pairs)
		if partner < 0 {
			return 0, nil
		}
		reqs := make([]*mmpi.Request, 0, 2*r.o.Window)
		ack := make([]byte, 4)
		start := r.p.Wtime()
		for range iterations {
			reqs = reqs[:0]
			for range r.o.Window {
				if both || !first {
					q, err := mmpi.Irecv(r.w, r.recv, partner, 100)
					if err != nil {
						return 0, err
					}
					reqs = append(reqs, q)
				}
				if both || first {
					q, err := mmpi.Isend(r.w, r.send, partner, 100)
					if err != nil {
						return 0, err
					}
					reqs = append(reqs, q)
				}
			}
			if err := mmpi.WaitAll(ctx, reqs...); err != nil {
				return 0, err
			}
			if first {
				if _, err := mmpi.Recv(ctx, r.w, ack, partner, 101); err != nil {
					return 0, err
				}
			} else if err := mmpi.Send(r.w, ack, partner, 101); err != nil {
				return 0, err
			}
		}
		return (r.p.Wtime() - start) / float64(iterations), nil
	}
}

func rate(directions int) func(*runner, float64) float64 {
	return func(r *runner, s float64) float64 { return float64(directions*r.size*r.o.Window) / s / 1e6 }
}

func pairRate(r *runner, s float64) float64 {
	return float64(r.size*r.o.Window*r.w.Size()/2) / s / 1e6
}
