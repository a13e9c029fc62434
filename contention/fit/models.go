package fit

import (
	"errors"
	"fmt"
	"math"

	"github.com/leidenzipper/zipper/contention/catalogue"
)

// Hockney is the time Alpha + Beta*m of a message of m bytes, in seconds, fitted by least squares
// to one-way times.
type Hockney struct{ Alpha, Beta Value }

func FitHockney(sizes, times []float64) (Hockney, error) {
	l, err := Fit(sizes, times)
	return Hockney{l.A, l.B}, err
}

func (h Hockney) Model() catalogue.Hockney {
	return catalogue.Hockney{Alpha: h.Alpha.Value, Beta: h.Beta.Value}
}

// PRTT has the measurements of Hoefler's parametrized round trip, PRTT(n,d,m): n messages of m
// bytes with d seconds between them, and one reply. Netgauge makes them in this way. Times are in
// seconds.
type PRTT struct {
	Sizes []float64   // message sizes in bytes, ascending; Sizes[0] is 1
	N     int         // number of messages in a row; 16 in Netgauge
	Delay float64     // seconds between the messages of Delayed; > g+(m-1)G
	One   [][]float64 // PRTT(1,0,m), by index in Sizes and then by repetition
	Row   [][]float64 // PRTT(N,0,m), by index in Sizes and then by repetition
	// Delayed is PRTT(N,Delay,m) for m = Sizes[0], by repetition.
	Delayed []float64
	// Or has times to receive a message that has arrived (measured as for PLogP: wait longer than
	// the round trip, then time the receive).
	Or []float64
}

// LogGP has the fitted parameters of LogGP, in seconds and s/B. Of two latencies, LRaw =
// PRTT(1,0,1)/2 contains the overheads and is an upper bound; L is LRaw without both overheads.
type LogGP struct{ L, LRaw, Os, Or, Gap, G Value }

func (l LogGP) Model() catalogue.LogGP {
	return catalogue.LogGP{LogP: catalogue.LogP{L: l.L.Value, Os: l.Os.Value, Or: l.Or.Value, Gap: l.Gap.Value},
		G: l.G.Value}
}

// FitLogGP fits LogGP to the measurements p: Q(m) = (PRTT(n,d,m)-PRTT(1,0,m))/(n-1) is g+(m-1)G for
// d = 0, and o_s+d for a large d.
func FitLogGP(p PRTT) (LogGP, error) {
	var l LogGP
	if p.N < 2 || len(p.Sizes) < 2 || p.Sizes[0] != 1 || len(p.One) != len(p.Sizes) || len(p.Row) != len(p.Sizes) {
		return l, errors.New("LogGP needs at least two sizes, the first 1 byte, rows of at least 2 messages and times for every size")
	}
	var x, y []float64
	var first Value // PRTT(1,0,1)
	for i, m := range p.Sizes {
		one, err := Mean(p.One[i])
		if err != nil {
			return l, fmt.Errorf("PRTT(1,0,%v): %w", m, err)
		}
		if i == 0 {
			first = one
		}
		for _, t := range p.Row[i] {
			x, y = append(x, m-1), append(y, (t-one.Value)/float64(p.N-1))
		}
	}
	line, err := Fit(x, y)
	if err != nil {
		return l, fmt.Errorf("PRTT(%d,0,m): %w", p.N, err)
	}
	l.Gap, l.G = line.A, line.B
	delayed, err := Mean(p.Delayed)
	if err != nil {
		return l, fmt.Errorf("PRTT(%d,%v,1): %w", p.N, p.Delay, err)
	}
	l.Os = delayed.minus(first).times(1 / float64(p.N-1))
	if l.Os.Value -= p.Delay; l.Os.Value < -2*l.Os.Err-1e-9*p.Delay || p.Delay <= l.Gap.Value {
		return l, fmt.Errorf("delay %v is not above the gap %v: o_s cannot be seen, use a longer delay", p.Delay,
			l.Gap.Value)
	}
	if l.Or, err = Mean(p.Or); err != nil {
		return l, fmt.Errorf("receive overhead: %w", err)
	}
	l.LRaw = first.times(0.5)
	l.L = l.LRaw.minus(l.Os).minus(l.Or)
	return l, nil
}

// Kielmann has the measurements for PLogP in seconds.
type Kielmann struct {
	Sizes []float64 // message sizes in bytes, ascending; Sizes[0] is 0
	N     int       // number of messages in the saturated row of empty ones
	// Row has the times of N empty messages in a row and one reply (RTT_n(0)), by repetition.
	Row []float64
	// One is RTT_1(m), Os and Or are the overheads, as repetitions per size. The survey does not
	// say how to measure o_s; the time of the send call is used.
	One, Os, Or [][]float64
}

// PLogP has the fitted latency L, and for each of Sizes the gap G and the overheads Os and Or, in
// seconds.
type PLogP struct {
	L         Value
	Sizes     []float64
	G, Os, Or []Value
}

// FitPLogP fits PLogP to the measurements k: RTT_n(m) = L + n*g(m) + L + g(0), so g(0) is the
// growth with n, L = (RTT_n(0)-(n+1)g(0))/2 and g(m) = RTT_1(m)-RTT_1(0)+g(0).
func FitPLogP(k Kielmann) (PLogP, error) {
	p := PLogP{Sizes: k.Sizes}
	n := len(k.Sizes)
	if k.N < 2 || n == 0 || k.Sizes[0] != 0 || len(k.One) != n || len(k.Os) != n || len(k.Or) != n {
		return p, errors.New("PLogP needs sizes from 0 on, times for every size and a row of at least 2 messages")
	}
	row, err := Mean(k.Row)
	if err != nil {
		return p, fmt.Errorf("RTT_%d(0): %w", k.N, err)
	}
	zero, err := Mean(k.One[0])
	if err != nil {
		return p, fmt.Errorf("RTT_1(0): %w", err)
	}
	gap := row.minus(zero).times(1 / float64(k.N-1))
	// L from RTT_1(0) = 2L + 2g(0), with gap as a function of both means.
	f := 1 / float64(k.N-1)
	p.L = Value{zero.Value/2 - gap.Value, math.Hypot((0.5+f)*zero.Err, f*row.Err)}
	for i, m := range k.Sizes {
		one, err := Mean(k.One[i])
		if err != nil {
			return p, fmt.Errorf("RTT_1(%v): %w", m, err)
		}
		g := gap
		if i > 0 {
			g = Value{one.Value - zero.Value + gap.Value, math.Hypot(one.Err, math.Hypot((1+f)*zero.Err, f*row.Err))}
		}
		p.G = append(p.G, g)
		for list, samples := range map[*[]Value][]float64{&p.Os: k.Os[i], &p.Or: k.Or[i]} {
			v, err := Mean(samples)
			if err != nil {
				return p, fmt.Errorf("overhead at %v bytes: %w", m, err)
			}
			*list = append(*list, v)
		}
	}
	return p, nil
}

func (p PLogP) Model() catalogue.PLogP {
	curve := func(vs []Value) catalogue.Curve {
		c := catalogue.Curve{Sizes: p.Sizes}
		for _, v := range vs {
			c.Values = append(c.Values, v.Value)
		}
		return c
	}
	return catalogue.PLogP{L: p.L.Value, G: curve(p.G), Os: curve(p.Os), Or: curve(p.Or)}
}

// LogGPS is a fit of the time of a message by its size up to Sync, the largest size before the jump
// of rendezvous: a line on either side of the size Small, where the slope changes.
type LogGPS struct {
	O, Gs, Gl   Value   // constant part in seconds, slopes up to Small and beyond it in s/B
	Small, Sync float64 // sizes in bytes; 0 if the data show no such size
}

// FitLogGPS fits one-way times in seconds by size in bytes (ascending). If the largest jump of time
// beyond the slope exceeds jump (seconds), the size before it is the rendezvous threshold Sync, and
// larger sizes are not fitted. Small is the size at which the lines on both sides of the best break
// of slope up to Sync meet; without a break Gl is Gs. O is the constant part: twice o' plus L,
// which cannot be separated by times alone.
func FitLogGPS(sizes, times []float64, jump float64) (LogGPS, error) {
	var l LogGPS
	if len(sizes) != len(times) || len(sizes) < 4 {
		return l, errors.New("LogGPS needs at least four sizes")
	}
	end := len(sizes)
	largest := jump
	for i := 2; i < len(sizes)-1; i++ {
		// Compare with the slopes on both sides of the gap between i-1 and i.
		before := (times[i-1] - times[i-2]) / (sizes[i-1] - sizes[i-2])
		after := (times[i+1] - times[i]) / (sizes[i+1] - sizes[i])
		if d := times[i] - times[i-1] - math.Max(before, after)*(sizes[i]-sizes[i-1]); d > largest {
			largest, end = d, i
		}
	}
	if end < len(sizes) {
		l.Sync = sizes[end-1]
	}
	first := end
	if i, ok := Split(sizes[:end], times[:end]); ok {
		first, l.Small = i, sizes[i-1]
	}
	low, err := Fit(sizes[:first], times[:first])
	if err != nil {
		return l, err
	}
	l.O, l.Gs, l.Gl = low.A, low.B, low.B
	if first < end {
		high, err := Fit(sizes[first:end], times[first:end])
		if err != nil {
			return l, err
		}
		l.Gl = high.B
		if d := l.Gs.Value - l.Gl.Value; d != 0 { // the size at which the two lines meet
			l.Small = (high.A.Value - low.A.Value) / d
		}
	}
	return l, nil
}

// TauLop has the fitted overhead and transfer times of messages over one channel, such as shared
// memory, in seconds.
type TauLop struct {
	O []Value   // overhead, by index of the message size
	L [][]Value // time of one transfer while tau run at once, as [size index][tau-1]
}

// FitTauLop fits tau-Lop. overhead has times in seconds by index of the message size and
// repetition: half a round trip of an eager message, or of a synchronous send for rendezvous. ring
// has times of tau concurrent messages in a ring, as [size index][tau-1][repetition]; each message
// takes the given number of transfers: L = (ring - overhead)/transfers.
func FitTauLop(overhead [][]float64, ring [][][]float64, transfers int) (TauLop, error) {
	var t TauLop
	if transfers < 1 || len(overhead) != len(ring) {
		return t, errors.New("tau-Lop needs at least one transfer a message and ring times for every overhead")
	}
	for i := range overhead {
		o, err := Mean(overhead[i])
		if err != nil {
			return t, fmt.Errorf("overhead of size number %d: %w", i, err)
		}
		var ls []Value
		for tau, samples := range ring[i] {
			v, err := Mean(samples)
			if err != nil {
				return t, fmt.Errorf("ring of size number %d, tau %d: %w", i, tau+1, err)
			}
			ls = append(ls, v.minus(o).times(1/float64(transfers)))
		}
		t.O, t.L = append(t.O, o), append(t.L, ls)
	}
	return t, nil
}
