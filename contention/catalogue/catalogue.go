// Package catalogue has the communication models of the survey by Rico-Gallego,
// Díaz-Martín, Manumachu and Lastovetsky, "A Survey of Communication
// Performance Models for High-Performance Computing" (ACM Computing Surveys
// 2019), Table 1: each as a type with its parameters and its formulas.
//
// Times are in seconds and sizes in bytes if the parameters are (any consistent
// units do: the formulas have no constants). m is the message size, P the number
// of processes. Parameters must be finite and not negative; the types do not
// check. All methods are pure and safe for concurrent use.
package catalogue

import "math"

// Info describes a communication model of the survey in words.
type Info struct {
	Number     int    // number in the survey's Table 1, from 1
	Name       string // name of the model
	Year       int    // year of its publication
	Base       string // foundational or derived
	Parameters string // names, with units
	Level      string // hardware or middleware parameters
	Target     string // networks or machines that the model is for
	Formula    string // formula of the time of one message
	Use        string // purpose of the model
	Note       string // contradictions and gaps of the source
}

// Models returns the description of each model in the survey's Table 1.
func Models() []Info {
	return []Info{
		{1, "Postal", 1992, "foundational", "lambda s", "hardware", "homogeneous clusters", "lambda", "latency only",
			""},
		{2, "Hockney", 1994, "foundational", "alpha s, beta s/B", "hardware", "homogeneous clusters", "alpha + m*beta",
			"latency and bandwidth; choice of collectives in MPICH, SimGrid, HPL",
			"gives scatter and recursive-doubling allgather one formula although the second moves far more data"},
		{3, "LogP", 1993, "foundational", "L s, o s (or o_s, o_r), g s, P", "hardware", "homogeneous clusters",
			"o + L + o (short messages)", "algorithm design; ceil(L/g) messages in flight", ""},
		{4, "LogGP", 1995, "derived", "LogP and G s/B", "hardware", "homogeneous clusters", "2o + L + (m-1)G",
			"long messages", "the survey's 2o is damaged in print"},
		{5, "LoPC", 1997, "derived", "S_l s, S_o s", "hardware", "homogeneous clusters", "S_l + S_o",
			"receiver contention of active messages", "no method of measuring is given"},
		{6, "Banikazemi", 1999, "derived", "S_c, X_c, R_c s; S_m, X_m, R_m s/B", "hardware",
			"heterogeneous nodes, homogeneous network", "(S_c+S_m*m) + (X_c+X_m*m) + (R_c+R_m*m)",
			"collectives on unequal workstations", ""},
		{7, "Tam & Wang", 1999, "derived", "O_s(m), g(m), L(m,p), O_r(m), U_r(m) s; b B", "hardware",
			"homogeneous clusters", "O_s + (k-1)g + L + O_r + U_r, k = m/b", "contention in network and receiver",
			"no method of measuring is given; k is rounded up here"},
		{8, "Bhat", 1999, "derived", "T_ij s, beta_ij s/B", "hardware", "heterogeneous", "T_ij + beta_ij*m",
			"grid broadcast heuristics", "no method of measuring is given"},
		{9, "PLogP", 2000, "derived", "L s; g(m), o_s(m), o_r(m) s", "hardware", "homogeneous clusters, WAN",
			"L + g(m)", "LAN and WAN collectives, segment choice at run time", "how to measure o_s is unclear"},
		{10, "LogGPS", 2001, "derived", "L, o' s; O_s, O_r, G_s, G_l s/B; s, S B", "hardware", "homogeneous clusters",
			"o' + m*O_s + min(m,s)*G_s + max(0,m-s)*G_l + L + o' + m*O_r; above S plus the handshake",
			"eager/rendezvous switch", "counts m bytes where LogGP counts m-1"},
		{11, "LoGPC", 2001, "derived", "LogGP and C_n s", "hardware", "2-D mesh", "o_s + L + (m-1)G + C_n + o_r",
			"mesh contention", "C_n comes from an M/G/1 queue the survey does not give"},
		{12, "Kim & Lee", 2001, "derived", "x0 B, T(x0,h) s, S s/B, delta s/hop, h, eta_max", "hardware", "Myrinet",
			"T(x0,h) + S(m-x0) + delta(h-2); contended: eta_max times that", "wormhole contention", ""},
		{13, "HiHCoHP", 2001, "derived", "sigma, pi, lambda s; beta 1/s; kappa", "hardware", "multi-level grids",
			"sigma_s + pi_s*p + lambda + (p-1)/beta + sigma_r + pi_r*p, p packets", "multi-level broadcast and reduce",
			"no method of measuring is given"},
		{14, "HLogGP", 2006, "derived", "o_s, o_r, g vectors s; L s, G s/B matrices", "hardware", "heterogeneous",
			"L_ij + o_s(i) + o_r(j) + (m-1)G_ij", "matrix codes", ""},
		{15, "Steffenel", 2006, "derived", "PLogP and gamma(m,P), delta(m,P) s", "hardware", "homogeneous clusters",
			"L + g(m) + gamma + delta", "all-to-all by a network signature", ""},
		{16, "LogfP", 2006, "derived", "LogP and f messages", "hardware", "InfiniBand",
			"none given: the first f small messages cost no gap, then g each; o_r = 0 with RDMA",
			"small-message barrier on InfiniBand", "no closed formula: Burst here follows the text"},
		{17, "LMO", 2006, "derived", "C_i s, t_i s/B, L_ij s, beta_ij B/s (a rate)", "hardware", "heterogeneous",
			"C_i + m*t_i + C_j + m*t_j + L_ij + m/beta_ij", "collectives on switched Ethernet with unequal nodes", ""},
		{18, "lognP", 2007, "foundational", "o_i, g_i, l_i s per transfer", "middleware", "homogeneous",
			"sum over transfers of max(g_i,o_i) + l_i", "middleware cost, strided data", ""},
		{19, "PLP", 2008, "derived", "P_s, P_r, G, L_t s", "hardware", "heterogeneous",
			"L + P_s + P_r, L = (n-1)G + L_t, n frames", "segments, hierarchical", "no method of measuring is given"},
		{20, "LogGPO", 2009, "derived", "o split into O_w, O_i, O_c, O' s; L s, G s/B", "hardware",
			"homogeneous clusters", "rendezvous, see LogGPO", "overlap of nonblocking MPI",
			"the two printed cases disagree in the number of O_i; kept as printed"},
		{21, "LogGOPS", 2009, "derived", "LogGPS and O s/B", "hardware", "homogeneous clusters",
			"2o + L + (m-1)O + (m-1)G", "large-scale simulation (LogGOPSim)", ""},
		{22, "LogGPH", 2010, "derived", "o_i s, G_i s/B, L_i s per level", "hardware", "hierarchical",
			"2o_i + (m-1)G_i + L_i", "socket, node and network levels", ""},
		{23, "mlognP", 2012, "derived", "o_j per transfer and channel, s", "middleware", "hierarchical",
			"sum over the channel's transfers of o_j", "hierarchy of channels", ""},
		{24, "Chan", 2015, "derived", "t_avg table per level s, b_ij, beta B/element, Delta", "hardware",
			"heterogeneous grids", "t_avg(beta*b_ij)", "mesh-centric codes", "averaged benchmark with contention on"},
		{25, "tau-Lop", 2016, "derived", "o(m) s, L(m,tau) s; S, H B", "middleware", "heterogeneous",
			"o(m) + sum over transfers of L(m,tau_j)", "collectives and contention on any channel", ""},
	}
}

// Postal is model 1 of the survey: a message of any size takes Lambda seconds.
type Postal struct{ Lambda float64 }

func (p Postal) Time(float64) float64 { return p.Lambda }

// Hockney is model 2 of the survey: a message of m bytes takes Alpha + Beta*m.
type Hockney struct {
	Alpha float64 // start-up time in seconds
	Beta  float64 // time for each byte in seconds
}

func (h Hockney) Time(m float64) float64 { return h.Alpha + m*h.Beta }

// BinomialBroadcast returns the time in seconds of a binomial broadcast of m bytes among procs
// processes. A process must be able to send and receive at once, but never does two sends or two
// receives.
func (h Hockney) BinomialBroadcast(m float64, procs int) float64 {
	return h.Time(m) * rounds(procs)
}

// rounds returns the base-2 logarithm of procs, rounded up. It counts in integers, so the result
// is exact.
func rounds(procs int) float64 {
	r := 0
	for 1<<r < procs {
		r++
	}
	return float64(r)
}

// LogP is model 3 of the survey, with times in seconds for small messages. L is the latency, Os and
// Or are the overheads of sender and receiver (equal where the model does not separate them), and
// Gap is the least time between the starts of two messages of a sender.
type LogP struct{ L, Os, Or, Gap float64 } // s

func (l LogP) Time() float64 { return l.Os + l.L + l.Or }

// Capacity returns the largest number of messages from or to one process that are in flight at
// once.
func (l LogP) Capacity() int { return int(math.Ceil(l.L / l.Gap)) }

// LinearBroadcast returns the time in seconds in which one of procs processes sends a small message
// to each other one: (P-2)g + 2o + L, or 0 for fewer than two processes.
func (l LogP) LinearBroadcast(procs int) float64 {
	if procs < 2 {
		return 0
	}
	return float64(procs-2)*l.Gap + l.Time()
}

// LogGP is model 4 of the survey: LogP with a time for each byte after the first one of a message.
type LogGP struct {
	LogP
	G float64 // time for each byte after the first one, in s/B
}

func (l LogGP) Time(m float64) float64 { return l.LogP.Time() + (m-1)*l.G }

// Row returns the time in seconds of n messages of m bytes one after the other. For n = 2 it is the
// survey's 2o + 2(m-1)G + g + L, unless the sender's overhead is larger than g + (m-1)G.
func (l LogGP) Row(n int, m float64) float64 {
	return l.Time(m) + float64(n-1)*math.Max(l.Os, l.Gap+(m-1)*l.G)
}

// PRTT returns the time in seconds of Hoefler's parametrized round trip: n messages of m bytes with
// d seconds of computation between them, and one reply of m bytes at the end.
func (l LogGP) PRTT(n int, d, m float64) float64 {
	return 2*l.Time(m) + float64(n-1)*math.Max(l.Os+d, l.Gap+(m-1)*l.G)
}

// LoPC is model 5 of the survey. Sl is the latency in seconds. So is the overhead in seconds,
// including the contention at the receiver.
type LoPC struct{ Sl, So float64 }

func (l LoPC) Time(float64) float64 { return l.Sl + l.So }

// Banikazemi is model 6 of the survey: the constant (c, in seconds) and per-byte (m, in s/B) cost
// at the sender (S), in the network (X) and at the receiver (R).
type Banikazemi struct{ Sc, Sm, Xc, Xm, Rc, Rm float64 }

func (b Banikazemi) Time(m float64) float64 {
	return b.Sc + b.Sm*m + b.Xc + b.Xm*m + b.Rc + b.Rm*m
}

// TamWang is model 7 of the survey: a message is cut into packets of B bytes. The functions return
// times in seconds for a packet of m bytes: overhead Os of the sender, Gap between packets,
// overheads Or and Ur of the receiver, and latency L while procs processes run. Time takes every
// packet to be full. P is the number of running processes.
type TamWang struct {
	Os, Gap, Or, Ur func(m float64) float64
	L               func(m float64, procs int) float64
	B               float64
	P               int
}

func (t TamWang) Time(m float64) float64 {
	k := math.Max(1, math.Ceil(m/t.B))
	return t.Os(t.B) + (k-1)*t.Gap(t.B) + t.L(t.B, t.P) + t.Or(t.B) + t.Ur(t.B)
}

// Bhat is model 8 of the survey: T[i][j] is the start-up time in seconds and Beta[i][j] the time
// per byte in s/B of a message from process i to process j.
type Bhat struct{ T, Beta [][]float64 }

func (b Bhat) Time(i, j int, m float64) float64 { return b.T[i][j] + b.Beta[i][j]*m }
