package contend

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/traffic/trace"
)

// Replayed is a recorded job's messages between clusters, moved again by the lab's hosts without
// the computation between, and predicted.
type Replayed struct {
	Trace     string             `json:"trace"`
	Messages  int                `json:"messages"`
	Bytes     int64              `json:"bytes"`
	Measured  []float64          `json:"measured_s"`
	Predicted map[string]float64 `json:"predicted_s"` // by rule
	Processors
	Load string `json:"load"`
}

// Error of a rule: predicted over the mean of what was measured, less 1.
func (r *Replayed) Error(rule string) float64 {
	sum := 0.0
	for _, t := range r.Measured {
		sum += t
	}
	return r.Predicted[rule]*float64(len(r.Measured))/sum - 1
}

// Replay plays a recorded job some times on the site, a rank on each host, and predicts it by every
// rule that can.
func (l *Lab) Replay(ctx context.Context, p *platform.Platform, file string, times int) (Replayed, error) {
	r := Replayed{Trace: file, Predicted: make(map[string]float64), Load: load()}
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer f.Close()
	t, err := trace.Read(f)
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if len(t.Messages) == 0 || len(t.Clusters) != len(l.Clusters) {
		return r, fmt.Errorf("%s: want messages between %d clusters", file, len(l.Clusters))
	}
	var places []string
	type place struct{ cluster, host int }
	at := make(map[string]place)
	for i, c := range t.Clusters {
		if c.Ranks > len(l.Clusters[i].Hosts) {
			return r, fmt.Errorf("%s: %d ranks in cluster %s, the lab has %d hosts in each", file, c.Ranks, c.Name,
				len(l.Clusters[i].Hosts))
		}
		for k, h := range l.Clusters[i].Hosts[:c.Ranks] {
			places = append(places, h)
			at[h] = place{i, k}
		}
	}
	messages, err := pattern.Replay(t, places, nil)
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	steps := make([]transfer.Step, len(messages))
	for i, m := range messages {
		bytes := int(m.Bytes.Num().Int64())
		via := (at[m.From].host + at[m.To].host) % len(l.Zippers) // as package platform chooses
		steps[i] = transfer.Step{Message: transfer.Message{From: m.From, To: m.To, Via: via, Bytes: bytes},
			After: slices.Concat(m.After, m.Sent)}
		r.Bytes += int64(bytes)
	}
	r.Messages = len(messages)
	for _, rule := range Rules() {
		if x, err := predict.Run(spread(p), messages, predict.Options{Sharing: rule, Grain: -1}); err == nil {
			r.Predicted[rule] = x.Makespan
		}
	}
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
