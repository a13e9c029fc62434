package calibrate

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/contention/fit"
	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/penalty"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
)

// Graph is a set of messages of one size that start together among a cluster's hosts.
type Graph struct {
	Name  string         // name of the figure of the paper
	Hosts int            // number of hosts, which are numbered from 0
	Edges []penalty.Edge // messages, by the numbers of their hosts
}

// Graphs returns the graphs of Martinasso and Méhaut that separate the readings of rule (b). In
// that model sending and receiving do not affect each other, so hosts do both where that saves
// some. The sources with a single message, to which the rule applies, are in
//   - Fig. 2.4 and Fig. 4 A (there the last): off has a penalty of 3/2, the others 4/3 and 5/4;
//   - Fig. 3 (the last): R has 10/7, the others 3/2;
//   - Fig. 4 B: none by any reading, but the receiver is promised more than it has.
func Graphs() []Graph {
	return []Graph{
		{"Fig. 2.4", 4, []penalty.Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 3, To: 1}, {From: 1, To: 2}}},
		{"Fig. 3", 4, []penalty.Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 0, To: 3}, {From: 1, To: 3},
			{From: 1, To: 0}, {From: 2, To: 0}}},
		{"Fig. 4 A", 4, []penalty.Edge{{From: 0, To: 3}, {From: 0, To: 1}, {From: 1, To: 3}, {From: 2, To: 3},
			{From: 3, To: 1}}},
		{"Fig. 4 B", 5, []penalty.Edge{{From: 0, To: 4}, {From: 0, To: 1}, {From: 1, To: 4}, {From: 2, To: 4},
			{From: 3, To: 4}}},
	}
}

// Timed is a graph with the finish times of its messages.
type Timed struct {
	Graph
	Bytes   int         // size of each message in bytes
	Seconds [][]float64 // finish times in seconds, by repetition and then by index in Edges
}

// means returns the mean finish time of each message in seconds, and the largest half width of a 95
// % interval relative to its mean.
func (t *Timed) means() (means []float64, width float64, err error) {
	for i := range t.Edges {
		var list []float64
		for _, s := range t.Seconds {
			if len(s) != len(t.Edges) || s[i] <= 0 {
				return nil, 0, fmt.Errorf("%s: %d times %v of %d messages", t.Name, len(s), s, len(t.Edges))
			}
			list = append(list, s[i])
		}
		m, err := fit.Mean(list)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", t.Name, err)
		}
		means = append(means, m.Value)
		if h, err := fit.HalfWidth(list, 0.95); err == nil {
			width = math.Max(width, h/m.Value)
		} else {
			width = math.Inf(1)
		}
	}
	return means, width, nil
}

// predicted returns the finish time in seconds of each message by the sharing rule with the given
// name. r is the reading of rule (b) of the penalty model (penalty.Reading). lone is the rate of a
// lone message in bytes/s.
func (t *Timed) predicted(rule string, r penalty.Reading, lone float64) ([]float64, error) {
	p, err := platform.Read(strings.NewReader(fmt.Sprintf("clusters: [{name: c, hosts: %d, nic: %.0f, rule_b: %q}]",
		t.Hosts, lone, r)))
	if err != nil {
		return nil, err
	}
	var ms []platform.Message
	for _, e := range t.Edges {
		ms = append(ms, platform.Message{From: fmt.Sprint("c", e.From+1), To: fmt.Sprint("c", e.To+1),
			Bytes: big.NewRat(int64(t.Bytes), 1)})
	}
	x, err := predict.Run(p, ms, predict.Options{Sharing: rule})
	if err != nil {
		return nil, err
	}
	var times []float64
	for _, m := range x.Messages {
		times = append(times, m.Finish)
	}
	return times, nil
}

// penalties returns the penalty of each message while all are under way, which is its measured
// slowdown against a lone message of rate lone in bytes/s, with the standard error over the
// repetitions. The finish times also depend on the penalties of later phases, in which fewer
// messages are under way; these come from the penalty model with reading r.
func (t *Timed) penalties(r penalty.Reading, lone float64) ([]fit.Value, error) {
	samples := make([][]float64, len(t.Edges))
	for _, s := range t.Seconds {
		times := make([]num.Float, len(s))
		for i := range s {
			times[i] = num.Float(s[i])
		}
		rho, err := penalty.Extract(times, num.Float(t.Bytes), num.Float(1/lone),
			func(alive []int) ([]num.Float, error) {
				var edges []penalty.Edge
				for _, i := range alive {
					edges = append(edges, t.Edges[i])
				}
				return penalty.Rho[num.Float](edges, r), nil
			})
		if err != nil {
			return nil, err
		}
		for i := range rho {
			samples[i] = append(samples[i], float64(rho[i]))
		}
	}
	var list []fit.Value
	for _, s := range samples {
		m, err := fit.Mean(s)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// off returns the root mean square of predicted[i]/measured[i] - 1, the relative error of a
// prediction.
func off(predicted, measured []float64) float64 {
	sum := 0.0
	for i := range measured {
		e := predicted[i]/measured[i] - 1
		sum += e * e
	}
	return math.Sqrt(sum / float64(len(measured)))
}

// ruleB writes to the platform file w the reading of rule (b) of the penalty model
// (penalty.Reading) whose predictions are nearest to the measured times of the cluster's graphs,
// and its uncertainty. lone is the rate of a lone message in bytes/s. If no reading is near, the
// rule as a whole does not hold, and the default stays.
func (c *Cluster) ruleB(w io.Writer, lone float64) error {
	if len(c.Graphs) == 0 {
		return nil
	}
	readings := []penalty.Reading{penalty.Unmixed, penalty.Residual, penalty.Off}
	var measured, fair []float64
	by := make([][]float64, len(readings))
	width := 0.0
	for i := range c.Graphs {
		g := &c.Graphs[i]
		means, h, err := g.means()
		if err != nil {
			return err
		}
		measured, width = append(measured, means...), math.Max(width, h)
		x, err := g.predicted("max-min", 0, lone)
		if err != nil {
			return err
		}
		fair = append(fair, x...)
		for k, r := range readings {
			if x, err = g.predicted("penalty", r, lone); err != nil {
				return err
			}
			by[k] = append(by[k], x...)
		}
		if rho, err := g.penalties(penalty.Unmixed, lone); err != nil {
			fmt.Fprintf(w, "    # %s: no penalties can be derived from its times: %v\n", g.Name, err)
		} else {
			fmt.Fprintf(w, "    # %s: first penalties", g.Name)
			for i, e := range g.Edges {
				fmt.Fprintf(w, " %d>%d %.2f±%.2f", e.From+1, e.To+1, rho[i].Value, rho[i].Err)
			}
			fmt.Fprintf(w, " (standard errors, %d samples)\n", len(g.Seconds))
		}
	}
	order := []int{0, 1, 2}
	slices.SortStableFunc(order, func(a, b int) int {
		if off(by[a], measured) < off(by[b], measured) {
			return -1
		}
		return 1
	})
	best, next := order[0], order[1]
	list := fmt.Sprintf("the times of %d graphs: U %.0f %%, R %.0f %%, off %.0f %%, max-min %.0f %% away",
		len(c.Graphs), 100*off(by[0], measured), 100*off(by[1], measured), 100*off(by[2], measured),
		100*off(fair, measured))
	switch e := off(by[best], measured); {
	case e > near:
		fmt.Fprintf(w, "    rule_b: U # the default: no reading is within %.0f %% of %s; this network does not share as the penalty rule says\n",
			100*near, list)
	case off(by[next], by[best]) < width:
		fmt.Fprintf(w, "    rule_b: %q # %s; but %v and %v differ by no more than the 95 %% intervals\n",
			readings[best], list, readings[best], readings[next])
	default:
		fmt.Fprintf(w, "    rule_b: %q # %s\n", readings[best], list)
	}
	return nil
}
