package contend

import (
	"context"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// Replayed has a recorded job's messages between clusters, moved again by the lab's hosts without
// the computation in between, and predicted.
type Replayed struct {
	Trace    string    `json:"trace"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
	Measured []float64 `json:"measured_s"`
	// Predicted has the times by rule.
	Predicted map[string]float64 `json:"predicted_s"`
	Processors
	Load string `json:"load"`
}

// Error returns the error of a rule: predicted over the mean of the measured times, less 1.
func (r *Replayed) Error(rule string) float64 {
	sum := 0.0
	for _, t := range r.Measured {
		sum += t
	}
	return r.Predicted[rule]*float64(len(r.Measured))/sum - 1
}

// Replay plays a recorded job some times on the site, a rank on each host, and predicts it by every
// rule that can predict it.
func (l *Lab) Replay(ctx context.Context, p *platform.Platform, file string, times int) (Replayed, error) {
	r := Replayed{Trace: file, Predicted: make(map[string]float64), Load: load()}
	messages, err := replayed(p, file)
	if err != nil {
		return r, err
	}
	at := make(map[string]int) // the places of hosts in their clusters
	for _, c := range l.Clusters {
		for k, h := range c.Hosts {
			at[h] = k
		}
	}
	steps := make([]transfer.Step, len(messages))
	for i, m := range messages {
		bytes := int(m.Bytes.Num().Int64())
		via := (at[m.From] + at[m.To]) % len(l.Zippers) // the choice of package platform
		steps[i] = transfer.Step{Message: transfer.Message{From: m.From, To: m.To, Via: via, Bytes: bytes},
			After: slices.Concat(m.After, m.Sent)}
		r.Bytes += int64(bytes)
	}
	r.Messages = len(messages)
	r.predict(p, messages, Rules())
	before, err := l.usage()
	if err != nil {
		return r, err
	}
	for range times {
		if err := context.Cause(ctx); err != nil {
			return r, err
		}
		took, err := l.Session.Play(steps)
		if err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		r.Measured = append(r.Measured, took)
	}
	after, err := l.usage()
	r.Processors = after.since(before)
	return r, err
}

// replayed returns the messages of a recorded job between clusters, on a platform, with a rank on
// each host.
func replayed(p *platform.Platform, file string) ([]platform.Message, error) {
	t, err := trace.ReadFile(file)
	if err != nil {
		return nil, err
	}
	cluster := t.Places()
	t.Messages = slices.DeleteFunc(t.Messages, func(m trace.Message) bool { return cluster[m.Src] == cluster[m.Dst] })
	if len(t.Messages) == 0 || len(t.Clusters) != len(p.Clusters) {
		return nil, fmt.Errorf("%s: want messages between %d clusters", file, len(p.Clusters))
	}
	var places []string
	for i, c := range t.Clusters {
		hosts := p.Clusters[i].Hosts.Names
		if c.Ranks > len(hosts) {
			return nil, fmt.Errorf("%s: %d ranks in cluster %s, which has %d hosts", file, c.Ranks, c.Name,
				len(hosts))
		}
		places = append(places, hosts[:c.Ranks]...)
	}
	messages, err := pattern.Replay(t, places, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return messages, nil
}

// predict sets the times of the rules that can predict the messages.
func (r *Replayed) predict(p *platform.Platform, messages []platform.Message, rules []string) {
	for _, rule := range rules {
		if x, err := forecast(spread(p), messages, rule); err == nil {
			r.Predicted[rule] = x.Makespan
		}
	}
}

// Again predicts an earlier replay, by some rules.
func (r *Replayed) Again(p *platform.Platform, rules []string) error {
	messages, err := replayed(p, r.Trace)
	if err == nil {
		r.predict(p, messages, rules)
	}
	return err
}
