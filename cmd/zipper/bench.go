package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "measure: OSU-style, NAS kernels, networks, comparisons, a report",
		Subcommands: []*cli.Command{benchOSUCommand(), benchNPBCommand(), benchCompareCommand(), benchScaleCommand(), benchNetCommand(), agentCommand(), benchContentionCommand(), benchLoadCommand(), benchReportCommand()},
	}
}

// targetFlags choose where a benchmark runs.
var targetFlags = []cli.Flag{
	&cli.StringSliceFlag{Name: "cluster", Aliases: []string{"c"}, Usage: "`NAME=RANKS`[,...] as in zipper run; default a=1 and b=1 on this host"},
	&cli.StringSliceFlag{Name: "zipper", Aliases: []string{"z"}, Usage: "`HOST[:PORT]` of a forwarder that runs already"},
	&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "job description, YAML `FILE`"},
	&cli.BoolFlag{Name: "lab", Usage: "in namespaces of this machine with no route between the clusters (root)"},
	rateFlag("rate", "", "limit of every link in the lab, such as `1gbit`"),
	&cli.IntFlag{Name: "lab-zippers", Usage: "zipper nodes of the lab, 1 to 8", Value: 1},
	rateFlag("zipper-rate", "", "another limit of the links of the lab's zipper nodes"),
	&cli.StringFlag{Name: "format", Usage: "table, csv or json", Value: "table"},
	logFlag,
}

var rateForm = regexp.MustCompile(`(?i)^([0-9]+(?:\.[0-9]+)?)(?:[kmgt]i?)?bit$`)

// rateFlag is one for tc's limit of links in the lab: what is wrong with it is told before the lab is up. Empty and off: no limit.
func rateFlag(name, value, about string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, Usage: about, Action: func(_ *cli.Context, s string) error {
		if s == "" || s == "off" {
			return nil
		}
		if m := rateForm.FindStringSubmatch(s); m == nil || strings.Trim(m[1], "0.") == "" {
			return usage(fmt.Errorf("--%s %s: want a number with the unit bit, kbit, mbit or gbit, such as 100mbit", name, s))
		}
		return nil
	}}
}

const modes = "zipped, classic (the original's protocol), native (one cluster, no zipper), nat (lab only: zipper forwarder --nat), routed (lab only: the zipper node routes IP)"

// modeFlag is of commands that measure on one target, modesFlag of those that compare.
var (
	modeFlag  = &cli.StringFlag{Name: "mode", Usage: modes, Value: "zipped"}
	modesFlag = &cli.StringFlag{Name: "modes", Usage: "`LIST`, the first is compared with the others: " + modes, Value: "zipped,native"}
)

var osuFlags = []cli.Flag{
	&cli.IntFlag{Name: "min", Usage: "smallest message, bytes", Value: 1},
	&cli.IntFlag{Name: "max", Usage: "largest message, bytes (0: the benchmark's own)"},
	&cli.IntFlag{Name: "window", Usage: "messages in flight in bandwidth tests", Value: 64},
	&cli.IntFlag{Name: "reps", Usage: "repetitions at most, for each size", Value: 50},
}

// bench is what all benchmark commands need: a runner and the targets asked for.
type bench struct {
	ctx    context.Context
	runner *drive.Runner
	job    *spec.Job // zipped, as the flags describe it
	lab    *lab.Lab  // nil without --lab
	env    drive.Environment
	close  func()
}

// openBench prepares a measurement; close it.
func openBench(c *cli.Context) (*bench, error) {
	log, err := newLogger(c.String("log"))
	if err != nil {
		return nil, err
	}
	switch c.String("format") {
	case "table", "csv", "json":
	default:
		return nil, usage(fmt.Errorf("--format %s: want table, csv or json", c.String("format")))
	}
	job, err := benchJob(c)
	if err != nil {
		return nil, usage(err)
	}
	for _, m := range strings.Split(cmp.Or(c.String("modes"), c.String("mode")), ",") {
		if err := checkMode(m, c.Bool("lab")); err != nil {
			return nil, usage(err)
		}
	}
	program, err := drive.Program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := untilSignal(c.Context)
	b := &bench{ctx: ctx, job: job, close: cancel, runner: &drive.Runner{Program: program, Options: launch.Options{StartRelay: relayStarter(log)}}}
	if c.Bool("lab") {
		cfg := lab.Small()
		cfg.Rate = c.String("rate")
		cfg.Zippers = nil
		for i := range c.Int("lab-zippers") {
			cfg.Zippers = append(cfg.Zippers, fmt.Sprintf("z%d", i+1))
		}
		l, err := lab.Up(ctx, cfg)
		if err != nil {
			err = because(ctx, err)
			cancel()
			return nil, err
		}
		b.lab = l
		b.close = func() {
			if err := l.Down(); err != nil {
				log.Warn("the lab was not removed cleanly", zap.Error(err))
			}
			cancel()
		}
		if r := c.String("zipper-rate"); r != "" {
			if err := l.Shape(ctx, r, cfg.Zippers...); err != nil {
				b.close()
				return nil, because(ctx, err)
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

// because is err, or why ctx ended where that is the reason of it.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// targets are what the modes name, of a job like b.job.
func (b *bench) targets(modes []string, job *spec.Job) (all []drive.Target, err error) {
	for _, m := range modes {
		t, err := target(m, job, b.lab)
		if err != nil {
			return nil, usage(err)
		}
		all = append(all, t)
	}
	return all, nil
}

// openTarget is openBench and the one target that --mode names.
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

func relayStarter(log *zap.Logger) func(context.Context, bool, string) (launch.Relay, error) {
	return func(_ context.Context, local bool, protocol string) (launch.Relay, error) {
		return startRelay(local, protocol, log)
	}
}

// benchJob is the zipped job that the flags describe.
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
	job, err := jobFromFlags(c)
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

func target(mode string, job *spec.Job, l *lab.Lab) (drive.Target, error) {
	total := ranks(job)
	switch {
	case mode == "zipped" && l != nil:
		return l.Zipped("zipped", job.Clusters[0].Ranks, job.Clusters[1].Ranks, nil), nil
	case mode == "classic" && l != nil:
		return l.Classic(job.Clusters[0].Ranks, job.Clusters[1].Ranks)
	case mode == "zipped", mode == "classic":
		return drive.Target{Name: mode, Job: func() *spec.Job {
			j := *job
			j.Clusters = append([]spec.Cluster(nil), job.Clusters...)
			if mode == "classic" {
				j.Protocol = jobenv.Classic
			}
			return &j
		}}, nil
	case mode == "native" && l != nil:
		return l.Native(total), nil
	case mode == "native":
		mpi := job.Clusters[0].MPI
		if mpi == "" {
			mpi = spec.OpenMPI
		}
		return drive.Native(mpi, total), nil
	case mode == "routed" && l != nil:
		return l.Routed(job.Clusters[0].Ranks, job.Clusters[1].Ranks), nil
	case mode == "nat" && l != nil:
		return l.NAT(job.Clusters[0].Ranks, job.Clusters[1].Ranks), nil
	}
	return drive.Target{}, checkMode(mode, l != nil)
}

// checkMode tells whether there is such a mode.
func checkMode(mode string, lab bool) error {
	switch {
	case (mode == "routed" || mode == "nat") && !lab:
		return fmt.Errorf("mode %s needs --lab", mode)
	case slices.Contains([]string{"zipped", "classic", "native", "nat", "routed"}, mode):
		return nil
	}
	return fmt.Errorf("mode %q: want zipped, classic, native, nat or routed", mode)
}

// numbers reads the LIST of a flag.
func numbers(c *cli.Context, flag string, least int) (list []int, err error) {
	for _, s := range strings.Split(c.String(flag), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < least {
			return nil, fmt.Errorf("--%s %s: want numbers from %d on, separated by commas", flag, c.String(flag), least)
		}
		list = append(list, n)
	}
	return list, nil
}

func ranks(job *spec.Job) (total int) {
	for _, cl := range job.Clusters {
		total += cl.Ranks
	}
	return total
}

// words are a benchmark command's arguments; the error shows the form and reminds of the order.
func words(c *cli.Context, n int, form string) ([]string, error) {
	for _, a := range c.Args().Slice() {
		if strings.HasPrefix(a, "-") {
			return nil, usage(fmt.Errorf("%s: flags come before the arguments: zipper bench %s [flags] %s", a, c.Command.Name, form))
		}
	}
	if c.NArg() != n {
		return nil, usage(fmt.Errorf("want zipper bench %s [flags] %s", c.Command.Name, form))
	}
	return c.Args().Slice(), nil
}

// osuName is the argument of a command that takes one OSU-style benchmark.
func osuName(c *cli.Context) (string, error) {
	name, err := words(c, 1, "NAME")
	if err != nil {
		return "", err
	}
	if err := osu.Known(name[0]); err != nil {
		return "", usage(err)
	}
	return name[0], nil
}

// osuOptions are those of the flags --window and --reps for messages of lo to hi bytes; hi 0: the benchmark's own.
func osuOptions(c *cli.Context, lo, hi int) (osu.Options, error) {
	o := osu.Defaults()
	o.MinSize, o.MaxSize, o.Window, o.Rule.Max = lo, hi, c.Int("window"), c.Int("reps")
	if o.MinSize < 1 || o.MaxSize < 0 || o.Window < 1 || o.Rule.Max < 2 {
		return o, usage(errors.New("--min, --size and --window start at 1, --reps at 2"))
	}
	o.Rule.Min = min(o.Rule.Min, o.Rule.Max)
	return o, nil
}

func benchOSUCommand() *cli.Command {
	return &cli.Command{
		Name: "osu", Usage: "an OSU-style micro-benchmark", ArgsUsage: "NAME",
		Description: "NAME: latency, bw, bibw, mbw_mr, multi_lat; barrier, bcast, reduce, allreduce, alltoall, alltoallv, gather, scatter,\nallgather, allgatherv; and these with i in front: nonblocking, with the share of overlap.",
		Flags:       slices.Concat([]cli.Flag{modeFlag}, targetFlags, osuFlags),
		Action: func(c *cli.Context) error {
			name, err := osuName(c)
			if err != nil {
				return err
			}
			o, err := osuOptions(c, c.Int("min"), c.Int("max"))
			if err != nil {
				return err
			}
			b, t, err := openTarget(c)
			if err != nil {
				return err
			}
			defer b.close()
			if c.String("format") == "table" {
				return b.runner.OSUTable(b.ctx, os.Stdout, t, o, name)
			}
			all, out, err := b.runner.OSU(b.ctx, t, o, name)
			if err != nil {
				return err
			}
			res := all[0]
			return show(c, res, map[string]any{"environment": b.env, "target": t.Name, "result": res, "traffic": out.Traffic})
		},
	}
}

// show writes a result in the form of --format; v is its JSON form.
func show(c *cli.Context, r interface {
	Table(io.Writer) error
	CSV(io.Writer) error
}, v any) error {
	if c.String("format") == "csv" {
		return r.CSV(os.Stdout)
	}
	return emit(c, r.Table, v)
}

func emit(c *cli.Context, table func(io.Writer) error, v any) error {
	if c.String("format") == "json" {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	return table(os.Stdout)
}

func benchNPBCommand() *cli.Command {
	return &cli.Command{
		Name: "npb", Usage: "a NAS parallel benchmark", ArgsUsage: "KERNEL CLASS",
		Description: "KERNEL: ep, is, cg, mg, ft, lu. CLASS: S, W, A, B, C. Each checks its result against the official values.\nRanks in all: a power of two (1, 2, 4, 8 …), for ep any number.",
		Flags:       append([]cli.Flag{modeFlag, &cli.BoolFlag{Name: "matrix", Usage: "also who sent how much to whom (jobs of several clusters)"}}, targetFlags...),
		Action: func(c *cli.Context) error {
			kernel, err := words(c, 2, "KERNEL CLASS")
			if err != nil {
				return err
			}
			if _, err := npb.ParseClass(kernel[1]); err != nil {
				return usage(err)
			}
			b, t, err := openTarget(c)
			if err != nil {
				return err
			}
			defer b.close()
			if err := npb.Check(kernel[0], ranks(b.job)); err != nil {
				return usage(err)
			}
			var res npb.Result
			var out launch.Outcome
			var matrix [][]int64
			if c.Bool("matrix") {
				res, out, matrix, err = b.runner.Matrix(b.ctx, t, kernel[0], kernel[1])
			} else {
				res, out, err = b.runner.NPB(b.ctx, t, kernel[0], kernel[1])
			}
			if err != nil {
				return err
			}
			return emit(c, func(w io.Writer) error {
				fmt.Fprintln(w, res)
				for _, x := range out.Traffic {
					fmt.Fprintf(w, "  crossed %s -> %s: %d messages, %d bytes of data\n", x.From, x.To, x.Messages, x.Bytes)
				}
				return printMatrix(w, matrix)
			}, map[string]any{"environment": b.env, "target": t.Name, "result": res, "traffic": out.Traffic, "matrix": matrix})
		},
	}
}

// printMatrix writes bytes by sender (rows) and receiver (columns); nothing for an empty matrix.
func printMatrix(w io.Writer, bytes [][]int64) error {
	if len(bytes) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "  bytes from\\to\t")
	for to := range bytes {
		fmt.Fprintf(t, "%d\t", to)
	}
	for from, row := range bytes {
		fmt.Fprintf(t, "\n%d\t", from)
		for _, n := range row {
			fmt.Fprintf(t, "%d\t", n)
		}
	}
	fmt.Fprintln(t)
	return t.Flush()
}
