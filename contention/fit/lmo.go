package fit

import (
	"errors"
	"fmt"
	"math"

	"github.com/leidenzipper/zipper/contention/catalogue"
)

// Triple is the measurement of a processor that sends to two others, which answer with an empty
// message.
type Triple struct {
	From, A, B int // numbers of the sender and of the two receivers
	// Zero and Sized are the times in seconds, by repetition, with messages of 0 bytes and of
	// LMOData.Bytes.
	Zero, Sized []float64
}

// LMOData has the measurements for the processors 0 to P-1, in seconds. RTT0[i][j] are round trips
// between i and j of empty messages by repetition, RTTm[i][j] of Bytes out and an empty answer. One
// direction of a pair suffices. Both are needed between the sender and the receivers of each
// triple, RTT0 where a latency is wanted, and both where a rate is wanted.
type LMOData struct {
	P          int     // number of processors
	Bytes      float64 // size of a message in bytes
	RTT0, RTTm [][][]float64
	Triples    []Triple
}

// LMO has the fitted parameters: constant delay C[i] in seconds and per-byte delay T[i] in s/B of
// each processor, latency L[i][j] in seconds and rate Beta[i][j] in B/s of each pair. Latencies and
// rates of pairs that were not measured are 0.
type LMO struct {
	C, T    []Value
	L, Beta [][]Value
}

// FitLMO solves, per triple,
//
//	C_i  = (P2_i(0) - max(RTT_ij(0), RTT_ik(0)))/2
//	L_ij = RTT_ij(0)/2 - C_i - C_j
//	t_i  = (P2_i(m) - max(RTT_ij(m), RTT_ik(m)) - 2C_i)/m
//
// and then beta_ij from RTT_ij(m) = RTT_ij(0) + m(t_i + t_j + 1/beta_ij); the
// redundant values of several triples are averaged. The third follows from
// P2_i(m) = 2(2C_i+m*t_i) + max_x(2(L_ix+C_x) + m(1/beta_ix+t_x)) because
// RTT_ix(m) = 2(C_i+L_ix+C_x) + m(t_i+1/beta_ix+t_x): their difference is
// 2C_i + m*t_i. (Derived from the point-to-point formula; the survey has no
// equations.) Each processor must head a triple at least once.
func FitLMO(d LMOData) (LMO, error) {
	if d.P < 3 || !(d.Bytes > 0) || len(d.RTT0) != d.P || len(d.RTTm) != d.P {
		return LMO{}, errors.New("LMO needs three processors, a message size and round trips between them")
	}
	zero, err := roundTrips(d.P, d.RTT0)
	if err != nil {
		return LMO{}, err
	}
	sized, err := roundTrips(d.P, d.RTTm)
	if err != nil {
		return LMO{}, err
	}
	l := LMO{C: make([]Value, d.P), T: make([]Value, d.P)}
	cs, ts := make([][]Value, d.P), make([][]Value, d.P)
	for _, x := range d.Triples {
		for _, p := range []int{x.From, x.A, x.B} {
			if p < 0 || p >= d.P {
				return l, fmt.Errorf("triple %d>%d,%d: there are %d processors", x.From, x.A, x.B, d.P)
			}
		}
		p0, err := Mean(x.Zero)
		if err != nil {
			return l, fmt.Errorf("triple %d>%d,%d, empty: %w", x.From, x.A, x.B, err)
		}
		pm, err := Mean(x.Sized)
		if err != nil {
			return l, fmt.Errorf("triple %d>%d,%d: %w", x.From, x.A, x.B, err)
		}
		c := p0.minus(larger(zero[x.From][x.A], zero[x.From][x.B])).times(0.5)
		t := pm.minus(larger(sized[x.From][x.A], sized[x.From][x.B])).minus(c.times(2)).times(1 / d.Bytes)
		cs[x.From], ts[x.From] = append(cs[x.From], c), append(ts[x.From], t)
	}
	for i := range d.P {
		if len(cs[i]) == 0 {
			return l, fmt.Errorf("processor %d heads no triple", i)
		}
		l.C[i], l.T[i] = average(cs[i]), average(ts[i])
	}
	for i := range d.P {
		l.L, l.Beta = append(l.L, make([]Value, d.P)), append(l.Beta, make([]Value, d.P))
		for j := range d.P {
			if i == j || zero[i][j].Value == 0 {
				continue
			}
			l.L[i][j] = zero[i][j].times(0.5).minus(l.C[i]).minus(l.C[j])
			if sized[i][j].Value == 0 {
				continue
			}
			inverse := sized[i][j].minus(zero[i][j]).times(1 / d.Bytes).minus(l.T[i]).minus(l.T[j])
			if inverse.Value <= 0 {
				return l, fmt.Errorf("link %d-%d: the processors' delays leave %v s/B for the wire: measure more or use larger messages",
					i, j, inverse.Value)
			}
			l.Beta[i][j] = Value{1 / inverse.Value, inverse.Err / (inverse.Value * inverse.Value)}
		}
	}
	return l, nil
}

// roundTrips returns the means of samples of p processors, which has repetitions by sender and
// receiver. A pair measured in one direction only counts for both. The mean of an unmeasured pair
// is 0.
func roundTrips(p int, samples [][][]float64) ([][]Value, error) {
	m := make([][]Value, p)
	for i := range m {
		m[i] = make([]Value, p)
	}
	for i, row := range samples {
		for j, s := range row {
			if j >= p {
				return nil, fmt.Errorf("round trip %d-%d: there are %d processors", i, j, p)
			}
			if len(s) == 0 {
				continue
			}
			v, err := Mean(s)
			if err != nil {
				return nil, fmt.Errorf("round trip %d-%d: %w", i, j, err)
			}
			m[i][j] = v
			if len(samples[j]) <= i || len(samples[j][i]) == 0 {
				m[j][i] = v
			}
		}
	}
	return m, nil
}

func larger(a, b Value) Value {
	if a.Value >= b.Value {
		return a
	}
	return b
}

// average returns the mean of vs, redundant estimates of one value. Its error is the larger one of
// the error by their spread and by their own errors.
func average(vs []Value) Value {
	var xs []float64
	squares := 0.0
	for _, v := range vs {
		xs, squares = append(xs, v.Value), squares+v.Err*v.Err
	}
	m, _ := Mean(xs)
	m.Err = math.Max(m.Err, math.Sqrt(squares)/float64(len(vs)))
	return m
}

func (l LMO) Model() catalogue.LMO {
	values := func(vs []Value) (xs []float64) {
		for _, v := range vs {
			xs = append(xs, v.Value)
		}
		return xs
	}
	m := catalogue.LMO{C: values(l.C), T: values(l.T)}
	for i := range l.L {
		m.L, m.Beta = append(m.L, values(l.L[i])), append(m.Beta, values(l.Beta[i]))
	}
	return m
}
