package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/measure"
	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Orders of sizes.
const (
	up    = "up"
	down  = "down"
	mixed = "mixed"
)

// pointTime is how long one point may take beside its time: some points are many seconds of calls.
const pointTime = 30 * time.Second

// sweep is the plan that measures every operation at every size.
type sweep struct {
	// The options of the command line, which options describes.
	on, list, pairs, kinds, rate, order string
	powers, together                    bool
	again, last                         int
	seconds                             float64

	// operations are those that on selects.
	operations []measure.Operation
	// sizes are those of list, in bytes.
	sizes []int
	// ranks are those of pairs: the numbers of ranks in both clusters.
	ranks [][2]int
	// modes are those of kinds; the others are compared with the last one.
	modes []string
}

func (p *sweep) options(flags *flag.FlagSet) (rounds int, quick map[string]string) {
	flags.StringVar(&p.on, "on", ".*", "operations that match the `expression`, whole: bcast|i.*")
	flags.StringVar(&p.list, "sizes", "1..16M", "`bytes`: a range, or a list")
	flags.BoolVar(&p.powers, "powers", false, "powers of two alone, without their neighbours")
	flags.StringVar(&p.pairs, "ranks", "2+2,4+4,3+5", "`list` of ranks in both clusters")
	flags.StringVar(&p.kinds, "modes", "zipped,nat,routed", "`list`; the others are compared with the last. zipped:slice=4K;combine=64K has another table of collectives")
	flags.StringVar(&p.rate, "rate", "1gbit", "limit of every link; none: no limit")
	flags.StringVar(&p.order, "order", mixed, "of the sizes in a job: up, down, or mixed, another one in each round")
	flags.IntVar(&p.again, "again", 6, "rounds in which the worst point of each curve is measured again, alone")
	flags.Float64Var(&p.seconds, "seconds", 0.1, "of a point in one round")
	flags.IntVar(&p.last, "last", 0, "`calls` of a collective, each timed from a common start until the last rank's end; 0: the mean of all ranks' times")
	flags.BoolVar(&p.together, "together", false, "all operations in one job, which saves the starts of many")
	return 6, map[string]string{"sizes": "8,64K", "ranks": "1+1", "again": "0", "seconds": "0.001", "together": "true"}
}

func (p *sweep) sessions(bool) ([]*session, error) {
	if err := p.parse(); err != nil {
		return nil, err
	}
	cfg, shaping := lab.Small(), "no limit"
	if p.rate != "none" {
		cfg.Rate, shaping = p.rate, p.rate
	}
	r := &measure.Report{Environment: drive.Describe(shaping), Targets: p.modes, Order: p.order, Last: p.last}
	return []*session{{config: cfg, report: r, file: "sweep", table: r.Holes, steps: p.steps, again: p.worst,
		repeats: p.again}}, nil
}

// parse checks the options and reads the lists among them.
func (p *sweep) parse() error {
	expression, err := regexp.Compile("^(?:" + p.on + ")$")
	if err != nil {
		return err
	}
	for _, o := range measure.Operations() {
		if expression.MatchString(o.Name) {
			p.operations = append(p.operations, o)
		}
	}
	if p.sizes, err = measure.ParseSizes(p.list, !p.powers); err != nil {
		return err
	}
	for r := range strings.SplitSeq(p.pairs, ",") {
		a, b, _ := strings.Cut(r, "+")
		n, err := strconv.Atoi(a)
		m, err2 := strconv.Atoi(b)
		if err := errors.Join(err, err2); err != nil || n < 1 || m < 1 {
			return fmt.Errorf("ranks %q: want numbers like 4+4", r)
		}
		p.ranks = append(p.ranks, [2]int{n, m})
	}
	for m := range strings.SplitSeq(p.kinds, ",") {
		kind, table := tuned(m)
		if !slices.Contains([]string{"zipped", "nat", "routed"}, kind) {
			return fmt.Errorf("mode %q: want zipped, nat, routed", m)
		}
		if _, err := collectives.ParseTuning(table); err != nil {
			return fmt.Errorf("mode %q: %w", m, err)
		}
		p.modes = append(p.modes, m)
	}
	switch {
	case len(p.operations) == 0:
		return fmt.Errorf("--on %s: no such operation", p.on)
	case !slices.Contains([]string{up, down, mixed}, p.order):
		return fmt.Errorf("order %q: want up, down or mixed", p.order)
	case p.again < 0:
		return errors.New("--again: want 0 or more")
	case p.last < 0:
		return errors.New("--last: want 0 or more")
	case p.seconds <= 0:
		return errors.New("--seconds: want more than 0")
	}
	return nil
}

// tuned splits a mode like zipped:slice=4K;combine=64K into its kind and its table of collectives.
func tuned(mode string) (kind, table string) {
	kind, table, _ = strings.Cut(mode, ":")
	return kind, strings.ReplaceAll(table, ";", ",")
}

func (p *sweep) steps(m *measurement, round int) (all []step) {
	for _, ranks := range p.ranks {
		for _, parts := range p.jobs(round) {
			all = append(all, p.step(m, ranks, parts))
		}
	}
	return all
}

// jobs returns the parts of each job of a round: an operation each, or all together but for
// threads, for which all of MPI works differently. Operations that have none of the sizes are left
// out.
func (p *sweep) jobs(round int) (all [][]part) {
	var together []part
	for _, o := range p.operations {
		one := part{o.Name, p.inOrder(o.Sizes(p.sizes), round)}
		switch {
		case len(one.sizes) == 0:
		case p.together && o.Name != "threads":
			together = append(together, one)
		default:
			all = append(all, []part{one})
		}
	}
	if together != nil {
		all = append(all, together)
	}
	return all
}

// inOrder sorts the sizes into a round's order, which is the same for all modes.
func (p *sweep) inOrder(sizes []int, round int) []int {
	switch p.order {
	case down:
		slices.Reverse(sizes)
	case mixed:
		r := rand.New(rand.NewPCG(uint64(round), 0))
		r.Shuffle(len(sizes), func(i, k int) { sizes[i], sizes[k] = sizes[k], sizes[i] })
	}
	return sizes
}

// worst returns a step for the worst points of all curves, each alone. beside.p90 has none, because
// it is measured with beside.
func (p *sweep) worst(m *measurement) (all []step) {
	for _, row := range m.report.Worst() {
		var ranks [2]int
		if _, err := fmt.Sscanf(row.Ranks, "%d+%d", &ranks[0], &ranks[1]); err != nil {
			panic(err) // step wrote it
		}
		if !strings.Contains(row.Name, ".") {
			all = append(all, p.step(m, ranks, []part{{row.Name, []int{row.Size}}}))
		}
	}
	return all
}

// step returns a job's step: one on each mode.
func (p *sweep) step(m *measurement, ranks [2]int, parts []part) step {
	where, name := fmt.Sprintf("%d+%d", ranks[0], ranks[1]), parts[0].operation
	if len(parts) > 1 {
		name += fmt.Sprintf(" and %d others", len(parts)-1)
	}
	s := step{name: name + " on " + where}
	count := 0
	for _, o := range parts {
		for _, n := range o.sizes {
			s.rows = append(s.rows, measure.Row{Name: o.operation, Ranks: where, Size: n, Unit: measure.Micro})
			count++
		}
	}
	for _, mode := range p.modes {
		s.targets = append(s.targets, target{name: mode, job: func(a, b int) drive.Target { return place(m.lab, mode, a, b) }})
	}
	limit := time.Duration(count) * (pointTime + time.Duration(p.seconds*float64(time.Second)))
	s.run = func(ctx context.Context, t target) (samples []sample, err error) {
		options := []string{"-s", strconv.FormatFloat(p.seconds, 'f', -1, 64), "-c", strconv.Itoa(p.last)}
		points, err := m.job(ctx, t.job(ranks[0], ranks[1]), limit, options, parts...)
		for _, at := range points {
			row := measure.Row{Name: at.operation, Ranks: where, Size: at.size, Unit: measure.Micro}
			took := stat.Summarize(at.values).Median
			if took <= 0 {
				return samples, errors.Join(err, fmt.Errorf("%s of %d bytes took no time", at.operation, at.size))
			}
			samples = append(samples, sample{row, took})
		}
		return samples, err
	}
	return s
}

// place returns the target of a mode in the lab.
func place(l *lab.Lab, mode string, a, b int) drive.Target {
	kind, table := tuned(mode)
	t := l.Zipped(mode, a, b, nil)
	switch kind {
	case "nat":
		t = l.NAT(a, b)
	case "routed":
		t = l.Routed(a, b)
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
