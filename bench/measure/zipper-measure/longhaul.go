package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/bench/measure"
)

// onTrunk is the name of the target that the aims are for: a forwarder on each border node.
const onTrunk = "trunk"

// longhaul is the plan that measures rows between two sites with a long link between them.
type longhaul struct {
	// line is the long link, without its delay.
	line delayline.Options
	// delays is the list of delays, as on the command line.
	delays string
	// others is the number of rounds in which all targets are measured; later rounds have the trunk
	// alone. 0 means all rounds.
	others int
	// congestion is the congestion control of all nodes.
	congestion string
	// only selects rows and on selects targets; nil selects all of them.
	only, on *regexp.Regexp

	// warm is the time of a stream that does not count, seconds is the time after it that does.
	warm, seconds time.Duration
	// window is the number of bytes in flight, of all streams together.
	window int
	// count is the number of blocking sends after the warm-up.
	count int
	// times is the number of measured calls of a collective.
	times int
	// cut is the time for which the link is cut.
	cut time.Duration
}

func (p *longhaul) options(flags *flag.FlagSet) (rounds int, quick map[string]string) {
	p.line = delayline.Defaults()
	flags.StringVar(&p.delays, "delay", "20ms,50ms", "`list` of one-way delays")
	for _, name := range []string{"rate", "queue", "seed"} {
		flags.Func(name, "of the long link, as of scripts/lab up", func(v string) error { return p.line.Set(name, v) })
	}
	flags.IntVar(&p.others, "others", 0, "measure the other targets, and outages, in the first `rounds` only; 0: in all")
	flags.StringVar(&p.congestion, "congestion", "cubic", "control of all nodes: cubic, reno, bbr")
	for _, f := range []struct {
		name, about string
		to          **regexp.Regexp
	}{{"only", "rows that match the `expression`", &p.only}, {"on", "targets that match the `expression`", &p.on}} {
		flags.Func(f.name, f.about, func(v string) (err error) {
			*f.to, err = regexp.Compile(v)
			return err
		})
	}
	return 5, map[string]string{"delay": "5ms"}
}

func (p *longhaul) sessions(quick bool) (all []*session, err error) {
	if p.others < 0 {
		return nil, fmt.Errorf("others %d: want a number of rounds", p.others)
	}
	p.warm, p.seconds, p.window = 2*time.Second, 5*time.Second, 32<<20
	p.count, p.times, p.cut = 20, 10, 20*time.Second
	if quick {
		p.warm, p.seconds, p.window = 300*time.Millisecond, 500*time.Millisecond, 8<<20
		p.count, p.times, p.cut = 3, 3, 2*time.Second
	}
	for d := range strings.SplitSeq(p.delays, ",") {
		line := p.line
		if err := errors.Join(line.Set("delay", d), line.Check()); err != nil {
			return nil, err
		}
		if line.Rate == 0 {
			return nil, errors.New("rate off: the aims are shares of a rate")
		}
		r := &measure.Report{Environment: drive.Describe(line.String()), Line: &line, Congestion: p.congestion}
		all = append(all, &session{config: lab.Sites(line), report: r, file: "longhaul-" + line.Delay.String(),
			table: r.Aims, steps: p.steps})
	}
	return all, nil
}

// steps returns those of a round that the options select, each with the rows and targets that they
// select.
func (p *longhaul) steps(m *measurement, round int) (all []step) {
	alone := p.others > 0 && round >= p.others
	for _, s := range p.every(m) {
		s.rows = slices.DeleteFunc(slices.Clone(s.rows), func(r measure.Row) bool { return !p.wants(r) })
		s.targets = slices.DeleteFunc(s.targets, func(t target) bool {
			return alone && t.name != onTrunk || p.on != nil && !p.on.MatchString(t.name)
		})
		if len(s.rows) == 0 || len(s.targets) == 0 || alone && s.name == measure.Outage.Name {
			continue
		}
		run := s.run
		s.run = func(ctx context.Context, t target) ([]sample, error) {
			samples, err := run(ctx, t)
			return slices.DeleteFunc(samples, func(x sample) bool { return !p.wants(x.row) }), err
		}
		all = append(all, s)
	}
	return all
}

func (p *longhaul) wants(r measure.Row) bool { return p.only == nil || p.only.MatchString(r.Name) }

// every returns all steps of a round in their order.
func (p *longhaul) every(m *measurement) (all []step) {
	zipped, trunk := target{name: "zipped", job: m.lab.Far}, target{name: onTrunk, job: m.lab.Trunk}
	routed := target{name: "routed", job: m.lab.Routed}
	over := func(s step, targets ...target) {
		s.targets = targets
		all = append(all, s)
	}
	for _, s := range []struct {
		row  measure.Row
		loss string
	}{{measure.Stream1M, "0"}, {measure.Loss001, "0.01%"}, {measure.Loss01, "0.1%"}} {
		var plain []target
		for _, n := range []int{1, 4, 16} {
			plain = append(plain, target{name: fmt.Sprintf("TCP, %d streams", n), streams: n})
		}
		over(lossy(m, s.loss, p.stream(m, s.row, "stream", 1<<20, 1)), append(plain, zipped, trunk, routed)...)
	}
	over(p.stream(m, measure.Stream64K, "stream", 64<<10, 1), zipped, trunk, routed)
	over(p.stream(m, measure.Both, "both", 1<<20, 1), zipped, trunk, routed)
	over(p.stream(m, measure.Pairs2, "stream", 1<<20, 2), zipped, trunk, routed)
	over(p.stream(m, measure.Pairs8, "stream", 1<<20, 8), zipped, trunk, routed)
	many := p.stream(m, measure.Pairs32, "stream", 1<<20, 32)
	over(many, zipped)
	over(withMemory(m, many), trunk)
	over(many, routed)
	over(p.small(m), zipped, trunk, routed)
	over(p.large(m), zipped, trunk, routed)
	for _, name := range measure.Collectives() {
		over(p.collective(m, name, 8, measure.Collective(name, "8 B")), zipped, trunk, routed)
		if name != "barrier" {
			over(p.collective(m, name, 4096, measure.Collective(name, "4 KiB")), zipped, trunk, routed)
		}
	}
	const after = 3 * time.Second // the job has started
	over(p.disturbed(m, measure.Outage, after, after+p.cut+5*time.Second, func(ctx context.Context) error {
		return m.lab.Line(ctx, "cut", p.cut.String())
	}), zipped, trunk, routed)
	over(p.disturbed(m, measure.Restart, after, after, func(context.Context) error { return m.lab.Restart(0) }), trunk)
	return all
}
