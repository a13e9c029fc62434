// Command zipper-measure carries out a plan of package measure in the lab, which it sets up and
// removes. scripts/bench builds and runs it for its rows sweep and longhaul.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/measure"
)

func main() { drive.Exit("zipper-measure", run(os.Args[1:])) }

// plan is a kind of measurement.
type plan interface {
	// options adds the plan's options to flags. It returns the default number of rounds, and the
	// values of options that --quick sets unless the command line does.
	options(flags *flag.FlagSet) (rounds int, quick map[string]string)
	// sessions reads the options and returns what to measure, one session for each lab.
	sessions(quick bool) ([]*session, error)
}

// session is the part of a plan that is measured in one lab.
type session struct {
	config lab.Config
	report *measure.Report
	// file is the name of the files with the values, without the suffix.
	file string
	// table writes the report's table.
	table func(w io.Writer) error
	// steps returns the jobs of a round, which counts from 0.
	steps func(m *measurement, round int) []step
	// again returns the jobs that are repeated after all rounds.
	again func(m *measurement) []step
	// repeats is how often each of these is repeated.
	repeats int
}

// settings are the options that all plans have.
type settings struct {
	rounds       int
	out, program string
}

// parseFlags reads the plan's name and the options. It returns a UsageError, or flag.ErrHelp.
func parseFlags(args []string) (s settings, p plan, sessions []*session, err error) {
	if len(args) > 0 {
		p = map[string]plan{"sweep": &sweep{}, "longhaul": &longhaul{}}[args[0]]
	}
	if p == nil {
		return s, nil, nil, drive.Usage(errors.New("want sweep or longhaul, and its options; PLAN --help lists them"))
	}
	flags := flag.NewFlagSet("zipper-measure "+args[0], flag.ContinueOnError)
	rounds, short := p.options(flags)
	flags.IntVar(&s.rounds, "rounds", rounds, "of all targets in turn")
	quick := flags.Bool("quick", false, "check that everything runs, in one short round; the figures are meaningless")
	flags.StringVar(&s.out, "out", "", "`directory` for the values, as CSV and JSON")
	flags.StringVar(&s.program, "program", "", "the compiled bench/measure/mpi")
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, p, nil, err
		}
		return s, p, nil, drive.Usage(err)
	}
	if *quick {
		short["rounds"] = "1"
		flags.Visit(func(f *flag.Flag) { delete(short, f.Name) })
		for name, value := range short {
			if err := flags.Set(name, value); err != nil {
				return s, p, nil, err
			}
		}
	}
	switch {
	case s.rounds < 1:
		return s, p, nil, drive.Usage(fmt.Errorf("rounds %d: want a number from 1", s.rounds))
	case s.program == "" || flags.NArg() > 0:
		return s, p, nil, drive.Usage(errors.New("want --program PATH and no arguments"))
	}
	if sessions, err = p.sessions(*quick); err != nil {
		return s, p, nil, drive.Usage(err)
	}
	s.program, err = filepath.Abs(s.program)
	return s, p, sessions, err
}

func run(args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], "tcp-") {
		return plain(args)
	}
	s, _, sessions, err := parseFlags(args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.program); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	for _, of := range sessions {
		err = errors.Join(err, s.measure(ctx, of))
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

// measure sets up the session's lab, measures there, and writes what was measured, also before an
// error.
func (s settings) measure(ctx context.Context, of *session) (err error) {
	if control := of.report.Congestion; control != "" {
		back, err := allow(control)
		if err != nil {
			return err
		}
		defer back()
		of.config.Sysctl = append(of.config.Sysctl, "net.ipv4.tcp_congestion_control="+control)
	}
	m := &measurement{session: of, program: s.program}
	if m.lab, err = lab.Up(ctx, of.config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.lab.Down()) }()
	err = m.all(ctx, s.rounds)
	return errors.Join(err, s.write(of))
}

// write prints the table, and writes the values if there is a directory for them.
func (s settings) write(of *session) error {
	err := of.table(os.Stdout)
	if s.out == "" {
		return err
	}
	return errors.Join(err, drive.Save(s.out, of.file+".csv", func(f *os.File) error { return of.report.CSV(f) }),
		drive.Save(s.out, of.file+".json", func(f *os.File) error { return of.report.JSON(f) }))
}
