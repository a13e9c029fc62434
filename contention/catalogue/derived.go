package catalogue

import (
	"math"
	"sort"
)

// Curve is a function given by Values at some Sizes in bytes (ascending), linear between them and
// beyond the last two, and constant below the first one. One point is a constant. A curve without
// points is 0.
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

// PLogP is model 9 of the survey: latency L in seconds, and functions of the message size for gap G
// and overheads Os and Or of sender and receiver, in seconds.
type PLogP struct {
	L         float64
	G, Os, Or Curve
}

func (p PLogP) Time(m float64) float64 { return p.L + p.G.At(m) }

// Row returns the time in seconds of messages of the given sizes in bytes, which one process sends
// one after the other.
func (p PLogP) Row(sizes ...float64) float64 {
	t := p.L
	for _, m := range sizes {
		t += p.G.At(m)
	}
	return t
}

// RTT returns the time in seconds of n messages of m bytes one after the other, and one empty
// reply.
func (p PLogP) RTT(n int, m float64) float64 {
	return p.L + float64(n)*p.G.At(m) + p.L + p.G.At(0)
}

// LogGP converts the model to LogGP. The time per byte, G, is the slope of the gap up to a message
// of big bytes; g is the gap, and o the mean of both overheads, of a message of one byte. L makes
// both models agree at one byte. The conversion is usual, but not in the survey.
func (p PLogP) LogGP(big float64) LogGP {
	os, or := p.Os.At(1), p.Or.At(1)
	return LogGP{LogP{L: p.L + p.G.At(1) - os - or, Os: (os + or) / 2, Or: (os + or) / 2, Gap: p.G.At(1)},
		(p.G.At(big) - p.G.At(0)) / big}
}

// LogGPS is model 10 of the survey. Each byte up to Small costs Gs, beyond it Gl; a message of more
// than Sync bytes is sent after a handshake. The model counts m bytes where LogGP has m-1, as the
// survey's examples do.
type LogGPS struct {
	L, O        float64 // latency, and constant overhead of either side (o'), in seconds
	Os, Or      float64 // overhead of sender and receiver for each byte, in s/B
	Gs, Gl      float64 // time in the network for each byte up to Small and beyond it, in s/B
	Small, Sync float64 // sizes in bytes: the model's s and S
}

// Time returns the time in seconds of a message of m bytes whose receive was posted wait seconds
// after the send. Above Sync bytes a handshake, of one empty message in each direction, waits for
// the receive; wait is 0 or less if the receive was posted before.
func (l LogGPS) Time(m, wait float64) float64 {
	t := l.O + m*l.Os + math.Min(m, l.Small)*l.Gs + math.Max(0, m-l.Small)*l.Gl + l.L + l.O + m*l.Or
	if m > l.Sync {
		t += 2*(2*l.O+l.L) + math.Max(0, wait-(2*l.O+l.L))
	}
	return t
}

// LoGPC is model 11 of the survey: LogGP with an added time for contention in a 2-D mesh.
type LoGPC struct {
	LogGP
	Cn float64 // added time of a message in seconds
}

func (l LoGPC) Time(m float64) float64 { return l.LogGP.Time(m) + l.Cn }

// KimLee is model 12 of the survey: a message of X0 bytes over two hops takes T0 seconds; beyond
// that the time grows by Slope (s/B) per byte, and by Delta seconds per further hop.
type KimLee struct{ X0, T0, Slope, Delta float64 }

func (k KimLee) Time(m float64, hops int) float64 {
	return k.T0 + k.Slope*(m-k.X0) + k.Delta*float64(hops-2)
}

// Contended returns the time in seconds of a message of m bytes over the given number of hops, if
// up to eta messages, including this one, share a channel of the route.
func (k KimLee) Contended(m float64, hops, eta int) float64 { return float64(eta) * k.Time(m, hops) }

// HiHCoHP is one level of model 13 of the survey: overheads in seconds per message (Sigma) and per
// packet (Pi) of sender (S) and receiver (R), latency Lambda in seconds, and the network's rate
// Beta in packets per second.
type HiHCoHP struct{ SigmaS, PiS, Lambda, Beta, SigmaR, PiR float64 }

func (h HiHCoHP) Time(packets float64) float64 {
	return h.SigmaS + h.PiS*packets + h.Lambda + (packets-1)/h.Beta + h.SigmaR + h.PiR*packets
}

// HLogGP is model 14 of the survey: LogGP with parameters for each process, Os[i], Or[i] and
// Gap[i], and for each pair of sender and receiver, L[i][j] and G[i][j].
type HLogGP struct {
	Os, Or, Gap []float64
	L, G        [][]float64
}

func (h HLogGP) Time(i, j int, m float64) float64 {
	return h.L[i][j] + h.Os[i] + h.Or[j] + (m-1)*h.G[i][j]
}

// Steffenel is model 15 of the survey: PLogP and the signature of a network, Gamma and Delta: times
// in seconds that are added to a message of m bytes among procs processes.
type Steffenel struct {
	PLogP
	Gamma, Delta func(m float64, procs int) float64
}

func (s Steffenel) Time(m float64, procs int) float64 {
	return s.PLogP.Time(m) + s.Gamma(m, procs) + s.Delta(m, procs)
}

// LogfP is model 16 of the survey: LogP in which the first F messages follow each other without a
// gap. The survey gives no formula; Burst follows its text.
type LogfP struct {
	LogP
	F int // number of messages without a gap
}

// Burst returns the time in seconds of n small messages at once: only those after the first F cost
// a gap.
func (l LogfP) Burst(n int) float64 {
	return l.Time() + l.Gap*math.Max(0, float64(n-l.F))
}

// LMO is model 17 of the survey: constant delay C[i] in seconds and per-byte delay T[i] in s/B of
// processor i, latency L[i][j] in seconds and transmission rate Beta[i][j] (B/s, not its inverse)
// of the link from i to j.
type LMO struct {
	C, T    []float64
	L, Beta [][]float64
}

func (l LMO) Time(i, j int, m float64) float64 {
	return l.C[i] + m*l.T[i] + l.C[j] + m*l.T[j] + l.L[i][j] + m/l.Beta[i][j]
}

// RoundTrip returns the time in seconds of a message of m bytes from processor i to j and an answer
// of back bytes.
func (l LMO) RoundTrip(i, j int, m, back float64) float64 {
	return l.Time(i, j, m) + l.Time(j, i, back)
}

// PointToTwo returns the time in seconds in which processor i sends m bytes each to j and k, which
// answer with empty messages. The work of i is serial, the rest is simultaneous. It is derived from
// Time.
func (l LMO) PointToTwo(i, j, k int, m float64) float64 {
	way := func(x int) float64 {
		return 2*(l.L[i][x]+l.C[x]) + m*(1/l.Beta[i][x]+l.T[x])
	}
	return 2*(2*l.C[i]+m*l.T[i]) + math.Max(way(j), way(k))
}

// Transfer is one step of LognP: overhead O, gap Gap and latency L in seconds.
type Transfer struct{ O, Gap, L float64 }

// LognP is model 18 of the survey: the transfers that a message takes through the middleware.
type LognP []Transfer

func (l LognP) Time() float64 {
	t := 0.0
	for _, x := range l {
		t += math.Max(x.Gap, x.O) + x.L
	}
	return t
}

// SharedMemory returns the model of a contiguous message through shared memory: two copies, each
// with an overhead of o seconds.
func SharedMemory(o float64) LognP { return LognP{{O: o}, {O: o}} }

// BinomialBroadcast returns the time in seconds of a binomial broadcast among procs processes:
// ceil(log2 procs) messages.
func (l LognP) BinomialBroadcast(procs int) float64 { return rounds(procs) * l.Time() }

// PLP is model 19 of the survey, with times in seconds: Ps at the sender and Pr at the receiver of
// a message, Gap for each frame after the first one, and constant latency Lt.
type PLP struct{ Ps, Pr, Gap, Lt float64 }

func (p PLP) Time(frames int) float64 { return float64(frames-1)*p.Gap + p.Lt + p.Ps + p.Pr }

// LogGPO is model 20 of the survey: a rendezvous message of k bytes. The survey prints two cases
// that disagree in the number of Oi; both are kept as printed.
type LogGPO struct{ Prime, Oi, L, G float64 } // O', O_i, L s; G s/B

// ReceiveLate returns the time in seconds of a message of k bytes if the receive is posted late
// seconds after the sender began to wait. The time includes late.
func (l LogGPO) ReceiveLate(k, late float64) float64 {
	return 2*(2*l.Prime+l.L) + late + 2*l.Oi + l.G*(k-1) + l.L
}

// ReceiverWaits returns the time in seconds of a message of k bytes if the receiver began to wait
// early seconds before. The time counts from the beginning of that wait.
func (l LogGPO) ReceiverWaits(k, early float64) float64 {
	return 2*(2*l.Prime+l.L) + l.Oi + l.G*(k-1) + l.L + early
}

// Overlap returns the part (0 to 1) of an operation that computation of c seconds can hide, where o
// seconds are the overhead that it cannot hide.
func Overlap(c, o float64) float64 { return c / (c + o) }

// LogGOPS is model 21 of the survey: LogGP with an overhead for each byte after the first one.
type LogGOPS struct {
	LogGP
	O float64 // overhead for each byte after the first one, in s/B
}

func (l LogGOPS) Time(m float64) float64 { return l.LogGP.Time(m) + (m-1)*l.O }

// LogGPH is model 22 of the survey: one LogGP for each level of a hierarchy, such as socket, node
// and network, by level; 0 is the innermost.
type LogGPH []LogGP

func (l LogGPH) Time(level int, m float64) float64 { return l[level].Time(m) }

// Broadcast returns the time in seconds of a binomial broadcast of m bytes among one process of
// each of the nodes at level outer, then one among the perNode processes of each node at level
// inner. The survey specifies a broadcast at both levels, without an algorithm.
func (l LogGPH) Broadcast(outer, inner, nodes, perNode int, m float64) float64 {
	return rounds(nodes)*l[outer].Time(m) + rounds(perNode)*l[inner].Time(m)
}

// MLognP is model 23 of the survey: the time in seconds of each transfer that a message takes, by
// name of the channel.
type MLognP map[string][]float64

func (l MLognP) Time(channel string) float64 {
	t := 0.0
	for _, o := range l[channel] {
		t += o
	}
	return t
}

// Chan is model 24 of the survey: average times measured under contention, for each level.
type Chan struct {
	Average []Curve // times in seconds by size in bytes, by level
	Beta    float64 // size of an element in bytes
	Delta   float64 // number of iterations of the program
}

// Time returns the time in seconds of one direction of an exchange of the given number of elements
// at a level.
func (c Chan) Time(level int, elements float64) float64 {
	return c.Average[level].At(c.Beta * elements)
}

// Communication returns the time in seconds of an iteration's exchanges. elements has the number of
// elements of each exchange, by level; each exchange goes both ways, so its Time counts twice.
func (c Chan) Communication(elements [][]float64) float64 {
	t := 0.0
	for level, es := range elements {
		for _, e := range es {
			t += 2 * c.Time(level, e)
		}
	}
	return t
}

// Execution returns the time of the program in seconds from those of one iteration: (computation +
// communication - saving)*Delta, where saving is the time that an iteration saves.
func (c Chan) Execution(computation, communication, saving float64) float64 {
	return (computation + communication - saving) * c.Delta
}

// TauLop is model 25 of the survey for one channel, such as shared memory: the time of a message is
// an overhead and the times of its transfers, each of which depends on the number of transfers that
// run at once.
type TauLop struct {
	O func(m float64) float64 // overhead in seconds of a message of m bytes
	// L is the time in seconds of a transfer of m bytes while tau transfers run at once.
	L func(m float64, tau int) float64
}

// Time returns the time in seconds of a message of m bytes that takes len(tau) transfers one after
// the other, where tau[j] transfers, including transfer j, run at once.
func (t TauLop) Time(m float64, tau ...int) float64 {
	sum := t.O(m)
	for _, k := range tau {
		sum += t.L(m, k)
	}
	return sum
}

// Segmented returns the time in seconds of a message of m bytes through shared memory in k segments
// of s bytes, where copying in a segment overlaps copying out the one before. m only determines the
// overhead.
func (t TauLop) Segmented(m, s float64, k int) float64 {
	return t.O(m) + 2*t.L(s, 1) + float64(k-1)*t.L(s, 2)
}

// BinomialBroadcast returns the time in seconds of a binomial broadcast of m bytes among procs
// processes, where round i (from 0) has 2^i concurrent messages, each of the given number of
// transfers.
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
