// Package predict combines the models: from messages on a platform it makes a report of their
// finish times, their limits, and the effect of faster resources.
package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

// Options are the options of a prediction.
type Options struct {
	// Sharing is the rule: max-min, streams, buffered, zhu, zhu-paper or penalty. If it is empty
	// the platform's rule is used, or max-min.
	Sharing string
	// Grain is solve.Options.Grain. A negative value chooses it by the number of messages: 0 up to
	// 2000, 0.1 % up to 20 000, 1 % beyond.
	Grain float64
	// Gains doubles candidate resources, and sets that limit a message together, in turn and
	// reports the effect. Each of them takes an additional run.
	Gains bool
	// MaxGains is the largest number of single resources, and also that of sets, that Gains
	// doubles; 0 or less means 32.
	MaxGains int
	// Rates keeps every message's rate over time. It has no effect above 2000 messages.
	Rates bool
}

// ExactLimit is the number of messages up to which exact rationals are used, except by the rule
// buffered, which proceeds in steps.
const ExactLimit = 24

// Share is the part of a message's waiting time for which it waited for a resource.
type Share struct {
	Resource string `json:"resource"` // name of the resource
	// Contra means that traffic in the opposite direction limits the message.
	Contra bool    `json:"contra,omitempty"`
	Share  float64 `json:"share"` // part of the message's waiting time, from 0 to 1
}

// Span is a time in which a message's rate did not change.
type Span struct {
	From float64 `json:"from_s"` // time in seconds at which the span begins
	To   float64 `json:"to_s"`   // time in seconds at which the span ends
	// Rate is the rate of all stripes of the message together, in bytes/s.
	Rate  float64 `json:"bytes_per_s"`
	Limit string  `json:"limited_by"` // name of a resource that limited the rate
}

// Message is the prediction of one message.
type Message struct {
	Name   string  `json:"name"`             // name of the message
	From   string  `json:"from"`             // name of the host or zipper that sends
	To     string  `json:"to"`               // name of the host or zipper that receives
	Bytes  float64 `json:"bytes"`            // size in bytes
	Start  float64 `json:"start_s"`          // start in seconds
	Finish float64 `json:"finish_s"`         // finish in seconds
	Rate   float64 `json:"mean_bytes_per_s"` // mean rate in bytes/s; 0 if it took no time
	// Limits has the resources that the message waited for, the largest share first.
	Limits []Share `json:"limits"`
	// Rates has the rate over time; empty unless Options.Rates is set, and above 2000 messages.
	Rates []Span `json:"rates,omitempty"`
}

// Resource is the prediction for one resource.
type Resource struct {
	Name     string  `json:"name"`     // name of the resource
	Kind     string  `json:"kind"`     // kind of the resource, such as nic or port
	Capacity float64 `json:"capacity"` // bytes/s; for threads of a forwarder their number
	// Utilisation is the part of the capacity that was used over the makespan, 0 if the makespan is
	// 0. Utilisation can be above 1 if the rule gave more than the capacity.
	Utilisation float64 `json:"utilisation"`
	// Limiting is the time for which messages waited for the resource, as a part of all waiting.
	Limiting float64 `json:"limiting"`
}

// Gain is the part of the makespan that doubling resources together would save.
type Gain struct {
	Resources []string `json:"resources"` // names of the resources
	// Makespan is the part of the makespan that is saved, from 0 to 1.
	Makespan float64 `json:"makespan_gain"`
}

// Report is a whole prediction. Times are in seconds.
type Report struct {
	Platform string `json:"platform"` // name of the platform
	Rule     string `json:"rule"`     // name of the sharing rule
	Exact    bool   `json:"exact"`    // whether exact rationals were used
	// Grain is the largest fraction of its duration by which a transfer may start or end early, so
	// that close events are handled at once (solve.Options.Grain); 0 if none may.
	Grain float64 `json:"grain"`
	// Makespan is the time in seconds at which the last message finishes.
	Makespan float64 `json:"makespan_s"`
	// Bottleneck is the name of the resource with the largest gain (or the names of a set, joined
	// by "with") or, if no gain is known, with the most waiting time; empty if no message waited.
	Bottleneck string     `json:"bottleneck"`
	Messages   []Message  `json:"messages"`        // messages in the order of the caller
	Resources  []Resource `json:"resources"`       // resources that were used or waited for
	Gains      []Gain     `json:"gains,omitempty"` // gains of at least 1 %, largest first
	// Warnings has reasons to doubt the prediction or its gains, as text for people.
	Warnings []string `json:"warnings,omitempty"`
	Events   int      `json:"events"` // number of times that rates were computed
}

// Rule returns the sharing rule with the given name; an empty name means max-min. The rule penalty
// takes its readings from graph g. Rule returns an error if the name is unknown.
func Rule[T num.Number[T]](name string, g *platform.Graph[T]) (sharing.Rule[T], error) {
	switch name {
	case "", "max-min":
		return sharing.MaxMin[T]{}, nil
	case "streams":
		return sharing.Streams[T]{}, nil
	case "buffered":
		return sharing.Buffered[T]{}, nil
	case "zhu":
		return sharing.Zhu[T]{}, nil
	case "zhu-paper":
		return sharing.Zhu[T]{Paper: true}, nil
	case "penalty":
		return sharing.Penalty[T]{Reading: g.Readings}, nil
	}
	return nil, fmt.Errorf("unknown sharing rule %q: use max-min, streams, buffered, zhu, zhu-paper or penalty", name)
}

// Run predicts the times of the messages on platform p. It is safe for concurrent use.
func Run(p *platform.Platform, messages []platform.Message, o Options) (*Report, error) {
	if len(messages) == 0 {
		return nil, errors.New("no messages to predict")
	}
	if o.Sharing == "" {
		o.Sharing = p.Sharing
	}
	if o.Grain < 0 {
		switch n := len(messages); {
		case n <= 2000:
			o.Grain = 0
		case n <= 20_000:
			o.Grain = 1e-3
		default:
			o.Grain = 1e-2
		}
	}
	if o.MaxGains <= 0 {
		o.MaxGains = 32
	}
	if len(messages) <= ExactLimit && o.Grain == 0 && o.Sharing != "buffered" {
		return run[num.Rat](p, messages, o, true)
	}
	return run[num.Float](p, messages, o, false)
}

func run[T num.Number[T]](p *platform.Platform, messages []platform.Message, o Options, exact bool) (*Report, error) {
	g, err := platform.Build[T](p, messages)
	if err != nil {
		return nil, err
	}
	rule, err := Rule(o.Sharing, g)
	if err != nil {
		return nil, err
	}
	record := len(messages) <= 2000
	so := solve.Options{Record: record, Grain: o.Grain}
	r, err := solve.Run(g.Network, g.Transfers, rule, so)
	if err != nil {
		return nil, err
	}
	report := &Report{Platform: p.Name, Rule: rule.Name(), Exact: exact, Grain: o.Grain, Makespan: r.Makespan.Float64(),
		Events: r.Events}
	waiting := make([]float64, len(g.Network.Resources))
	for i := range messages {
		report.Messages = append(report.Messages, describe(g, r, &messages[i], i, waiting))
	}
	if record && o.Rates {
		spans(g, r, report)
	}
	report.resources(names(g), kinds(g), capacities(g), used(r), waiting)
	for _, x := range r.Overload {
		where := g.Network.Resources[x.Resource].Name
		if x.Vertex >= 0 {
			if o.Sharing != "penalty" {
				continue // only that rule knows the receivers of a switch
			}
			where = fmt.Sprintf("a receiver (vertex %d) of %s", x.Vertex, where)
		}
		report.Warnings = append(report.Warnings, fmt.Sprintf("the rule promises %.1f %% of the capacity of %s",
			100*x.Load.Float64(), where))
	}
	if o.Gains {
		if err := gains(g, r, rule, so, o.MaxGains, waiting, report); err != nil {
			return nil, err
		}
	}
	report.name()
	return report, report.check()
}

// describe returns the prediction of message m, which has index i, from its transfers in the result
// r. It adds the message's waiting time in seconds to that of each resource in waiting.
func describe[T num.Number[T]](g *platform.Graph[T], r *solve.Result[T], m *platform.Message, i int,
	waiting []float64) Message {
	x := Message{Name: m.Name, From: m.From, To: m.To, Start: math.Inf(1)}
	x.Bytes, _ = m.Bytes.Float64()
	for _, t := range g.First[i] {
		x.Start = math.Min(x.Start, r.Start[t].Float64())
	}
	for _, t := range g.Last[i] {
		x.Finish = math.Max(x.Finish, r.Finish[t].Float64())
	}
	if x.Finish > x.Start {
		x.Rate = x.Bytes / (x.Finish - x.Start)
	}
	total := 0.0
	for _, t := range g.Parts[i] {
		for _, s := range r.Limited[t] {
			v := s.Time.Float64()
			total += v
			waiting[s.Limit.Resource] += v
			name := g.Network.Resources[s.Limit.Resource].Name
			k := slices.IndexFunc(x.Limits,
				func(l Share) bool { return l.Resource == name && l.Contra == s.Limit.Contra })
			if k < 0 {
				k = len(x.Limits)
				x.Limits = append(x.Limits, Share{Resource: name, Contra: s.Limit.Contra})
			}
			x.Limits[k].Share += v
		}
	}
	for k := range x.Limits {
		x.Limits[k].Share /= total
	}
	slices.SortStableFunc(x.Limits, func(a, b Share) int { return cmp.Compare(b.Share, a.Share) })
	return x
}

// spans sets the rates over time of the report's messages from the recorded steps of result r. It
// merges steps between which nothing changed.
func spans[T num.Number[T]](g *platform.Graph[T], r *solve.Result[T], report *Report) {
	message := make([]int, len(g.Transfers))
	for i, parts := range g.Parts {
		for _, t := range parts {
			message[t] = i
		}
	}
	for _, s := range r.Steps {
		from, to := s.From.Float64(), s.To.Float64()
		for j, t := range s.Active {
			m := &report.Messages[message[t]]
			rate := s.Rate[j].Float64()
			limit := g.Network.Resources[s.Limits[j][0].Resource].Name
			last := len(m.Rates) - 1
			switch {
			case last >= 0 && m.Rates[last].From == from: // from another stripe
				m.Rates[last].Rate += rate
			case last >= 0 && m.Rates[last].To == from && m.Rates[last].Limit == limit &&
				math.Abs(m.Rates[last].Rate-rate) <= 1e-9*rate:
				m.Rates[last].To = to
			default:
				m.Rates = append(m.Rates, Span{from, to, rate, limit})
			}
		}
	}
}

func names[T num.Number[T]](g *platform.Graph[T]) (list []string) {
	for _, r := range g.Network.Resources {
		list = append(list, r.Name)
	}
	return list
}

func kinds[T num.Number[T]](g *platform.Graph[T]) (list []sharing.Kind) {
	for _, r := range g.Network.Resources {
		list = append(list, r.Kind)
	}
	return list
}

func capacities[T num.Number[T]](g *platform.Graph[T]) (list []float64) {
	for _, r := range g.Network.Resources {
		list = append(list, r.Capacity.Float64())
	}
	return list
}

func used[T num.Number[T]](r *solve.Result[T]) (list []float64) {
	for _, u := range r.Used {
		list = append(list, u.Float64())
	}
	return list
}

func (r *Report) resources(names []string, kinds []sharing.Kind, capacity, used, waiting []float64) {
	total := 0.0
	for _, w := range waiting {
		total += w
	}
	for i, name := range names {
		if used[i] == 0 && waiting[i] == 0 || name == "free" {
			continue
		}
		x := Resource{Name: name, Kind: kinds[i].String(), Capacity: capacity[i]}
		if r.Makespan > 0 {
			x.Utilisation = used[i] / capacity[i] / r.Makespan
		}
		if total > 0 {
			x.Limiting = waiting[i] / total
		}
		r.Resources = append(r.Resources, x)
	}
}

// name sets the report's bottleneck: the resources with the largest gain, or, if no gain is known,
// the resource with the most waiting time.
func (r *Report) name() {
	if len(r.Gains) > 0 {
		r.Bottleneck = r.Gains[0].Resources[0]
		for _, x := range r.Gains[0].Resources[1:] {
			r.Bottleneck += " with " + x
		}
		return
	}
	best := 0.0
	for _, x := range r.Resources {
		if x.Limiting > best {
			best, r.Bottleneck = x.Limiting, x.Name
		}
	}
}

// check returns an error if the makespan, or the size, a time or the mean rate of a message, or a
// number of a resource is not finite.
func (r *Report) check() error {
	bad := func(xs ...float64) bool {
		return slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	}
	if bad(r.Makespan) {
		return errors.New("the makespan is too large to be a number: check the platform's units")
	}
	for _, m := range r.Messages {
		if bad(m.Bytes, m.Start, m.Finish, m.Rate) {
			return fmt.Errorf("message %s: times too large to be numbers: check the units", m.Name)
		}
	}
	for _, x := range r.Resources {
		if bad(x.Capacity, x.Utilisation, x.Limiting) {
			return fmt.Errorf("resource %s: values too large to be numbers: check the units", x.Name)
		}
	}
	return nil
}
