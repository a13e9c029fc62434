package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/sweep"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// measurement is what goes on in one lab.
type measurement struct {
	settings
	lab    *lab.Lab
	report *sweep.Report
}

// pointTime is how long one point may take beside its time: some are many seconds of calls.
const pointTime = 30 * time.Second

// all measures every curve, then the worst point of each again. The end of ctx is an error, and
// that a job failed: the others are measured nevertheless.
func (m *measurement) all(ctx context.Context) error {
	for m.report.Rounds < m.rounds && ctx.Err() == nil {
		for _, ranks := range m.ranks {
			for _, some := range m.jobs() {
				m.turn(ctx, some, ranks, false)
			}
		}
		if ctx.Err() == nil {
			m.report.Rounds++
		}
	}
	for _, c := range slices.Clone(m.report.Curves) {
		m.worst(ctx, c)
	}
	if ctx.Err() == nil && len(m.report.Failures) > 0 {
		return fmt.Errorf("%d jobs failed, as noted below the table", len(m.report.Failures))
	}
	return context.Cause(ctx)
}

// part is an operation and its sizes, in a job.
type part struct {
	operation string
	sizes     []int
}

// jobs are what the jobs of a round measure: an operation each, or all together but for threads,
// for which all of MPI works differently.
func (m *measurement) jobs() (all [][]part) {
	var together []part
	for _, o := range m.operations {
		p := part{o.Name, m.inOrder(o.Sizes(m.sizes))}
		switch {
		case len(p.sizes) == 0:
		case m.together && o.Name != "threads":
			together = append(together, p)
		default:
			all = append(all, []part{p})
		}
	}
	if together != nil {
		all = append(all, together)
	}
	return all
}

// inOrder is the order of a round's sizes, the same for all modes.
func (m *measurement) inOrder(sizes []int) []int {
	switch m.order {
	case down:
		slices.Reverse(sizes)
	case mixed:
		r := rand.New(rand.NewPCG(uint64(m.report.Rounds), 0))
		r.Shuffle(len(sizes), func(i, k int) { sizes[i], sizes[k] = sizes[k], sizes[i] })
	}
	return sizes
}

// worst measures a curve's worst points again.
func (m *measurement) worst(ctx context.Context, c *sweep.Curve) {
	name, _, within := strings.Cut(c.Operation, ".") // beside.p90 comes with beside
	if within || m.again == 0 {
		return
	}
	var sizes []int
	for mode := range m.modes[:len(m.modes)-1] {
		if p := c.Worst(mode); p != nil && !slices.Contains(sizes, p.Size) {
			sizes = append(sizes, p.Size)
		}
	}
	var ranks [2]int
	if _, err := fmt.Sscanf(c.Ranks, "%d+%d", &ranks[0], &ranks[1]); err != nil {
		panic(err) // turn wrote it
	}
	for _, n := range sizes {
		for range m.again {
			m.turn(ctx, []part{{name, []int{n}}}, ranks, true)
		}
	}
}

// turn runs a job in all modes, one after the other. Every second time the other way round: what
// the machine does more and more of is nobody's fault.
func (m *measurement) turn(ctx context.Context, parts []part, ranks [2]int, again bool) {
	where, what := fmt.Sprintf("%d+%d", ranks[0], ranks[1]), parts[0].operation
	if len(parts) > 1 {
		what += fmt.Sprintf(" and %d others", len(parts)-1)
	}
	order := make([]int, len(m.modes))
	for i := range order {
		order[i] = i
	}
	round := m.report.Rounds
	if again {
		round = m.turns(what, where, parts[0].sizes[0])
	}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, mode := range order {
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(os.Stderr, "round %d: %s on %s, %s\n", round+1, what, where, m.modes[mode])
		points, err := m.job(ctx, m.target(m.modes[mode], ranks), parts)
		for _, p := range points {
			m.report.Add(p.operation, where, p.size, mode, round, p.micro, again)
		}
		if err != nil && ctx.Err() == nil {
			m.report.Fail(fmt.Sprintf("%s on %s, %s: %v", what, where, m.modes[mode], err))
			fmt.Fprintf(os.Stderr, "%s on %s, %s: %v\n", what, where, m.modes[mode], err)
		}
	}
}

// turns counts how often a point has been measured again.
func (m *measurement) turns(operation, where string, size int) (n int) {
	for _, c := range m.report.Curves {
		for _, p := range c.Points {
			if c.Operation == operation && c.Ranks == where && p.Size == size {
				for _, values := range p.Again {
					n = max(n, len(values))
				}
			}
		}
	}
	return n
}

func (m *measurement) target(mode string, ranks [2]int) drive.Target {
	t := m.lab.Zipped(mode, ranks[0], ranks[1], nil)
	kind, table := tuned(mode)
	switch kind {
	case "nat":
		t = m.lab.NAT(ranks[0], ranks[1])
	case "routed":
		t = m.lab.Routed(ranks[0], ranks[1])
	}
	return drive.Target{Name: t.Name, Job: func() (*spec.Job, error) {
		j, err := t.Job()
		if err != nil {
			return nil, err
		}
		j.Collectives = table
		for i := range j.Clusters {
			// Debian's settings forbid the only component of Open MPI 4.1 with windows over TCP.
			c := &j.Clusters[i]
			c.Args = append(slices.Clone(c.Args), "--mca", "osc", "^ucx")
		}
		return j, nil
	}}
}

// point is one line that mpi/sweep.c prints.
type point struct {
	operation string
	size      int
	micro     float64
}

// job runs the MPI program on a target. With an error come the points before it.
func (m *measurement) job(ctx context.Context, t drive.Target, parts []part) ([]point, error) {
	count := 0
	for _, p := range parts {
		count += len(p.sizes)
	}
	limit := time.Duration(count) * (pointTime + time.Duration(m.seconds*float64(time.Second)))
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	job, err := t.Job()
	if err != nil {
		return nil, err
	}
	job.Program = []string{m.program, strconv.FormatFloat(m.seconds, 'f', -1, 64)}
	for _, p := range parts {
		job.Program = append(job.Program, p.operation)
		for _, n := range p.sizes {
			job.Program = append(job.Program, strconv.Itoa(n))
		}
	}
	var out, errs bytes.Buffer
	res, err := launch.Run(ctx, job, launch.Options{Stdout: &out, Stderr: &errs})
	err = drive.Failure(ctx, res, err, errs.String())
	points, failed := parse(out.String())
	if err == nil {
		err = failed
	}
	if err == nil && len(points) < count {
		err = fmt.Errorf("%d points for %d sizes", len(points), count)
	}
	return points, err
}

// parse skips what launchers print.
func parse(out string) (points []point, err error) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) != 4 || words[0] != "point" {
			continue
		}
		size, err := strconv.Atoi(words[2])
		micro, err2 := strconv.ParseFloat(words[3], 64)
		if err := errors.Join(err, err2); err != nil || micro <= 0 {
			return points, fmt.Errorf("%s: no time of a size", strings.TrimSpace(line))
		}
		points = append(points, point{words[1], size, micro})
	}
	return points, nil
}
