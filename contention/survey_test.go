package contention_test

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/leidenzipper/zipper/contention/catalogue"
	"github.com/leidenzipper/zipper/contention/fit"
)

// survey is one entry of the vectors. Nested maps are read with sub.
type survey map[string]json.RawMessage

func (s survey) number(t *testing.T, key string) float64 {
	t.Helper()
	var f float64
	if err := json.Unmarshal(s[key], &f); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return f
}

func (s survey) sub(t *testing.T, key string) map[string]float64 {
	t.Helper()
	var m map[string]float64
	if err := json.Unmarshal(s[key], &m); err != nil || len(m) == 0 {
		t.Fatalf("%s: %v", key, err)
	}
	return m
}

func close(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Max(1e-6, math.Abs(want))) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestSurveyVectors(t *testing.T) {
	all := map[string]survey{}
	for k, raw := range load(t).Survey {
		var s survey
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		all[k] = s
	}
	if len(all) != 14 {
		t.Fatalf("%d entries, want 14", len(all))
	}
	number := func(s, k string) float64 { return all[s].number(t, k) }
	size := func(k string) float64 { m, _ := strconv.ParseFloat(k, 64); return m }

	g := catalogue.LogGP{LogP: catalogue.LogP{L: number("loggp", "L"), Os: number("loggp", "o"),
		Or:  number("loggp", "o"),
		Gap: number("loggp", "g")}, G: number("loggp", "G")}
	for k, want := range all["loggp"].sub(t, "p2p") {
		close(t, "LogGP "+k, g.Time(size(k)), want)
	}
	close(t, "LogGP two messages", g.Row(2, 5), number("loggp", "two_msgs_m5"))
	close(t, "PRTT(1,0,1001)", g.PRTT(1, 0, 1001), number("loggp", "prtt_1_0_1001"))
	close(t, "PRTT(16,0,1001)", g.PRTT(16, 0, 1001), number("loggp", "prtt_16_0_1001"))
	close(t, "PRTT(16,20,1001)", g.PRTT(16, 20, 1001), number("loggp", "prtt_16_20_1001"))
	for k, want := range all["loggp"].sub(t, "slope_16_0") {
		close(t, "Q(16,0) at "+k, (g.PRTT(16, 0, size(k))-g.PRTT(1, 0, size(k)))/15, want)
	}
	p := fit.PRTT{Sizes: []float64{1, 101, 1001}, N: 16, Delay: 20, Delayed: []float64{g.PRTT(16, 20, 1)},
		Or: []float64{2}}
	for _, m := range p.Sizes {
		p.One, p.Row = append(p.One, []float64{g.PRTT(1, 0, m)}), append(p.Row, []float64{g.PRTT(16, 0, m)})
	}
	l, err := fit.FitLogGP(p)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "fitted o_s", l.Os.Value, number("loggp", "os_from_d20"))
	close(t, "fitted L_raw", l.LRaw.Value, number("loggp", "L_est"))
	close(t, "fitted L", l.L.Value, 5)
	close(t, "fitted g", l.Gap.Value, 4)
	close(t, "fitted G", l.G.Value, 0.01)

	close(t, "LogP", g.LogP.Time(), number("logp", "p2p"))
	for k, want := range all["logp"].sub(t, "bcast_linear") {
		close(t, "LogP linear broadcast "+k, g.LinearBroadcast(int(size(k))), want)
	}
	close(t, "LogP capacity", float64(g.Capacity()), number("logp", "capacity"))

	h := catalogue.Hockney{Alpha: number("hockney", "alpha"), Beta: number("hockney", "beta")}
	close(t, "Hockney", h.Time(1<<20), number("hockney", "p2p_1MiB"))
	close(t, "Hockney binomial 16", h.BinomialBroadcast(1<<20, 16), number("hockney", "binomial_P16_1MiB"))
	close(t, "Hockney binomial 9", h.BinomialBroadcast(1<<20, 9), number("hockney", "binomial_P9_1MiB"))

	gs := all["plogp"].sub(t, "g")
	pl := catalogue.PLogP{L: number("plogp", "L"), G: catalogue.Curve{Sizes: []float64{0, 1024, 65536},
		Values: []float64{gs["0"], gs["1024"], gs["65536"]}}}
	close(t, "PLogP RTT_1(0)", pl.RTT(1, 0), number("plogp", "rtt_1_0"))
	close(t, "PLogP RTT_10(65536)", pl.RTT(10, 65536), number("plogp", "rtt_10_65536"))
	close(t, "PLogP", pl.Time(65536), number("plogp", "p2p_65536"))
	close(t, "PLogP row", pl.Row(0, 1024, 65536), number("plogp", "row_of_three"))
	zero := []float64{0}
	pf, err := fit.FitPLogP(fit.Kielmann{Sizes: []float64{0, 65536}, N: 10, Row: []float64{pl.RTT(10, 0)},
		One: [][]float64{{pl.RTT(1, 0)}, {pl.RTT(1, 65536)}}, Os: [][]float64{zero, zero}, Or: [][]float64{zero, zero}})
	if err != nil {
		t.Fatal(err)
	}
	close(t, "fitted PLogP L", pf.L.Value, number("plogp", "L_recovered"))
	close(t, "fitted PLogP g", pf.G[1].Value, number("plogp", "g_recovered"))

	c, tt, ll, bb := all["lmo"].sub(t, "C"), all["lmo"].sub(t, "t"), all["lmo"].sub(t, "L"), all["lmo"].sub(t, "beta")
	pairs := func(m map[string]float64) [][]float64 {
		return [][]float64{{0, m["ij"], m["ik"]}, {m["ij"], 0, m["jk"]}, {m["ik"], m["jk"], 0}}
	}
	lmo := catalogue.LMO{C: []float64{c["i"], c["j"], c["k"]}, T: []float64{tt["i"], tt["j"], tt["k"]}, L: pairs(ll),
		Beta: pairs(bb)}
	close(t, "LMO", lmo.Time(0, 1, 1000), number("lmo", "T_ij_1000"))
	close(t, "LMO RTT_ij", lmo.RoundTrip(0, 1, 0, 0), number("lmo", "RTT_ij_0"))
	close(t, "LMO RTT_ik", lmo.RoundTrip(0, 2, 0, 0), number("lmo", "RTT_ik_0"))
	close(t, "LMO RTT_jk", lmo.RoundTrip(1, 2, 0, 0), number("lmo", "RTT_jk_0"))
	close(t, "LMO P2(0)", lmo.PointToTwo(0, 1, 2, 0), number("lmo", "P2_0"))
	close(t, "LMO P2(1000)", lmo.PointToTwo(0, 1, 2, 1000), number("lmo", "P2_1000"))
	data := fit.LMOData{P: 3, Bytes: 1000}
	for i := range 3 {
		var r0, rm [][]float64
		for j := range 3 {
			if i == j {
				r0, rm = append(r0, nil), append(rm, nil)
				continue
			}
			r0, rm = append(r0, []float64{lmo.RoundTrip(i, j, 0, 0)}),
				append(rm, []float64{lmo.RoundTrip(i, j, 1000, 0)})
		}
		data.RTT0, data.RTTm = append(data.RTT0, r0), append(data.RTTm, rm)
		j, k := (i+1)%3, (i+2)%3
		data.Triples = append(data.Triples, fit.Triple{From: i, A: j, B: k,
			Zero: []float64{lmo.PointToTwo(i, j, k, 0)}, Sized: []float64{lmo.PointToTwo(i, j, k, 1000)}})
	}
	lf, err := fit.FitLMO(data)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "fitted C_i", lf.C[0].Value, number("lmo", "C_i_recovered"))
	for i := range 3 {
		close(t, "fitted C", lf.C[i].Value, lmo.C[i])
		close(t, "fitted t", lf.T[i].Value, lmo.T[i])
		for j := range 3 {
			if i != j {
				close(t, "fitted L", lf.L[i][j].Value, lmo.L[i][j])
				close(t, "fitted beta", lf.Beta[i][j].Value, lmo.Beta[i][j])
			}
		}
	}

	s := catalogue.LogGPS{L: number("loggps", "L"), O: number("loggps", "o_const"), Os: number("loggps", "O_s"),
		Or: number("loggps", "O_r"),
		Gs: number("loggps", "G_s"), Gl: number("loggps", "G_l"), Small: number("loggps", "s"),
		Sync: number("loggps", "S")}
	for k, want := range all["loggps"].sub(t, "p2p") {
		close(t, "LogGPS "+k, s.Time(size(k), 0), want)
	}
	o := catalogue.LogGOPS{LogGP: catalogue.LogGP{LogP: catalogue.LogP{L: number("loggops", "L"),
		Os: number("loggops", "o"), Or: number("loggops", "o")},
		G: number("loggops", "G")}, O: number("loggops", "O")}
	close(t, "LogGOPS", o.Time(1001), number("loggops", "p2p_1001"))
	n := catalogue.SharedMemory(number("lognp", "o"))
	close(t, "lognP", n.Time(), number("lognp", "shared_memory"))
	close(t, "lognP binomial", n.BinomialBroadcast(16), number("lognp", "binomial_P16"))
	tl := catalogue.TauLop{O: func(float64) float64 { return number("taulop", "o") },
		L: func(m float64, tau int) float64 { return .001 * m * (1 + .5*float64(tau-1)) }}
	close(t, "tau-Lop segmented", tl.Segmented(3000, 1000, 3), number("taulop", "segmented_k3_S1000"))
	// The vector's broadcast has o once per round, as T^c(m) does.
	close(t, "tau-Lop binomial", tl.BinomialBroadcast(1000, 16, 1), number("taulop", "binomial_P16_one_transfer_m1000"))
	hi := catalogue.HiHCoHP{SigmaS: number("hihcohp", "sigma_s"), PiS: number("hihcohp", "pi_s"),
		Lambda: number("hihcohp", "lam"),
		Beta:   number("hihcohp", "beta"), SigmaR: number("hihcohp", "sigma_r"), PiR: number("hihcohp", "pi_r")}
	close(t, "HiHCoHP", hi.Time(number("hihcohp", "p")), number("hihcohp", "T"))
	constant := func(k string) func(float64) float64 { return func(float64) float64 { return number("tamwang", k) } }
	tw := catalogue.TamWang{Os: constant("O_s"), Gap: constant("g"), Or: constant("O_r"), Ur: constant("U_r"),
		L: func(float64, int) float64 { return number("tamwang", "L") }, B: number("tamwang", "b")}
	close(t, "Tam & Wang", tw.Time(number("tamwang", "m")), number("tamwang", "T"))
	kl := catalogue.KimLee{X0: number("kimlee", "x0"), T0: number("kimlee", "T0"), Slope: number("kimlee", "slope"),
		Delta: number("kimlee", "delta")}
	close(t, "Kim & Lee", kl.Time(number("kimlee", "m"), int(number("kimlee", "h"))), number("kimlee", "T"))
	close(t, "Kim & Lee contended", kl.Contended(number("kimlee", "m"), int(number("kimlee", "h")),
		int(number("kimlee", "eta"))), number("kimlee", "Tc"))
	for _, k := range []string{"ttest", "ttest2"} {
		var samples []float64
		var accept bool
		if json.Unmarshal(all[k]["samples"], &samples) != nil ||
			json.Unmarshal(all[k]["accept_2_5pct"], &accept) != nil {
			t.Fatal(k)
		}
		m, _ := fit.Mean(samples)
		half, err := fit.HalfWidth(samples, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		close(t, k+" mean", m.Value, number(k, "mean"))
		for what, d := range map[string]float64{"sd": m.Err*math.Sqrt(10) - number(k, "sd"),
			"half width": half - number(k, "half_width"),
			"relative":   half/m.Value - number(k, "relative")} {
			if math.Abs(d) > 3e-5 { // the vectors use t = 2.262
				t.Errorf("%s: %s is off by %v", k, what, d)
			}
		}
		if fit.Enough(samples, 0.025) != accept {
			t.Errorf("%s: accept is not %v", k, accept)
		}
		if fit.Enough(samples, 0.01) {
			t.Errorf("%s: accepted by the rule of Zhu et al.", k)
		}
	}
}
