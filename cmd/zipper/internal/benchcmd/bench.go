package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// bench has the common parts of all benchmark commands: a runner and the requested targets.
type bench struct {
	ctx    context.Context
	runner *drive.Runner
	// job is the zipped job that the flags describe.
	job *spec.Job
	// lab is nil without --lab.
	lab   *lab.Lab
	env   drive.Environment
	close func()
}

// openBench prepares a measurement; the caller must close it.
func openBench(c *cli.Context) (*bench, error) {
	log, err := clikit.NewLogger(c.String("log"))
	if err != nil {
		return nil, err
	}
	switch c.String("format") {
	case "table", "csv", "json":
	default:
		return nil, clikit.Usage(fmt.Errorf("--format %s: want table, csv or json", c.String("format")))
	}
	job, err := benchJob(c)
	if err != nil {
		return nil, clikit.Usage(err)
	}
	for _, m := range strings.Split(cmp.Or(c.String("modes"), c.String("mode"), "zipped"), ",") {
		if err := checkMode(m, c.Bool("lab")); err != nil {
			return nil, clikit.Usage(err)
		}
	}
	program, err := drive.Program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	b := &bench{ctx: ctx, job: job, close: cancel, runner: &drive.Runner{Program: program,
		Options: launch.Options{StartForwarder: jobforwarder.Starter(log, jobforwarder.NATOff)}}}
	if c.Bool("lab") {
		cfg := lab.Small()
		cfg.Rate = c.String("rate")
		cfg.Zippers = nil
		for i := range c.Int("lab-zippers") {
			cfg.Zippers = append(cfg.Zippers, fmt.Sprintf("z%d", i+1))
		}
		l, err := lab.Up(ctx, cfg)
		if err != nil {
			err = clikit.WithCause(ctx, err)
			cancel()
			return nil, err
		}
		b.lab = l
		b.close = func() {
			takeDown(l, log)
			cancel()
		}
		if r := c.String("zipper-rate"); r != "" {
			if err := l.Shape(ctx, r, cfg.Zippers...); err != nil {
				b.close()
				return nil, clikit.WithCause(ctx, err)
			}
		}
	}
	shaping := "none"
	if r := c.String("rate"); r != "" {
		shaping = r
	}
	if r := c.String("zipper-rate"); r != "" {
		shaping += ", zipper nodes " + r
	}
	b.env = drive.Describe(shaping)
	return b, nil
}

// takeDown removes a lab. A failure of that does not affect the result.
func takeDown(l *lab.Lab, log *zap.Logger) {
	if err := l.Down(); err != nil {
		log.Warn("the lab was not removed cleanly", zap.Error(err))
	}
}

// targets returns the targets of the modes, for a job like b.job.
func (b *bench) targets(modes []string, job *spec.Job) (all []drive.Target, err error) {
	for _, m := range modes {
		t, err := target(m, job, b.lab)
		if err != nil {
			return nil, clikit.Usage(err)
		}
		all = append(all, withTuning(t, job.Collectives))
	}
	return all, nil
}

// withTuning returns a target whose collectives use a table; an empty one means the built-in table.
func withTuning(t drive.Target, table string) drive.Target {
	if table == "" {
		return t
	}
	return drive.Target{Name: t.Name, Job: func() (*spec.Job, error) {
		j, err := t.Job()
		if err != nil {
			return nil, err
		}
		j.Collectives = table
		return j, nil
	}}
}

// openTarget returns the result of openBench and the target that --mode names.
func openTarget(c *cli.Context) (*bench, drive.Target, error) {
	b, err := openBench(c)
	if err != nil {
		return nil, drive.Target{}, err
	}
	all, err := b.targets([]string{c.String("mode")}, b.job)
	if err != nil {
		b.close()
		return nil, drive.Target{}, err
	}
	return b, all[0], nil
}

// benchJob returns the zipped job that the flags describe.
func benchJob(c *cli.Context) (*spec.Job, error) {
	if c.Bool("lab") && (c.String("file") != "" || len(c.StringSlice("zipper")) > 0) {
		return nil, errors.New("--lab brings its own hosts and forwarders: leave --file and --zipper out")
	}
	for _, name := range []string{"rate", "zipper-rate", "lab-zippers"} {
		if c.IsSet(name) && !c.Bool("lab") {
			return nil, fmt.Errorf("--%s is about the lab: add --lab", name)
		}
	}
	if n := c.Int("lab-zippers"); c.Bool("lab") && (n < 1 || n > 8) {
		return nil, fmt.Errorf("--lab-zippers %d: want 1 to 8", n)
	}
	job, err := clikit.JobFromFlags(c)
	if err != nil {
		return nil, err
	}
	job.Program = nil // the arguments name the benchmark
	if len(job.Clusters) == 0 {
		job.Clusters = []spec.Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}}
	}
	if c.Bool("lab") && len(job.Clusters) != 2 {
		return nil, errors.New("--lab has two clusters: give --cluster twice or not at all")
	}
	return job, nil
}
