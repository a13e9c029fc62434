package catalogue

import (
	"math"
	"sort"
)

// Curve is a function given at some sizes (ascending), linear between them and
// beyond the last two; one point is a constant.
type Curve struct{ Sizes, Values []float64 }

func (c Curve) At(m float64) float64 {
	n := len(c.Sizes)
	if n == 0 {
		return 0
	}
	if n == 1 || m <= c.Sizes[0] {
		return c.Values[0]
	}
	i := sort.SearchFloat64s(c.Sizes, m)
	i = min(max(i, 1), n-1)
	slope := (c.Values[i] - c.Values[i-1]) / (c.Sizes[i] - c.Sizes[i-1])
	return c.Values[i-1] + slope*(m-c.Sizes[i-1])
}

// PLogP is model 9: all parameters but the latency depend on the size.
type PLogP struct {
	L         float64
	G, Os, Or Curve
}

func (p PLogP) Time(m float64) float64 { return p.L + p.G.At(m) }

// Row returns the time of messages of the given sizes one after the other.
func (p PLogP) Row(sizes ...float64) float64 {
	t := p.L
	for _, m := range sizes {
		t += p.G.At(m)
	}
	return t
}

// RTT returns the time of n messages of m bytes and one empty reply.
func (p PLogP) RTT(n int, m float64) float64 {
	return p.L + float64(n)*p.G.At(m) + p.L + p.G.At(0)
}

// LogGP converts the model with a long message of big bytes: G is the slope of the gap, g and o are
// those of one byte. The conversion is usual, but not in the survey.
func (p PLogP) LogGP(big float64) LogGP {
	os, or := p.Os.At(1), p.Or.At(1)
	return LogGP{LogP{L: p.L + p.G.At(1) - os - or, Os: (os + or) / 2, Or: (os + or) / 2, Gap: p.G.At(1)},
		(p.G.At(big) - p.G.At(0)) / big}
}

// LogGPS is model 10. Up to Small bytes each costs Gs, beyond Gl; above Sync a
// message is sent after a handshake. It counts m bytes where LogGP has m-1, as
// the survey's examples do.
type LogGPS struct {
	L, O        float64 // s; O is o', the constant overhead of either side
	Os, Or      float64 // s/B
	Gs, Gl      float64 // s/B
	Small, Sync float64 // B: the model's s and S
}

// Time returns the time of a message whose receive was posted wait seconds after the send. The
// handshake waits for the receive; wait is 0 or less if the receive was posted before. The
// handshake is one empty message in each direction.
func (l LogGPS) Time(m, wait float64) float64 {
	t := l.O + m*l.Os + math.Min(m, l.Small)*l.Gs + math.Max(0, m-l.Small)*l.Gl + l.L + l.O + m*l.Or
	if m > l.Sync {
		t += 2*(2*l.O+l.L) + math.Max(0, wait-(2*l.O+l.L))
	}
	return t
}

// LoGPC is model 11: LogGP and the contention of a 2-D mesh.
type LoGPC struct {
	LogGP
	Cn float64 // s
}

func (l LoGPC) Time(m float64) float64 { return l.LogGP.Time(m) + l.Cn }

// KimLee is model 12: beyond the breakpoint X0, whose time over two hops is T0,
// the time grows by Slope per byte, and by Delta per further hop.
type KimLee struct{ X0, T0, Slope, Delta float64 }

func (k KimLee) Time(m float64, hops int) float64 {
	return k.T0 + k.Slope*(m-k.X0) + k.Delta*float64(hops-2)
}

// Contended returns Time with up to eta messages on one channel of the route.
func (k KimLee) Contended(m float64, hops, eta int) float64 { return float64(eta) * k.Time(m, hops) }

// HiHCoHP is one level of model 13: overheads per message and per packet of
// sender and receiver, latency, and the network's rate in packets per second.
type HiHCoHP struct{ SigmaS, PiS, Lambda, Beta, SigmaR, PiR float64 }

func (h HiHCoHP) Time(packets float64) float64 {
	return h.SigmaS + h.PiS*packets + h.Lambda + (packets-1)/h.Beta + h.SigmaR + h.PiR*packets
}

// HLogGP is model 14: LogGP for unequal processes and links.
type HLogGP struct {
	Os, Or, Gap []float64
	L, G        [][]float64
}

func (h HLogGP) Time(i, j int, m float64) float64 {
	return h.L[i][j] + h.Os[i] + h.Or[j] + (m-1)*h.G[i][j]
}

// Steffenel is model 15: PLogP and the signature of a network.
type Steffenel struct {
	PLogP
	Gamma, Delta func(m float64, procs int) float64
}

func (s Steffenel) Time(m float64, procs int) float64 {
	return s.PLogP.Time(m) + s.Gamma(m, procs) + s.Delta(m, procs)
}

// LogfP is model 16. The survey gives no formula; Burst follows its text.
type LogfP struct {
	LogP
	F int
}

// Burst returns the time of n small messages at once: the first F cost no gap.
func (l LogfP) Burst(n int) float64 {
	return l.Time() + l.Gap*math.Max(0, float64(n-l.F))
}

// LMO is model 17: constant and per-byte delay of every processor, latency and
// transmission rate (B/s, not its inverse) of every link.
type LMO struct {
	C, T    []float64
	L, Beta [][]float64
}

func (l LMO) Time(i, j int, m float64) float64 {
	return l.C[i] + m*l.T[i] + l.C[j] + m*l.T[j] + l.L[i][j] + m/l.Beta[i][j]
}

// RoundTrip returns the time of m bytes from i to j and an answer of back bytes.
func (l LMO) RoundTrip(i, j int, m, back float64) float64 {
	return l.Time(i, j, m) + l.Time(j, i, back)
}

// PointToTwo returns the time in which i sends m bytes each to j and k, which answer with empty
// messages. The work of i is serial, the rest is simultaneous. It is derived from Time.
func (l LMO) PointToTwo(i, j, k int, m float64) float64 {
	way := func(x int) float64 {
		return 2*(l.L[i][x]+l.C[x]) + m*(1/l.Beta[i][x]+l.T[x])
	}
	return 2*(2*l.C[i]+m*l.T[i]) + math.Max(way(j), way(k))
}

// Transfer is one step of lognP: overhead, gap and latency.
type Transfer struct{ O, Gap, L float64 }

// LognP is model 18: the transfers that a message takes through the middleware.
type LognP []Transfer

func (l LognP) Time() float64 {
	t := 0.0
	for _, x := range l {
		t += math.Max(x.Gap, x.O) + x.L
	}
	return t
}

// SharedMemory returns the model of a contiguous message through shared memory: two copies, each
// with overhead o.
func SharedMemory(o float64) LognP { return LognP{{O: o}, {O: o}} }

// BinomialBroadcast returns the time of ceil(log2 P) messages.
func (l LognP) BinomialBroadcast(procs int) float64 { return rounds(procs) * l.Time() }

// PLP is model 19 for n frames.
type PLP struct{ Ps, Pr, Gap, Lt float64 }

func (p PLP) Time(frames int) float64 { return float64(frames-1)*p.Gap + p.Lt + p.Ps + p.Pr }

// LogGPO is model 20: a rendezvous of k bytes. The survey prints two cases that
// disagree in the number of Oi; both are kept as printed.
type LogGPO struct{ Prime, Oi, L, G float64 } // O', O_i, L s; G s/B

// ReceiveLate returns the time if the receive is posted late seconds after the sender began to
// wait.
func (l LogGPO) ReceiveLate(k, late float64) float64 {
	return 2*(2*l.Prime+l.L) + late + 2*l.Oi + l.G*(k-1) + l.L
}

// ReceiverWaits returns the time if the receiver began to wait early seconds before.
func (l LogGPO) ReceiverWaits(k, early float64) float64 {
	return 2*(2*l.Prime+l.L) + l.Oi + l.G*(k-1) + l.L + early
}

// Overlap returns the part of an operation that computation of c seconds can hide, where o is the
// overhead that it cannot hide.
func Overlap(c, o float64) float64 { return c / (c + o) }

// LogGOPS is model 21: overhead per byte as well.
type LogGOPS struct {
	LogGP
	O float64 // s/B
}

func (l LogGOPS) Time(m float64) float64 { return l.LogGP.Time(m) + (m-1)*l.O }

// LogGPH is model 22: one LogGP per level, 0 the innermost.
type LogGPH []LogGP

func (l LogGPH) Time(level int, m float64) float64 { return l[level].Time(m) }

// Broadcast returns the time of a binomial broadcast among one process of each node at the outer
// level, then one within each node at the inner level. The survey specifies a broadcast at both
// levels, without an algorithm.
func (l LogGPH) Broadcast(outer, inner, nodes, perNode int, m float64) float64 {
	return rounds(nodes)*l[outer].Time(m) + rounds(perNode)*l[inner].Time(m)
}

// MLognP is model 23: the costs of the transfers of each channel.
type MLognP map[string][]float64

func (l MLognP) Time(channel string) float64 {
	t := 0.0
	for _, o := range l[channel] {
		t += o
	}
	return t
}

// Chan is model 24: averaged times measured under contention, per level.
type Chan struct {
	Average []Curve // per level, by size
	Beta    float64 // bytes per element
	Delta   float64 // iterations
}

// Time returns the time in seconds of an exchange of elements at a level.
func (c Chan) Time(level int, elements float64) float64 {
	return c.Average[level].At(c.Beta * elements)
}

// Communication is the sum over levels of twice the given exchanges (each goes
// both ways).
func (c Chan) Communication(elements [][]float64) float64 {
	t := 0.0
	for level, es := range elements {
		for _, e := range es {
			t += 2 * c.Time(level, e)
		}
	}
	return t
}

// Execution is (computation + communication - saving)*Delta.
func (c Chan) Execution(computation, communication, saving float64) float64 {
	return (computation + communication - saving) * c.Delta
}

// TauLop is one channel of model 25: overhead and the time of one of tau
// concurrent transfers.
type TauLop struct {
	O func(m float64) float64
	L func(m float64, tau int) float64
}

// Time returns the time in seconds of a message of m bytes in transfers of which tau[j] run at
// once.
func (t TauLop) Time(m float64, tau ...int) float64 {
	sum := t.O(m)
	for _, k := range tau {
		sum += t.L(m, k)
	}
	return sum
}

// Segmented is k segments of s bytes through shared memory, the copy in of one
// beside the copy out of the one before.
func (t TauLop) Segmented(m, s float64, k int) float64 {
	return t.O(m) + 2*t.L(s, 1) + float64(k-1)*t.L(s, 2)
}

// BinomialBroadcast is round i with 2^i concurrent messages of the given number
// of transfers each.
func (t TauLop) BinomialBroadcast(m float64, procs, transfers int) float64 {
	sum := 0.0
	for i := range int(rounds(procs)) {
		tau := make([]int, transfers)
		for j := range tau {
			tau[j] = 1 << i
		}
		sum += t.Time(m, tau...)
	}
	return sum
}
