// Command zipper-sweep measures every operation of package sweep over sizes in the lab, which it
// sets up and removes. scripts/bench sweep builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/sweep"
	"github.com/leidenzipper/zipper/collectives"
)

func main() { drive.Exit("zipper-sweep", run(os.Args[1:])) }

// Orders of sizes.
const (
	up    = "up"
	down  = "down"
	mixed = "mixed"
)

// settings of the command line.
type settings struct {
	operations []sweep.Operation
	sizes      []int
	ranks      [][2]int
	modes      []string
	rate       string // empty: no limit
	order      string
	rounds     int
	again      int
	together   bool // operations in one job
	seconds    float64
	out        string
	program    string
}

func parseFlags(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("zipper-sweep", flag.ContinueOnError)
	on := flags.String("on", ".", "operations that match the `expression`, whole: bcast|i.*")
	sizes := flags.String("sizes", "1..16M", "`bytes`: a range, or a list")
	powers := flags.Bool("powers", false, "powers of two alone, without their neighbours")
	ranks := flags.String("ranks", "2+2,4+4,3+5", "`list` of ranks in both clusters")
	modes := flags.String("modes", "zipped,nat,routed", "`list`; the last is what the others are compared with. zipped:slice=4K;combine=64K has another table of collectives")
	rate := flags.String("rate", "1gbit", "limit of every link; none: no limit")
	flags.StringVar(&s.order, "order", mixed, "of the sizes in a job: up, down, or mixed, another one in each round")
	flags.IntVar(&s.rounds, "rounds", 6, "of all modes in turn; an interval takes 6")
	flags.IntVar(&s.again, "again", 6, "rounds in which the worst point of each curve is measured again, alone")
	flags.Float64Var(&s.seconds, "seconds", 0.1, "of a point in one round")
	flags.BoolVar(&s.together, "together", false, "all operations in one job, which saves the starts of many")
	quick := flags.Bool("quick", false, "see whether everything runs: few sizes, one short round on 1+1 ranks; the figures say nothing")
	flags.StringVar(&s.out, "out", "", "`directory` for sweep.csv and sweep.json")
	flags.StringVar(&s.program, "program", "", "the compiled bench/sweep/mpi/sweep.c")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, drive.Usage(err)
	}
	if *quick {
		set := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
		for name, value := range map[string]string{"sizes": "8,64K", "ranks": "1+1", "rounds": "1", "again": "0",
			"seconds": "0.001", "together": "true"} {
			if !set[name] {
				if err := flags.Set(name, value); err != nil {
					return s, err
				}
			}
		}
	}
	expression, err := regexp.Compile("^(?:" + *on + ")$")
	if *on == "." {
		expression, err = regexp.Compile("")
	}
	if err != nil {
		return s, drive.Usage(err)
	}
	for _, o := range sweep.Operations() {
		if expression.MatchString(o.Name) {
			s.operations = append(s.operations, o)
		}
	}
	if s.sizes, err = sweep.ParseSizes(*sizes, !*powers); err != nil {
		return s, drive.Usage(err)
	}
	for r := range strings.SplitSeq(*ranks, ",") {
		a, b, _ := strings.Cut(r, "+")
		n, err := strconv.Atoi(a)
		m, err2 := strconv.Atoi(b)
		if err := errors.Join(err, err2); err != nil || n < 1 || m < 1 {
			return s, drive.Usage(fmt.Errorf("ranks %q: want numbers like 4+4", r))
		}
		s.ranks = append(s.ranks, [2]int{n, m})
	}
	for m := range strings.SplitSeq(*modes, ",") {
		kind, table := tuned(m)
		if !slices.Contains([]string{"zipped", "nat", "routed"}, kind) {
			return s, drive.Usage(fmt.Errorf("mode %q: want zipped, nat, routed", m))
		}
		if _, err := collectives.ParseTuning(table); err != nil {
			return s, drive.Usage(fmt.Errorf("mode %q: %w", m, err))
		}
		s.modes = append(s.modes, m)
	}
	if s.rate = *rate; s.rate == "none" {
		s.rate = ""
	}
	switch {
	case len(s.operations) == 0:
		return s, drive.Usage(fmt.Errorf("--on %s: no such operation", *on))
	case !slices.Contains([]string{up, down, mixed}, s.order):
		return s, drive.Usage(fmt.Errorf("order %q: want up, down or mixed", s.order))
	case s.rounds < 1 || s.again < 0:
		return s, drive.Usage(errors.New("want rounds from 1, again from 0"))
	case s.seconds <= 0:
		return s, drive.Usage(errors.New("want seconds above 0"))
	case s.program == "" || flags.NArg() > 0:
		return s, drive.Usage(errors.New("want --program PATH and no arguments"))
	}
	s.program, err = filepath.Abs(s.program)
	return s, err
}

// tuned takes a mode like zipped:slice=4K;combine=64K apart: its kind, and the table of
// collectives.
func tuned(mode string) (kind, table string) {
	kind, table, _ = strings.Cut(mode, ":")
	return kind, strings.ReplaceAll(table, ";", ",")
}

func run(args []string) (err error) {
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.program); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	cfg := lab.Small()
	cfg.Rate = s.rate
	shaping := s.rate
	if shaping == "" {
		shaping = "no limit"
	}
	m := &measurement{settings: s, report: &sweep.Report{Environment: drive.Describe(shaping), Modes: s.modes,
		Order: s.order}}
	if m.lab, err = lab.Up(ctx, cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.lab.Down()) }()
	err = m.all(ctx)
	return errors.Join(err, write(m.report, s.out))
}

// write shows the table, and keeps the values if there is a directory for them.
func write(r *sweep.Report, dir string) error {
	err := r.Table(os.Stdout)
	if dir == "" {
		return err
	}
	return errors.Join(err, drive.Save(dir, "sweep.csv", func(f *os.File) error { return r.CSV(f) }),
		drive.Save(dir, "sweep.json", func(f *os.File) error { return r.JSON(f) }))
}
