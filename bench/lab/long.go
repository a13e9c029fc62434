package lab

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Sites returns the configuration of two nodes at each of two sites with a long link between their
// border nodes, gA and gB, and a forwarder on gA. Another one starts on gB with the first job that
// needs it.
func Sites(o delayline.Options) Config {
	return Config{Name: "zw", NodesA: []string{"a1", "a2"}, NodesB: []string{"b1", "b2"}, Zippers: []string{"gA"},
		Long: &o}
}

// long returns the words for lab up.
func (c Config) long() []string {
	if c.Long == nil {
		return nil
	}
	return c.Long.Args()
}

// between returns the nodes on more than one network.
func (c Config) between() []string {
	if c.Long == nil {
		return c.Zippers
	}
	return []string{"gA", "gB"}
}

// Line gives the long link a command: reset, set NAME=VALUE, cut TIME.
func (l *Lab) Line(ctx context.Context, words ...string) error {
	return l.lab(ctx, append([]string{"line"}, words...)...)
}

// LineStats returns the statistics of the long link since the last reset, from gA and from gB.
func (l *Lab) LineStats(ctx context.Context) (ways []delayline.Stats, err error) {
	out, err := l.command(ctx, "line", "stats").Output()
	if err != nil {
		return nil, fmt.Errorf("scripts/lab line stats: %w", err)
	}
	return ways, json.Unmarshal(out, &ways)
}

// Far returns the target of a job over the forwarder on gA, to which the ranks of b come over the
// long link.
func (l *Lab) Far(a, b int) drive.Target {
	return l.sites("zipped", "far", a, b, nil, spec.Zipper{Address: "gA" + port})
}

// Trunk returns the target of a job over a forwarder on each border node, with the long link
// between the two; the one on gA dials.
func (l *Lab) Trunk(a, b int) drive.Target {
	t := l.sites("trunk", "off", a, b, []string{"wan"}, spec.Zipper{Per: map[string]string{"a": "gA" + port},
		Dials: []string{"wan"}},
		spec.Zipper{Per: map[string]string{"b": "gB" + port, "wan": "10.81.4.2" + port}})
	return drive.Target{Name: t.Name, Job: func() (*spec.Job, error) {
		if !l.onB {
			if err := l.forwarder("gB", l.cfg.ForwarderOptions...); err != nil {
				return nil, err
			}
			l.onB = true
		}
		return t.Job()
	}}
}

// port is that of an ordinary forwarder.
const port = ":7475"

func (l *Lab) sites(name, routing string, a, b int, networks []string, zippers ...spec.Zipper) drive.Target {
	return drive.Target{Name: name, Job: func() (*spec.Job, error) {
		if err := l.route(routing); err != nil {
			return nil, err
		}
		return &spec.Job{Rsh: l.rsh(), Networks: networks, Zippers: zippers, Clusters: []spec.Cluster{
			l.cluster("a", slots(l.cfg.NodesA, a), l.cfg.NodesA[0], a, "10.81.1.0/24"),
			l.cluster("b", slots(l.cfg.NodesB, b), l.cfg.NodesB[0], b, "10.81.2.0/24")}}, nil
	}}
}
