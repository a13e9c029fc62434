// Package penalty is the model of Martinasso and Méhaut, "A Contention-Aware
// Performance Model for HPC-Based Networks: A Case Study of the InfiniBand
// Network" (Euro-Par 2011). On one switch with credit flow control, a transfer
// that shares its sender or receiver is slowed by a penalty rho >= 1. That
// follows from the graph of the transfers under way alone.
//
// The time per byte of a transfer is alpha*rho, alpha the inverse bandwidth of
// a lone transfer. Let out(v) and in(v) be the numbers of transfers that leave
// and enter v. Eout(e) are the edges that leave e's source (e included), and
// Conf(e) those that enter e's destination from another source. Then
//
//	rho(e) = max over f in Eout(e) of out(s) + k(f)
//
// and k, in this order:
//
//	(a) 0 if Conf(e) is empty, or if in(d) <= out(s) and every source of
//	    Conf(e) has out equal to out(s);
//	(b) 1/(max of rho over Conf(e) - 1), see Reading;
//	(c) the sum over f in Eout(e), g in Conf(f) of 1/out(source of g).
//
// Errata of the paper that are corrected here: (a) prints in(d)=0, which is
// impossible for an edge into d; equation (3) prints the length of a step as
// T_i-T_(i-1) where the common step length T_j-T_(j-1) is meant (see Extract);
// the list of penalties of Fig. 4 Graph A gives e 1.5, its own times need 1.25.
//
// All functions are pure and safe for concurrent use.
package penalty

import (
	"fmt"

	"github.com/leidenzipper/zipper/contention/num"
)

// Edge is one transfer under way from one vertex (host or zipper) to another. Vertices are small
// non-negative numbers.
type Edge struct{ From, To int }

// Reading says under which conditions rule (b) of the penalty model applies: a source with a single
// transfer gets the part of the receiving link that its competitors there leave. The paper's own
// numbers contradict its literal text (an in-star of any size would have rho 2), so a condition is
// added. In all readings rule (b) needs out(s)=1 and Conf(e) not empty.
type Reading int

const (
	// Unmixed, the default, requires that every source in Conf(e) has out > 1, and that every edge
	// conflicting with an edge of such a source has a source with out 1. It reproduces all
	// published numbers except one error.
	Unmixed Reading = iota
	// Residual requires only the first of these conditions: physically the cleanest ("take what the
	// competitor leaves"), but it misses the times of Fig. 3.
	Residual
	// Off never uses rule (b), but rule (c) in its place.
	Off
)

func (r Reading) String() string {
	switch r {
	case Unmixed:
		return "U"
	case Residual:
		return "R"
	case Off:
		return "off"
	}
	return fmt.Sprintf("Reading(%d)", int(r))
}

// ParseReading returns the reading of rule (b) with the name s: "U", "R" or "off". For any other
// name it returns an error.
func ParseReading(s string) (Reading, error) {
	for _, r := range []Reading{Unmixed, Residual, Off} {
		if s == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("rule (b) has no reading %q: use U, R or off", s)
}

// degrees has the numbers of the graph of transfers that the rules for the penalty need, by vertex.
type degrees struct {
	out, in []int // number of transfers out of and into each vertex
	// The four fields count the distinct sources that enter a vertex: their number, the number
	// with out 1, and the smallest and largest out.
	sources, single, minOut, maxOut []int
	dests                           [][]arc // distinct destinations of each source
	origins                         [][]int // distinct sources of each destination
}

type arc struct{ to, mult int }

func measure(edges []Edge) degrees {
	n := 0
	for _, e := range edges {
		n = max(n, e.From+1, e.To+1)
	}
	counts := make([]int, 6*n)
	part := func(i int) []int { return counts[i*n : (i+1)*n] }
	d := degrees{out: part(0), in: part(1), sources: part(2), single: part(3), minOut: part(4), maxOut: part(5),
		dests: make([][]arc, n), origins: make([][]int, n)}
	seen := make(map[Edge]int, len(edges))
	for _, e := range edges {
		d.out[e.From]++
		d.in[e.To]++
		if i, ok := seen[e]; ok {
			d.dests[e.From][i].mult++
			continue
		}
		seen[e] = len(d.dests[e.From])
		d.dests[e.From] = append(d.dests[e.From], arc{e.To, 1})
		d.origins[e.To] = append(d.origins[e.To], e.From)
	}
	for v, os := range d.origins {
		d.sources[v] = len(os)
		for i, s := range os {
			o := d.out[s]
			if o == 1 {
				d.single[v]++
			}
			if i == 0 || o < d.minOut[v] {
				d.minOut[v] = o
			}
			d.maxOut[v] = max(d.maxOut[v], o)
		}
	}
	return d
}

// ruleA reports whether rule (a) of the penalty model holds for the transfers from vertex s to
// vertex to: the receiver has no other source, or all its sources send equally many transfers and
// it receives no more than s sends.
func (d *degrees) ruleA(s, to int) bool {
	if d.sources[to] == 1 {
		return true
	}
	return d.in[to] <= d.out[s] && d.minOut[to] == d.out[s] && d.maxOut[to] == d.out[s]
}

// ruleB reports whether rule (b) of the penalty model holds by reading r for the transfer from
// vertex s to vertex to: s sends no other transfer, and all other sources of the receiver send
// several. Unmixed also has the condition in its comment, and Off never holds.
func (d *degrees) ruleB(s, to int, r Reading) bool {
	if r == Off || d.out[s] != 1 || d.single[to] != 1 {
		return false // single counts s itself
	}
	if r == Residual {
		return true
	}
	for _, other := range d.origins[to] {
		if other == s {
			continue
		}
		for _, a := range d.dests[other] {
			if d.sources[a.to]-d.single[a.to] > 1 {
				return false // one more source with out > 1, apart from other
			}
		}
	}
	return true
}

// Rho returns the penalty, the slowdown against a lone transfer (1 or more), of every edge, in the
// order of edges, by a reading of rule (b). Parallel edges are allowed. It panics on an edge from a
// vertex to itself or a negative vertex, so callers must validate their input.
func Rho[T num.Number[T]](edges []Edge, reading Reading) []T {
	for i, e := range edges {
		if e.From == e.To || e.From < 0 || e.To < 0 {
			panic(fmt.Sprintf("penalty: edge %d goes from %d to %d", i, e.From, e.To))
		}
	}
	d := measure(edges)
	one := num.Int[T](1)
	// entering[v] = sum over the edges into v of 1/out(source).
	entering := make([]T, len(d.out))
	for s, as := range d.dests {
		for _, a := range as {
			entering[a.to] = entering[a.to].Add(num.Int[T](int64(a.mult)).Div(num.Int[T](int64(d.out[s]))))
		}
	}
	// rho has one value for each source: the maximum in the definition, and the sum of rule (c),
	// are over all edges of the source.
	rho := make([]T, len(d.out))
	var deferred []int // sources under rule (b), whose competitors come first
	for s, as := range d.dests {
		if len(as) == 0 {
			continue
		}
		out := num.Int[T](int64(d.out[s]))
		rho[s] = out
		conflict := false
		for _, a := range as {
			switch {
			case d.ruleA(s, a.to):
			case d.ruleB(s, a.to, reading):
				deferred = append(deferred, s)
			default:
				conflict = true
			}
		}
		if !conflict {
			continue
		}
		// Conf(f) does not contain the edges of s itself, which are mult/out(s).
		var sum T
		for _, a := range as {
			conf := entering[a.to].Sub(num.Int[T](int64(a.mult)).Div(out))
			sum = sum.Add(num.Int[T](int64(a.mult)).Mul(conf))
		}
		rho[s] = out.Add(sum)
	}
	for _, s := range deferred {
		var worst T
		for _, other := range d.origins[d.dests[s][0].to] {
			if other != s {
				worst = num.Max(worst, rho[other])
			}
		}
		rho[s] = one.Add(one.Div(worst.Sub(one)))
	}
	result := make([]T, len(edges))
	for i, e := range edges {
		result[i] = rho[e.From]
	}
	return result
}

// Loads returns for each vertex the share of the receiving link that the model promises to the
// transfers into it: the sum of 1/rho. A load above 1 is more than the link has. The model does
// that for some graphs (Fig. 4 Graph B: 37/35), and so do the published numbers, so the caller has
// to warn.
func Loads[T num.Number[T]](edges []Edge, rho []T) map[int]T {
	loads := make(map[int]T)
	one := num.Int[T](1)
	for i, e := range edges {
		loads[e.To] = loads[e.To].Add(one.Div(rho[i]))
	}
	return loads
}
