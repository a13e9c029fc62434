package contend

import (
	"context"
	"fmt"
	"math"

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
	Transfers []Timed `json:"transfers"`
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

// Validate measures every pattern and predicts it by every rule on the platform. A measurement
// during which more than Disturbed of the processor time was stolen is repeated, at most Attempts
// times in all, and the one with the least counts: what a link does while the hypervisor stops the
// whole machine is not what is predicted.
func (l *Lab) Validate(ctx context.Context, p *platform.Platform, patterns []Pattern, bytes int,
	each func(Outcome)) ([]Outcome, error) {
	var list []Outcome
	p = spread(p)
	for _, x := range patterns {
		if err := context.Cause(ctx); err != nil {
			return list, err
		}
		o, err := undisturbed(func() (Outcome, error) { return l.outcome(p, Random(&l.Site, x.Kind, x.D, x.Seed, bytes)) })
		if err != nil {
			return list, fmt.Errorf("%s: %w", x.Name(), err)
		}
		list = append(list, o)
		if each != nil {
			each(o)
		}
	}
	return list, nil
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
	o.predict(p, x.model(), Rules())
	return o, nil
}

// predict fills in what rules say.
func (o *Outcome) predict(p *platform.Platform, messages []platform.Message, rules []string) {
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
			o.Transfers[i].Predicted[rule] = m.Finish - m.Start
		}
	}
}

// Again predicts outcomes that were measured before, by some rules.
func Again(p *platform.Platform, list []Outcome, rules []string) {
	for i := range list {
		var messages []platform.Message
		for _, t := range list[i].Transfers {
			messages = append(messages, between(t.From, t.To, list[i].Bytes))
		}
		list[i].predict(spread(p), messages, rules)
	}
}

// Scores sums up the transfers that which chooses (nil: all) by every rule.
func Scores(list []Outcome, which func(*Outcome) bool) (scores []Score) {
	for _, rule := range Rules() {
		s := Score{Rule: rule}
		for i := range list {
			if which != nil && !which(&list[i]) {
				continue
			}
			for k := range list[i].Transfers {
				s.Transfers++
				if list[i].Failed[rule] != "" {
					s.Failed++
					continue
				}
				e := math.Abs(list[i].Transfers[k].Error(rule))
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
