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

// Rules are the sharing rules that are compared.
func Rules() []string {
	return []string{"max-min", "streams", "buffered", "zhu", "zhu-paper", "penalty", Simulation}
}

// Simulation is no rule, but the product's own code in virtual time (package play).
const Simulation = "simulation"

// Another is no rule either, but what the same pattern took when it was measured another time: no
// prediction can be nearer than measurements are to each other.
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

// Timed is a transfer of a pattern, measured and predicted.
type Timed struct {
	From      string             `json:"from"`
	To        string             `json:"to"`
	Via       string             `json:"via,omitempty"` // the zipper
	Measured  float64            `json:"measured_s"`
	Predicted map[string]float64 `json:"predicted_s"` // by rule, but for those that failed
}

// Error of a rule: predicted over measured, less 1.
func (t *Timed) Error(rule string) float64 { return t.Predicted[rule]/t.Measured - 1 }

// Outcome is a pattern's.
type Outcome struct {
	Pattern   string  `json:"pattern"`
	Kind      Kind    `json:"kind"`
	D         int     `json:"d"`
	Seed      uint64  `json:"seed"`
	Bytes     int     `json:"bytes"` // of a transfer
	Round     int     `json:"round"` // of several
	Transfers []Timed `json:"transfers"`
	// Starts are when hosts began, in seconds after the first of them, if known. Measured times
	// count from the receiver's.
	Starts map[string]float64 `json:"starts_s,omitempty"`
	// Failed are rules that cannot predict the pattern, and why: zhu-paper, where the printed
	// algorithm divides what it has already given away.
	Failed map[string]string `json:"failed,omitempty"`
	Processors
	Load string `json:"load"`
	// Disturbed are measurements of the same pattern during which more was stolen.
	Disturbed []Outcome `json:"disturbed,omitempty"`
}

// Score sums up a rule over transfers.
type Score struct {
	Rule      string  `json:"rule"`
	Transfers int     `json:"transfers"`
	Failed    int     `json:"failed,omitempty"` // of these, not predicted
	Near      float64 `json:"near"`             // part with an error of at most Near
	Mean      float64 `json:"mean"`             // of |error|, where predicted
	Worst     float64 `json:"worst"`            // |error|
}

// Seeds of the patterns, chosen before anything was measured; calibration uses none.
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
// repeated, at most Attempts times in all, and the one with the least counts: what a link does
// while the hypervisor stops the whole machine is not what is predicted.
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
	besideAnother(list)
	return list, nil
}

// besideAnother has each measurement of a pattern predicted by the next one of it, the last one by
// the first.
func besideAnother(list []Outcome) {
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

// undisturbed measures until little is stolen.
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

// spread is the platform as the patterns use it: a message takes the one zipper that the pair of
// hosts decides.
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

// messages are the pattern's.
func (o *Outcome) messages() (list []platform.Message) {
	for _, t := range o.Transfers {
		list = append(list, between(t.From, t.To, o.Bytes, o.Starts[t.From]))
	}
	return list
}

// predict fills in what rules say.
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

// Again predicts outcomes that were measured before, by some rules.
func Again(p *platform.Platform, list []Outcome, rules []string) {
	for i := range list {
		list[i].predict(spread(p), rules)
	}
	besideAnother(list)
}

// predicted are the rules by which something of the list is predicted: Rules, then others.
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

// Scores sums up the transfers that which chooses (nil: all) by every rule.
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
