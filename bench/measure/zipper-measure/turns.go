package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/bench/measure"
)

// measurement carries out a session in its lab.
type measurement struct {
	*session
	lab *lab.Lab
	// program is the path of the MPI program.
	program string
	// failed counts the steps that failed, each on one target.
	failed int
}

// target is a place where a step is done.
type target struct {
	name string
	// job returns the MPI jobs with so many ranks in both clusters; it is nil for plain TCP.
	job func(a, b int) drive.Target
	// streams is the number of plain TCP streams; it is 0 for MPI jobs.
	streams int
}

// step is something that is done on several targets in turn.
type step struct {
	// name names the step in messages.
	name string
	// rows are those that have no value on a target where the step fails.
	rows    []measure.Row
	targets []target
	// run does it on a target. With an error come the samples before it.
	run func(ctx context.Context, t target) ([]sample, error)
}

// sample is one value of a row.
type sample struct {
	row   measure.Row
	value float64
}

// all measures all rounds, and then the steps that are repeated. A step that fails is noted in the
// report, and the others are done nevertheless; the error at the end counts them.
func (m *measurement) all(ctx context.Context, rounds int) error {
	for m.report.Rounds < rounds && ctx.Err() == nil {
		for _, s := range m.steps(m, m.report.Rounds) {
			m.turn(ctx, s, m.report.Rounds, false)
		}
		if ctx.Err() == nil {
			m.report.Rounds++
		}
	}
	if m.again != nil && ctx.Err() == nil {
		for _, s := range m.again(m) {
			for round := range m.repeats {
				m.turn(ctx, s, round, true)
			}
		}
	}
	if ctx.Err() == nil && m.failed > 0 {
		return fmt.Errorf("%d steps failed, as noted below the table", m.failed)
	}
	return context.Cause(ctx)
}

// turn does a step on its targets, in odd rounds in the reverse order, because a drift of the
// machine would otherwise always favour the same target.
func (m *measurement) turn(ctx context.Context, s step, round int, again bool) {
	targets := slices.Clone(s.targets)
	if round%2 == 1 {
		slices.Reverse(targets)
	}
	for _, t := range targets {
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(os.Stderr, "round %d: %s, %s\n", round+1, s.name, t.name)
		samples, ways, err := m.watched(ctx, s, t)
		for _, x := range samples {
			m.report.Add(x.row, t.name, measure.Value{Round: round, Again: again, Value: x.value}, ways)
		}
		if err != nil && ctx.Err() == nil {
			m.failed++
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", s.name, t.name, err)
			m.miss(s, t, samples, drive.OneLine(err.Error()))
		}
	}
}

// watched does a step on a target. It also returns the statistics of the long link of that time, if
// the lab has one.
func (m *measurement) watched(ctx context.Context, s step, t target) (samples []sample, ways []delayline.Stats, err error) {
	if m.report.Line == nil {
		samples, err = s.run(ctx, t)
		return samples, nil, err
	}
	if err = m.lab.Line(ctx, "reset"); err != nil {
		return nil, nil, err
	}
	if samples, err = s.run(ctx, t); err != nil {
		return nil, nil, err // the statistics are those of a failure
	}
	if ways, err = m.lab.LineStats(ctx); err != nil {
		return nil, nil, err
	}
	return samples, ways, nil
}

// miss notes why the rows of a step have no value on a target, but for those of which there are
// samples.
func (m *measurement) miss(s step, t target, samples []sample, reason string) {
	for _, row := range s.rows {
		if !slices.ContainsFunc(samples, func(x sample) bool { return x.row.Is(row) }) {
			m.report.Miss(row, t.name, reason)
		}
	}
}
