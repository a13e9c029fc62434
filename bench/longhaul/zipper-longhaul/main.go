// Command zipper-longhaul measures the rows of package longhaul between two sites in the lab
// (scripts/lab up --delay), which it sets up and removes. scripts/bench longhaul builds and runs
// it.
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/bench/longhaul"
)

func main() { drive.Exit("zipper-longhaul", run(os.Args[1:])) }

// settings of the command line.
type settings struct {
	lines      []delayline.Options
	rounds     int
	others     int // of these, the first ones have all, the rest the trunk alone; 0: all have all
	quick      bool
	out        string
	program    string
	congestion string
	only, on   *regexp.Regexp // rows and targets; nil: all
}

func parseFlags(args []string) (s settings, err error) {
	o := delayline.Defaults()
	flags := flag.NewFlagSet("zipper-longhaul", flag.ContinueOnError)
	delays := flags.String("delay", "20ms,50ms", "`list` of one-way delays")
	for _, name := range []string{"rate", "queue", "seed"} {
		flags.Func(name, "of the long link, as of scripts/lab up", func(v string) error { return o.Set(name, v) })
	}
	flags.IntVar(&s.rounds, "rounds", 5, "of every row")
	flags.IntVar(&s.others, "others", 0, "measure what the trunk is compared with, and outages, in the first `rounds` only; 0: in all")
	flags.BoolVar(&s.quick, "quick", false,
		"see whether everything runs: short streams, one round at 5 ms; the figures say nothing")
	flags.StringVar(&s.out, "out", "", "`directory` for longhaul-DELAY.csv and .json")
	flags.StringVar(&s.program, "program", "", "the compiled bench/longhaul/mpi/longhaul.c")
	flags.StringVar(&s.congestion, "congestion", "cubic", "control of all nodes: cubic, reno, bbr")
	for _, f := range []struct {
		name, about string
		to          **regexp.Regexp
	}{{"only", "rows that match the `expression`", &s.only}, {"on", "targets that match the `expression`", &s.on}} {
		flags.Func(f.name, f.about, func(v string) (err error) {
			*f.to, err = regexp.Compile(v)
			return err
		})
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, drive.Usage(err)
	}
	if s.quick {
		s.rounds = 1
		if *delays == flags.Lookup("delay").DefValue {
			*delays = "5ms"
		}
	}
	for d := range strings.SplitSeq(*delays, ",") {
		line := o
		if err := line.Set("delay", d); err != nil {
			return s, drive.Usage(err)
		}
		if err := line.Check(); err != nil {
			return s, drive.Usage(err)
		}
		if line.Rate == 0 {
			return s, drive.Usage(errors.New("rate off: the aims are shares of a rate"))
		}
		s.lines = append(s.lines, line)
	}
	switch {
	case s.rounds < 1:
		return s, drive.Usage(fmt.Errorf("rounds %d: want a number from 1", s.rounds))
	case s.others < 0:
		return s, drive.Usage(fmt.Errorf("others %d: want a number of rounds", s.others))
	case s.program == "" || flags.NArg() > 0:
		return s, drive.Usage(errors.New("want --program PATH and no arguments"))
	}
	s.program, err = filepath.Abs(s.program)
	return s, err
}

func run(args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], "tcp-") {
		return plain(args)
	}
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.program); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	back, err := allow(s.congestion)
	if err != nil {
		return err
	}
	defer back()
	for _, line := range s.lines {
		if err := over(ctx, line, s); err != nil {
			return err
		}
	}
	return nil
}

// plain is this program at an end of plain TCP streams.
func plain(args []string) error {
	if len(args) >= 3 {
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 1 {
			return drive.Usage(fmt.Errorf("%s streams", args[2]))
		}
		switch {
		case args[0] == "tcp-send" && len(args) == 3:
			return tcpSend(args[1], n)
		case args[0] == "tcp-receive" && len(args) == 5:
			warm, err := time.ParseDuration(args[3])
			seconds, err2 := time.ParseDuration(args[4])
			if err := errors.Join(err, err2); err != nil {
				return drive.Usage(err)
			}
			return tcpReceive(args[1], n, warm, seconds)
		}
	}
	return drive.Usage(errors.New("want tcp-receive ADDRESS STREAMS WARM TIME or tcp-send ADDRESS STREAMS"))
}

// over measures over one link; what was measured before an error is written, too.
func over(ctx context.Context, line delayline.Options, s settings) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg := lab.Sites(line)
	cfg.Sysctl = []string{"net.ipv4.tcp_congestion_control=" + s.congestion}
	l, err := lab.Up(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	m := &measurement{lab: l, self: self, program: s.program, warm: 2 * time.Second, seconds: 5 * time.Second,
		window: 32 << 20, count: 20, times: 10,
		cut: 20 * time.Second, only: s.only, on: s.on,
		report: &longhaul.Report{Environment: drive.Describe(line.String()), Line: line, Congestion: s.congestion}}
	if s.quick {
		m.warm, m.seconds, m.window = 300*time.Millisecond, 500*time.Millisecond, 8<<20
		m.count, m.times, m.cut = 3, 3, 2*time.Second
	}
	places := m.places(ctx)
	for m.round = 0; m.round < s.rounds && err == nil; m.round++ {
		m.report.Rounds = m.round + 1
		m.alone = s.others > 0 && m.round >= s.others
		err = m.all(ctx, places)
	}
	return errors.Join(err, write(m.report, s.out))
}

// write shows the table, and keeps the values if there is a directory for them.
func write(r *longhaul.Report, dir string) error {
	err := r.Table(os.Stdout)
	if dir == "" {
		return err
	}
	name := "longhaul-" + r.Line.Delay.String()
	return errors.Join(err, drive.Save(dir, name+".csv", func(f *os.File) error { return r.CSV(f) }),
		drive.Save(dir, name+".json", func(f *os.File) error { return r.JSON(f) }))
}
