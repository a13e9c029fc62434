package netgauge

import (
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"

	mystat "github.com/leidenzipper/zipper/bench/stat"
)

// prtt runs a parametrized round trip: rank 0 sends n messages of len(b) bytes with a pause of d
// seconds after each but the last; rank 1 answers the last with one of the same size. It returns
// seconds on rank 0, and 0 elsewhere.
func prtt(ep Endpoint, clock Clock, n int, d float64, b []byte) (float64, error) {
	switch ep.Rank() {
	case 0:
		at := clock.Now()
		for i := range n {
			if err := ep.Send(1, b); err != nil {
				return 0, err
			}
			if d > 0 && i < n-1 {
				for c := clock.Now(); clock.Since(c) < d; {
				}
			}
		}
		err := ep.Recv(1, b)
		return clock.Since(at), err
	case 1:
		for range n {
			if err := ep.Recv(0, b); err != nil {
				return 0, err
			}
		}
		return 0, ep.Send(0, b)
	}
	return 0, nil
}

func medianPRTT(ep Endpoint, clock Clock, reps, n int, d float64, b []byte) (float64, error) {
	var t []float64
	for i := range reps + 1 {
		v, err := prtt(ep, clock, n, d, b)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			t = append(t, v)
		}
	}
	return mystat.Median(t), nil
}

// logGP measures the LogGP parameters by parametrized round trips without saturating the network
// (Hoefler, Lichei, Rehm: "Low-Overhead LogGP Parameter Assessment for Modern Interconnection
// Networks", IPDPS 2007):
//
//	PRTT(1,0,s) = 2L + 4o + 2(s-1)G
//	PRTT(n,d,s) = PRTT(1,0,s) + (n-1)·max(o+d, g+(s-1)G)
//
// g and G are the line through (PRTT(n,0,s) - PRTT(1,0,s))/(n-1) over s; o comes from a pause d =
// PRTT(1,0,s), longer than the gap; L is half the shortest round trip less 2o, as the paper takes
// it.
func logGP() Pattern {
	return Pattern{Name: "loggp", About: "LogGP parameters by parametrized round trips (PRTT)", Needs: Reliable,
		Run: runLogGP}
}

func runLogGP(ep Endpoint, o Options, clock Clock) (*Report, error) {
	rep := &Report{Columns: []string{"size (B)", "PRTT(1,0,s) (us)", "gap g+(s-1)G (us)", "o(s) (us)"}}
	var x, y []float64
	var small, overhead float64
	for _, size := range o.Sizes {
		b := make([]byte, size)
		one, err := medianPRTT(ep, clock, o.Reps, 1, 0, b)
		if err != nil {
			return nil, err
		}
		many, err := medianPRTT(ep, clock, o.Reps, burst, 0, b)
		if err != nil {
			return nil, err
		}
		paused, err := medianPRTT(ep, clock, max(5, o.Reps/4), burst, one, b)
		if err != nil {
			return nil, err
		}
		gap, ov := (many-one)/(burst-1), (paused-one)/(burst-1)-one
		if len(x) == 0 {
			small, overhead = one, ov
		}
		x, y = append(x, float64(size-1)), append(y, gap)
		rep.Rows = append(rep.Rows, []float64{float64(size), one * 1e6, gap * 1e6, ov * 1e6})
	}
	if ep.Rank() != 0 {
		return rep, nil
	}
	if len(x) < 3 {
		return nil, fmt.Errorf("netgauge: LogGP needs at least 3 message sizes, there are %d", len(x))
	}
	g, bigG := stat.LinearRegression(x, y, nil, false)
	rep.Values = map[string]float64{"L": small/2 - 2*overhead, "o": overhead, "g": g, "G": bigG}
	rep.Notes = append(rep.Notes, fmt.Sprintf("line g+(s-1)G: R² = %.4f over %d sizes",
		stat.RSquared(x, y, nil, g, bigG), len(x)))
	rep.doubt()
	return rep, nil
}

// pLogP measures the parametrized LogP of Kielmann, Bal and Verstoep ("Fast Measurement of LogP
// Parameters for Message Passing Platforms", IPDPS 2000): os(m), or(m) and g(m) for each size, and
// L:
//
//	g(0): from a burst of the smallest messages
//	g(m) = RTT(m) - RTT(0) + g(0), with RTT(m) of m bytes there and the smallest back
//	os(m): how long the send call takes
//	or(m): how long the receive call takes for a message that is there already
//	L = RTT(0)/2 - g(0).
func pLogP() Pattern {
	return Pattern{Name: "plogp", About: "parametrized LogP: os(m), or(m), g(m), L", Needs: Reliable, Run: runPLogP}
}

func runPLogP(ep Endpoint, o Options, clock Clock) (*Report, error) {
	rep := &Report{Columns: []string{"size (B)", "os (us)", "or (us)", "g (us)", "RTT (us)"}}
	least := make([]byte, o.Sizes[0])
	one, err := medianPRTT(ep, clock, o.Reps, 1, 0, least)
	if err != nil {
		return nil, err
	}
	many, err := medianPRTT(ep, clock, o.Reps, burst, 0, least)
	if err != nil {
		return nil, err
	}
	g0 := (many - one) / (burst - 1)
	for _, size := range o.Sizes {
		b := make([]byte, size)
		var os, or, rtt []float64
		for range o.Reps {
			switch ep.Rank() {
			case 0:
				at := clock.Now()
				if err := ep.Send(1, b); err != nil {
					return nil, err
				}
				os = append(os, clock.Since(at))
				if err := ep.Recv(1, least); err != nil {
					return nil, err
				}
				rtt = append(rtt, clock.Since(at))
				// Now a message of m bytes the other way; wait until it must have come.
				if err := ep.Send(1, least); err != nil {
					return nil, err
				}
				for c := clock.Now(); clock.Since(c) < 2*mystat.Median(rtt); {
				}
				at = clock.Now()
				if err := ep.Recv(1, b); err != nil {
					return nil, err
				}
				or = append(or, clock.Since(at))
			case 1:
				if err := first(ep.Recv(0, b), ep.Send(0, least)); err != nil {
					return nil, err
				}
				if err := first(ep.Recv(0, least), ep.Send(0, b)); err != nil {
					return nil, err
				}
			}
		}
		if ep.Rank() == 0 {
			m := mystat.Median(rtt)
			rep.Rows = append(rep.Rows, []float64{float64(size), mystat.Median(os) * 1e6, mystat.Median(or) * 1e6,
				(m - one + g0) * 1e6, m * 1e6})
		}
	}
	rep.Values = map[string]float64{"L": one/2 - g0, "g(0)": g0}
	rep.doubt()
	return rep, nil
}

// doubt adds a note about the parameters that came out negative. They are differences of measured
// times, and on a busy machine, or where they are small, the variation of those times is larger.
func (r *Report) doubt() {
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if r.Values[name] < 0 {
			r.Notes = append(r.Notes,
				name+" is negative: it cannot be measured here, because the times of which it is the difference vary by more than it; try a quieter machine and more --reps")
		}
	}
}
