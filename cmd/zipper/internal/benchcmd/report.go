package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/bench/report"
	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// reportSet determines how much a report measures.
type reportSet struct {
	// rounds is the number of rounds of the micro-benchmarks.
	rounds  int
	osu     osu.Options
	p2pMax  int
	collMax int
	// ranks are the numbers of ranks in each cluster.
	ranks []int
	// scaling are the message sizes of the curves over the number of ranks.
	scaling   []int
	npbRounds int
	// npbRanks are the numbers of ranks in each cluster for the kernels.
	npbRanks []int
	classes  map[string]string
}

var reportKernels = []string{"cg", "is", "mg", "ft", "lu", "ep"}

func reportSets(name string) (reportSet, error) {
	o := osu.Defaults()
	switch name {
	case "quick": // takes less than five minutes on two cores
		o.Rule, o.RepSeconds, o.Warmup = stat.Rule{Min: 5, Max: 5, Width: 0.025}, 0.005, 5
		return reportSet{rounds: 1, osu: o, p2pMax: 256 << 10, collMax: 64 << 10, ranks: []int{1, 2, 3},
			scaling: []int{1 << 10}, npbRounds: 1, npbRanks: []int{2},
			classes: map[string]string{"cg": "S", "is": "S", "mg": "S", "ft": "S", "lu": "S", "ep": "S"}}, nil
	case "full": // the spread comes from the rounds, so each round is short
		o.Rule, o.RepSeconds, o.Warmup = stat.Rule{Min: 3, Max: 10, Width: 0.025}, 0.01, 20
		return reportSet{rounds: 10, osu: o, p2pMax: 4 << 20, collMax: 1 << 20, ranks: []int{1, 2, 3, 4},
			scaling: []int{1 << 10, 64 << 10}, npbRounds: 3, npbRanks: []int{1, 2, 4},
			classes: map[string]string{"cg": "A", "is": "A", "mg": "A", "ft": "W", "lu": "W", "ep": "W"}}, nil
	}
	return reportSet{}, fmt.Errorf("--set %s: want quick or full", name)
}

func reportCommand() *cli.Command {
	return &cli.Command{
		Name: "report", Usage: "measure a chosen set and write one page (HTML, Markdown, JSON inside)",
		Description: "With root in the namespace lab: zipped, nat (the zipper node's kernel passes connections on), classic (the original's protocol), routed (the zipper node routes IP) and native. Without, on loopback: zipped, classic and native.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "set", Usage: "quick (under 5 minutes) or full", Value: "quick"},
			&cli.IntFlag{Name: "rounds",
				Usage: "runs of each micro-benchmark and kernel on each target (default: the set's own; 2 or more show a spread, 4 or more can show a difference)"},
			&cli.StringFlag{Name: "out", Usage: "`DIR` for report.html and report.md", Value: "."},
			rateFlag("rate", "1gbit", "limit of every link in the lab, such as `1gbit` (off: none)"),
			clikit.LogFlag,
		},
		Action: benchReport,
	}
}

func benchReport(c *cli.Context) error {
	if c.NArg() > 0 {
		return clikit.Usage(errors.New("bench report takes no arguments"))
	}
	set, err := reportSets(c.String("set"))
	if err != nil {
		return clikit.Usage(err)
	}
	if c.IsSet("rounds") {
		if c.Int("rounds") < 1 {
			return clikit.Usage(errors.New("--rounds starts at 1"))
		}
		set.rounds, set.npbRounds = c.Int("rounds"), c.Int("rounds")
	}
	log, err := clikit.NewLogger(c.String("log"))
	if err != nil {
		return err
	}
	program, err := drive.Program()
	if err != nil {
		return err
	}
	if err := checkReport(c.String("out")); err != nil {
		return clikit.Usage(fmt.Errorf("--out: %w", err))
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	r := &drive.Runner{Program: program, Options: launch.Options{StartForwarder: jobforwarder.Starter(log, jobforwarder.NATOff)}}
	d := &report.Data{Title: "Leiden Zipper: measurements", Set: c.String("set")}
	targets := func(a, b int) []drive.Target {
		zipped := func(protocol string) func() (*spec.Job, error) {
			return func() (*spec.Job, error) {
				return &spec.Job{Protocol: protocol, Clusters: []spec.Cluster{{Name: "a", Ranks: a, MPI: spec.OpenMPI},
					{Name: "b", Ranks: b, MPI: spec.OpenMPI}}}, nil
			}
		}
		return []drive.Target{{Name: "zipped", Job: zipped("")}, {Name: "classic", Job: zipped(jobenv.Classic)},
			drive.Native(spec.OpenMPI, a+b)}
	}
	shaping := "loopback, none"
	d.Setting = "Zipped: two clusters on loopback, joined by a forwarder. Classic: the same with a handshake for every message, half duplex, store and forward, as in the original middleware. Native: one MPI job over shared memory on the same machine."
	if os.Geteuid() == 0 {
		cfg := lab.Small()
		if cfg.Rate = c.String("rate"); cfg.Rate == "off" {
			cfg.Rate = ""
		}
		l, err := lab.Up(ctx, cfg)
		if err != nil {
			return clikit.WithCause(ctx, err)
		}
		defer takeDown(l, log)
		if _, err := l.Classic(1, 1); err != nil {
			return err
		}
		targets = func(a, b int) []drive.Target {
			classic, _ := l.Classic(a, b) // Classic has started its forwarder before
			return []drive.Target{l.Zipped("zipped", a, b, nil), l.NAT(a, b), classic, l.Routed(a, b), l.Native(a + b)}
		}
		shaping = c.String("rate")
		d.Setting = "Zipped: two clusters in namespaces with no route between them, joined by a forwarder. Nat: the same, the kernel of the forwarder's node passes connections between ranks on. Classic: zipped with a handshake for every message, half duplex, store and forward, as in the original middleware. Routed: one Open MPI job over both, the zipper node routes IP. Native: one Open MPI job inside one cluster."
	}
	d.Environment = drive.Describe(shaping)
	m := &reportMeasurement{ctx: ctx, runner: r, set: set, targets: targets, begin: time.Now(), data: d}
	if err = m.all(); err != nil {
		if len(d.Sizes)+len(d.Ranks)+len(d.NPB) == 0 {
			return err
		}
		d.Incomplete = err.Error()
	}
	d.Seconds = time.Since(m.begin).Seconds()
	return errors.Join(err, writeReport(c.String("out"), d))
}

// reportMeasurement measures a report's data.
type reportMeasurement struct {
	ctx    context.Context
	runner *drive.Runner
	set    reportSet
	// targets returns the targets with so many ranks in each cluster.
	targets func(a, b int) []drive.Target
	begin   time.Time
	data    *report.Data
}

// all measures one part after the other. The results before an error stay in the data.
func (m *reportMeasurement) all() error {
	return m.each(m.pointToPoint, m.collectives, m.kernels)
}

// each measures one part after the other. A part that fails does not stop the others; the end of
// the context does.
func (m *reportMeasurement) each(parts ...func() error) (err error) {
	for _, measure := range parts {
		err = errors.Join(err, measure())
		if m.ctx.Err() != nil {
			break
		}
	}
	return err
}

func (m *reportMeasurement) say(what string, rounds int) func(int, drive.Target) {
	return func(round int, t drive.Target) {
		fmt.Fprintf(os.Stderr, "%4.0f s  %s: %s, round %d of %d\n", time.Since(m.begin).Seconds(), what, t.Name,
			round+1, rounds)
	}
}

func (m *reportMeasurement) pointToPoint() error {
	o := m.set.osu
	o.MaxSize = m.set.p2pMax
	cs, err := m.runner.Compare(m.ctx, m.targets(1, 1), o, m.set.rounds, m.say("point to point", m.set.rounds),
		"latency", "bw", "bibw")
	if cs[0].Rounds > 0 {
		m.data.Sizes = append(m.data.Sizes, cs...)
	}
	return err
}

func (m *reportMeasurement) collectives() error {
	o := m.set.osu
	o.MaxSize = m.set.collMax
	names := []string{"barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv"}
	var all []*drive.Comparison
	var parts []func() error
	for _, n := range m.set.ranks {
		parts = append(parts, func() error {
			cs, err := m.runner.Compare(m.ctx, m.targets(n, n), o, m.set.rounds,
				m.say(fmt.Sprintf("collectives on %d ranks", 2*n), m.set.rounds), names...)
			if cs[0].Rounds > 0 {
				all = append(all, cs...)
			}
			return err
		})
	}
	err := m.each(parts...)
	if all == nil {
		return err
	}
	for _, c := range all {
		if c.Ranks == 4 && c.Benchmark != "barrier" {
			m.data.Sizes = append(m.data.Sizes, c)
		}
	}
	m.data.Ranks = append(m.data.Ranks, drive.OverRanks(all, "barrier", 0))
	for _, size := range m.set.scaling {
		for _, name := range names[1:] {
			m.data.Ranks = append(m.data.Ranks, drive.OverRanks(all, name, size))
		}
	}
	return err
}

func (m *reportMeasurement) kernels() error {
	var parts []func() error
	for _, n := range m.set.npbRanks {
		for _, name := range reportKernels {
			parts = append(parts, func() error {
				k, err := m.kernel(name, n)
				if len(k.Results) > 0 && len(k.Results[len(k.Results)-1]) > 0 { // all targets have run
					m.data.NPB = append(m.data.NPB, k)
				}
				return err
			})
		}
	}
	return m.each(parts...)
}

// kernel runs a kernel on all targets in turn, n ranks in each cluster, and once more zipped with a
// record of the bytes from each rank to each other. With an error it returns the results before it.
func (m *reportMeasurement) kernel(name string, n int) (report.Kernel, error) {
	targets := m.targets(n, n)
	k := report.Kernel{Name: name, Class: m.set.classes[name], Ranks: 2 * n,
		Results: make([][]npb.Result, len(targets))}
	for _, t := range targets {
		k.Targets = append(k.Targets, t.Name)
	}
	say := m.say(fmt.Sprintf("NPB %s on %d ranks", name, 2*n), m.set.npbRounds)
	for round := range m.set.npbRounds {
		for i, t := range targets {
			say(round, t)
			res, _, err := m.runner.NPB(m.ctx, t, name, k.Class)
			if err != nil {
				return k, err
			}
			k.Results[i] = append(k.Results[i], res)
		}
	}
	var err error
	_, _, k.Matrix, err = m.runner.Matrix(m.ctx, targets[0], name, k.Class)
	return k, err
}

const reportHTML, reportMarkdown = "report.html", "report.md"

// checkReport makes the directory. It returns an error, before anything is measured, if the report
// cannot be written there.
func checkReport(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(clikit.CheckWritable(filepath.Join(dir, reportHTML)),
		clikit.CheckWritable(filepath.Join(dir, reportMarkdown)))
}

func writeReport(dir string, d *report.Data) error {
	for name, make := range map[string]func() ([]byte, error){reportHTML: d.HTML, reportMarkdown: d.Markdown} {
		b, err := make()
		if err != nil {
			return err
		}
		if err := clikit.WriteBytes(filepath.Join(dir, name), b); err != nil {
			return err
		}
	}
	fmt.Printf("wrote %s and %s after %.0f s of measuring\n", filepath.Join(dir, reportHTML),
		filepath.Join(dir, reportMarkdown), d.Seconds)
	return nil
}
