package contend

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/simulation/play"
)

// Rules returns the sharing rules that are compared.
func Rules() []string {
	return []string{"max-min", "streams", "buffered", "zhu", "zhu-paper", "penalty", Simulation}
}

// Simulation stands for the product's own code in virtual time (package play), beside the rules.
const Simulation = "simulation"

// Another stands for another measurement of the same pattern, beside the rules: no prediction can
// be nearer than measurements are to each other.
const Another = "another run"

// forecast predicts messages by a rule.
func forecast(p *platform.Platform, messages []platform.Message, rule string) (*predict.Report, error) {
	if rule != Simulation {
		return predict.Run(p, messages, predict.Options{Sharing: rule, Grain: -1})
	}
	r, err := play.Run(p, messages, play.Options{})
	if err != nil {
		return nil, err
	}
	return r.Report, nil
}

// Timed is a measured and predicted transfer of a pattern.
type Timed struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Via is the zipper.
	Via      string  `json:"via,omitempty"`
	Measured float64 `json:"measured_s"`
	// Predicted has the times by rule, without those of rules that failed.
	Predicted map[string]float64 `json:"predicted_s"`
}

// Error returns the error of a rule: predicted over measured, less 1.
func (t *Timed) Error(rule string) float64 { return t.Predicted[rule]/t.Measured - 1 }

// Outcome is the result of a pattern.
type Outcome struct {
	Pattern string `json:"pattern"`
	Kind    Kind   `json:"kind"`
	D       int    `json:"d"`
	Seed    uint64 `json:"seed"`
	// Bytes is the size of a transfer.
	Bytes int `json:"bytes"`
	// Round counts the measurements of the pattern.
	Round     int     `json:"round"`
	Transfers []Timed `json:"transfers"`
	// Starts has the time at which each host began, in seconds after the first of them, if known.
	// Measured times count from the receiver's start.
	Starts map[string]float64 `json:"starts_s,omitempty"`
	// Failed has the rules that cannot predict the pattern, and why: zhu-paper, where the printed
	// algorithm divides capacity that it has already given away.
	Failed map[string]string `json:"failed,omitempty"`
	Processors
	Load string `json:"load"`
	// Disturbed has the measurements of the same pattern during which more time was stolen.
	Disturbed []Outcome `json:"disturbed,omitempty"`
}

// Score is the summary of a rule over transfers.
type Score struct {
	Rule      string `json:"rule"`
	Transfers int    `json:"transfers"`
	// Failed is the number of transfers that were not predicted.
	Failed int `json:"failed,omitempty"`
	// Near is the part of the transfers with an error of at most Near.
	Near float64 `json:"near"`
	// Mean is the mean of |error| of the predicted transfers.
	Mean float64 `json:"mean"`
	// Worst is the largest |error|.
	Worst float64 `json:"worst"`
}

// Seeds returns the patterns, which were chosen before anything was measured; calibration uses none
// of them.
func Seeds() (list []Pattern) {
	for d := 1; d <= 3; d++ {
		for i := range 6 {
			list = append(list, Pattern{Kind: Any, D: d, Seed: uint64(1000*d + i)})
		}
		for i := range 4 {
			list = append(list, Pattern{Kind: Cross, D: d, Seed: uint64(1000*d + 100 + i)})
		}
		for i := range 2 {
			list = append(list, Pattern{Kind: Local, D: d, Seed: uint64(1000*d + 200 + i)})
		}
	}
	return list
}

// Validate measures every pattern in each of some rounds and predicts it by every rule on the
// platform. A measurement during which more than Disturbed of the processor time was stolen is
// repeated, at most Attempts times in all, and the one with the least stolen time counts: the model
// does not predict links whose whole machine the hypervisor stops.
func (l *Lab) Validate(ctx context.Context, p *platform.Platform, patterns []Pattern, bytes, rounds int,
	each func(Outcome)) ([]Outcome, error) {
	var list []Outcome
	p = spread(p)
	for round := range rounds {
		for _, x := range patterns {
			if err := context.Cause(ctx); err != nil {
				return list, err
			}
			o, err := undisturbed(func() (Outcome, error) { return l.outcome(p, Random(&l.Site, x.Kind, x.D, x.Seed, bytes)) })
			if err != nil {
				return list, fmt.Errorf("%s: %w", x.Name(), err)
			}
			o.Round = round
			list = append(list, o)
			if each != nil {
				each(o)
			}
		}
	}
	predictByNext(list)
	return list, nil
}

// predictByNext predicts each measurement of a pattern by the next one of the same pattern, the
// last one by the first.
func predictByNext(list []Outcome) {
	of := make(map[string][]*Outcome)
	for i := range list {
		of[list[i].Pattern] = append(of[list[i].Pattern], &list[i])
	}
	for _, same := range of {
		for k, o := range same {
			next := same[(k+1)%len(same)]
			for i := range o.Transfers {
				if next != o {
					o.Transfers[i].Predicted[Another] = next.Transfers[i].Measured
				}
			}
		}
	}
}

// undisturbed repeats a measurement until little time is stolen.
func undisturbed(measure func() (Outcome, error)) (Outcome, error) {
	best, err := measure()
	for n := 1; n < Attempts && err == nil && best.Stolen > Disturbed; n++ {
		var o Outcome
		if o, err = measure(); err != nil {
			break
		}
		others := best.Disturbed
		best.Disturbed = nil
		if o.Stolen < best.Stolen {
			best, o = o, best
		}
		best.Disturbed = append(others, o)
	}
	return best, err
}

// spread returns the platform as the patterns use it: each message takes the one zipper that its
// pair of hosts determines.
func spread(p *platform.Platform) *platform.Platform {
	x := *p
	x.Rails = platform.Rails{}
	return &x
}

func (l *Lab) outcome(p *platform.Platform, x Pattern) (Outcome, error) {
	o := Outcome{Pattern: x.Name(), Kind: x.Kind, D: x.D, Seed: x.Seed, Bytes: x.Messages[0].Bytes, Load: load()}
	before, err := l.usage()
	if err != nil {
		return o, err
	}
	seconds, err := l.Session.Run(x.Messages)
	if err != nil {
		return o, err
	}
	after, err := l.usage()
	if err != nil {
		return o, err
	}
	o.Processors = after.since(before)
	for i, m := range x.Messages {
		t := Timed{From: m.From, To: m.To, Measured: seconds[i], Predicted: make(map[string]float64)}
		if m.Via != transfer.Direct {
			t.Via = l.Zippers[m.Via].Name
		}
		o.Transfers = append(o.Transfers, t)
	}
	o.Starts = l.Session.Starts()
	o.predict(p, Rules())
	return o, nil
}

// messages returns the messages of the pattern.
func (o *Outcome) messages() (list []platform.Message) {
	for _, t := range o.Transfers {
		list = append(list, between(t.From, t.To, o.Bytes, o.Starts[t.From]))
	}
	return list
}

// predict sets the predictions by some rules.
func (o *Outcome) predict(p *platform.Platform, rules []string) {
	messages := o.messages()
	for _, rule := range rules {
		r, err := forecast(p, messages, rule)
		if err != nil {
			if o.Failed == nil {
				o.Failed = make(map[string]string)
			}
			o.Failed[rule] = err.Error()
			continue
		}
		delete(o.Failed, rule)
		for i, m := range r.Messages {
			o.Transfers[i].Predicted[rule] = m.Finish - o.Starts[m.To]
		}
	}
}

// Again predicts earlier outcomes, by some rules.
func Again(p *platform.Platform, list []Outcome, rules []string) {
	for i := range list {
		list[i].predict(spread(p), rules)
	}
	predictByNext(list)
}

// predicted returns the rules by which some outcome of the list is predicted: Rules, then others.
func predicted(list []Outcome) []string {
	rules := Rules()
	for i := range list {
		for _, t := range list[i].Transfers {
			for _, rule := range slices.Sorted(maps.Keys(t.Predicted)) {
				if !slices.Contains(rules, rule) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}

// Scores returns the summary of every rule over the transfers that which selects; nil selects all.
func Scores(list []Outcome, which func(*Outcome) bool) (scores []Score) {
	for _, rule := range predicted(list) {
		s := Score{Rule: rule}
		for i := range list {
			if which != nil && !which(&list[i]) {
				continue
			}
			for k := range list[i].Transfers {
				t := &list[i].Transfers[k]
				s.Transfers++
				if _, ok := t.Predicted[rule]; !ok || list[i].Failed[rule] != "" {
					s.Failed++
					continue
				}
				e := math.Abs(t.Error(rule))
				s.Mean += e
				s.Worst = math.Max(s.Worst, e)
				if e <= Near {
					s.Near++
				}
			}
		}
		if s.Transfers > s.Failed {
			s.Mean /= float64(s.Transfers - s.Failed)
			s.Near /= float64(s.Transfers)
		}
		scores = append(scores, s)
	}
	return scores
}
