package benchcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/contend"
	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/platform"
)

func contentionCommand() *cli.Command {
	return &cli.Command{
		Name: "contention", Usage: "check the contention models: patterns measured in the lab against their prediction",
		Description: `zipper bench contention --output DIR

Calibrates the lab, then measures random patterns of fixed seeds and compares every transfer's time with each sharing rule's prediction;
then makes one resource scarce in each of a number of runs, calibrates and lets the model name the bottleneck. DIR gets report.json with
every transfer, errors.svg and platform.yaml. A pattern during which a hypervisor took much of the processor time is measured again, up to three
times; those during which more than half was used or taken are named. Needs root.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`DIR` for the report and its figure",
				Required: true},
			&cli.StringFlag{Name: "size", Value: "8MB", Usage: "bytes of a transfer"},
			&cli.IntFlag{Name: "patterns", Value: len(contend.Seeds()), Usage: "of the fixed list, evenly chosen"},
			&cli.Uint64Flag{Name: "seeds",
				Usage: "a number added to the fixed seeds, for other patterns"},
			&cli.IntFlag{Name: "rounds", Value: 1,
				Usage: "how often each pattern is measured; from 2 on measurements are also compared with each other"},
			&cli.IntFlag{Name: "scarce", Value: 30, Usage: "runs with a scarce resource"},
			&cli.StringSliceFlag{Name: "replay",
				Usage: "play the messages of a trace `FILE` of zipper run --record, a rank on each host (may be repeated)"},
			&cli.StringFlag{Name: "again",
				Usage: "do not measure; predict the traffic of the run whose output is in `DIR` again"},
			&cli.StringFlag{Name: "simgrid",
				Usage: "with --again, also predict by SimGrid, with the `PROGRAM` of bench/contend/simgrid"},
			&cli.BoolFlag{Name: "verbose", Usage: "print every transfer"},
			clikit.LogFlag,
		}, labFlags("20mbit", "peers")...),
		Action: benchContention,
	}
}

// contentionReport is the content of report.json.
type contentionReport struct {
	Environment drive.Environment          `json:"environment"`
	Bytes       int                        `json:"bytes"`
	Scores      map[string][]contend.Score `json:"scores"`
	// Processors is the mean over the patterns.
	Processors contend.Processors `json:"processors"`
	// Busy has the patterns and traces that had too little processor time to spare: contend.Busy.
	Busy     []string           `json:"busy,omitempty"`
	Patterns []contend.Outcome  `json:"patterns"`
	Replayed []contend.Replayed `json:"replayed,omitempty"`
	Scarce   []contend.Scarce   `json:"scarce"`
	// Named is the number of patterns whose scarce resource the model names.
	Named int `json:"scarce_named"`
	// NamedSimulated is the same number for the simulation.
	NamedSimulated int `json:"scarce_named_by_simulation"`
}

func benchContention(c *cli.Context) error {
	bytes, err := messageSize(c)
	if err != nil {
		return err
	}
	patterns := contend.Seeds()
	n := c.Int("patterns")
	if n < 0 || n > len(patterns) || c.Int("scarce") < 0 || c.Int("rounds") < 1 {
		return clikit.Usage(fmt.Errorf("--patterns: want 0 to %d; --scarce: 0 or more; --rounds: 1 or more", len(patterns)))
	}
	for i := range n {
		patterns[i] = patterns[i*len(patterns)/n]
	}
	patterns = patterns[:n]
	for i := range patterns {
		patterns[i].Seed += c.Uint64("seeds")
	}
	dir := c.String("output")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if from := c.String("again"); from != "" {
		return repredict(from, dir, c.String("simgrid"), c.Bool("verbose"))
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	lab, err := openLab(ctx, c)
	if err != nil {
		return err
	}
	r := contentionReport{Environment: drive.Describe(c.String("rate")), Bytes: bytes,
		Scores: map[string][]contend.Score{}}
	err = func() error {
		say := func(what string) { fmt.Fprintln(os.Stderr, what) }
		if files := c.StringSlice("replay"); n > 0 || len(files) > 0 {
			samples, err := contend.Calibrate(ctx, &lab.Site, contend.Options{Bytes: max(1, bytes/4), Most: 10,
				Within: 0.02, Say: say})
			if err != nil {
				return err
			}
			var p *platform.Platform
			err = clikit.WriteFile(filepath.Join(dir, "platform.yaml"), func(w io.Writer) (err error) {
				p, err = calibrate.Write(w, samples)
				return err
			})
			if err != nil {
				return err
			}
			r.Patterns, err = lab.Validate(ctx, p, patterns, bytes, c.Int("rounds"),
				func(o contend.Outcome) { printPattern(o, c.Bool("verbose")) })
			if err != nil {
				return err
			}
			for _, file := range files {
				x, err := lab.Replay(ctx, p, file, 3)
				if err != nil {
					return err
				}
				r.Replayed = append(r.Replayed, x)
				printReplayed(x)
			}
		}
		var err error
		r.Scarce, err = lab.Scarcity(ctx, c.Int("scarce"), max(1, bytes/16), c.String("rate"), func(s contend.Scarce) {
			printScarce(s)
		})
		return err
	}()
	if cerr := lab.Close(); err == nil {
		err = cerr
	}
	r.sum()
	return errors.Join(err, r.write(dir))
}

// repredict predicts the traffic of an earlier run.
func repredict(from, to, simgrid string, verbose bool) error {
	b, err := os.ReadFile(filepath.Join(from, "report.json"))
	if err != nil {
		return err
	}
	var r contentionReport
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(from, "report.json"), err)
	}
	f, err := os.Open(filepath.Join(from, "platform.yaml"))
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := platform.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	for i := range r.Patterns {
		r.Patterns[i].Bytes = r.Bytes
	}
	contend.Again(p, r.Patterns, contend.Rules())
	if simgrid != "" {
		if err := contend.BySimGrid(simgrid, p, r.Patterns); err != nil {
			return err
		}
	}
	for _, o := range r.Patterns {
		printPattern(o, verbose)
	}
	for i := range r.Replayed {
		if err := r.Replayed[i].Again(p, contend.Rules()); err != nil {
			return err
		}
		printReplayed(r.Replayed[i])
	}
	for i := range r.Scarce {
		if err := r.Scarce[i].Name(); err != nil {
			return err
		}
		printScarce(r.Scarce[i])
	}
	r.Scores = map[string][]contend.Score{}
	r.sum()
	return r.write(to)
}

func printPattern(o contend.Outcome, verbose bool) {
	s := contend.Scores([]contend.Outcome{o}, nil)
	fmt.Printf("%-24s %v", o.Pattern, o.Processors)
	for _, d := range o.Disturbed {
		fmt.Printf(" not counted: stolen %.0f %%", 100*d.Stolen)
	}
	for _, x := range s {
		fmt.Printf("  %s %3.0f %% near, mean %4.1f %%", x.Rule, 100*x.Near, 100*x.Mean)
	}
	if late := slices.Max(append(slices.Collect(maps.Values(o.Starts)), 0)); late > 0 {
		fmt.Printf("  starts within %.1f ms", 1000*late)
	}
	fmt.Println()
	for _, t := range o.Transfers {
		if verbose {
			fmt.Printf("    %s>%s %s measured %.3f s", t.From, t.To, t.Via, t.Measured)
			for _, x := range s {
				if _, ok := t.Predicted[x.Rule]; ok && o.Failed[x.Rule] == "" {
					fmt.Printf("  %s %.3f s (%+.0f %%)", x.Rule, t.Predicted[x.Rule], 100*t.Error(x.Rule))
				}
			}
			fmt.Println()
		}
	}
}

func printReplayed(x contend.Replayed) {
	fmt.Printf("%s: %d messages, %d bytes, %v, measured", x.Trace, x.Messages, x.Bytes, x.Processors)
	for _, t := range x.Measured {
		fmt.Printf(" %.3f", t)
	}
	fmt.Print(" s")
	for _, rule := range contend.Rules() {
		if t, ok := x.Predicted[rule]; ok {
			fmt.Printf("  %s %.3f s (%+.0f %%)", rule, t, 100*x.Error(rule))
		}
	}
	fmt.Println()
}

func printScarce(s contend.Scarce) {
	fmt.Printf("scarce %-12s named %-24s %v  by simulation %-12s %v\n", s.Made, s.Named, s.Right, s.Simulated,
		s.SimulatedRight)
}

func (r *contentionReport) sum() {
	r.Named, r.NamedSimulated = 0, 0
	r.Scores["all"] = contend.Scores(r.Patterns, nil)
	for d := 1; d <= 3; d++ {
		r.Scores[fmt.Sprintf("d=%d", d)] = contend.Scores(r.Patterns, func(o *contend.Outcome) bool { return o.D == d })
	}
	for _, k := range []contend.Kind{contend.Any, contend.Cross, contend.Local} {
		r.Scores[string(k)] = contend.Scores(r.Patterns, func(o *contend.Outcome) bool { return o.Kind == k })
	}
	r.Processors = contend.MeanProcessors(r.Patterns)
	r.Busy = contend.TooBusy(r.Patterns, r.Replayed)
	for _, s := range r.Scarce {
		if s.Right {
			r.Named++
		}
		if s.SimulatedRight {
			r.NamedSimulated++
		}
	}
}

// write writes the files and prints the tables. An interrupted run is reported as far as it went.
func (r *contentionReport) write(dir string) error {
	fmt.Printf("\n%d patterns, load %s at the start, %v\n", len(r.Patterns), r.Environment.Load, r.Processors)
	if len(r.Busy) > 0 {
		fmt.Printf("more than %.0f %% of the processor time used or stolen, so that they may have counted: %s\n",
			100*contend.Busy, strings.Join(r.Busy, ", "))
	}
	fmt.Printf("%-8s %-26s %9s %12s %8s %8s\n", "", "rule", "transfers", "within 10 %", "mean", "worst")
	for _, group := range []string{"all", "d=1", "d=2", "d=3", "any", "cross", "local"} {
		for _, s := range r.Scores[group] {
			if s.Transfers > s.Failed {
				fmt.Printf("%-8s %-26s %9d %10.1f %% %6.1f %% %6.1f %%\n", group, s.Rule, s.Transfers, 100*s.Near,
					100*s.Mean, 100*s.Worst)
			}
		}
	}
	if len(r.Scarce) > 0 {
		fmt.Printf("scarce resource named in %d of %d runs, by simulation in %d\n", r.Named, len(r.Scarce), r.NamedSimulated)
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := clikit.WriteBytes(filepath.Join(dir, "report.json"), append(b, '\n')); err != nil {
		return err
	}
	if len(r.Patterns) == 0 {
		return nil
	}
	title := fmt.Sprintf("%d patterns, links of %s", len(r.Patterns), strings.TrimSpace(r.Environment.Shaping))
	b, err = contend.Histogram(title, r.Patterns, "svg")
	if err != nil {
		return err
	}
	return clikit.WriteBytes(filepath.Join(dir, "errors.svg"), b)
}
