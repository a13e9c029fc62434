package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/bench/tune"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/collectives"
)

// Tune returns the command zipper tune.
func Tune() *cli.Command {
	return &cli.Command{
		Name:  "tune",
		Usage: "measure which collective algorithms are faster at which sizes here, for zipper run --tuning",
		Description: `zipper tune --file job.yaml --output clusters.tuning
zipper run --file job.yaml --tuning clusters.tuning -- ./prog
zipper tune --show                             the table that is used without a file

It begins with the table of --tuning, if that is given. It tries one setting after the other, in turn with the best table so
far, and keeps a value only if that is shown to be faster, and slower at no size.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "the `FILE` to write"},
			&cli.BoolFlag{Name: "show", Usage: "print the built-in table and measure nothing"},
			&cli.StringFlag{Name: "on", Usage: "settings that match the `expression`", Value: "."},
			&cli.IntFlag{Name: "rounds", Usage: fmt.Sprintf("runs with each table, from %d on", stat.MinPairs), Value: 8},
			&cli.IntFlag{Name: "reps", Usage: "repetitions at most, for each size", Value: 15},
		}, targetFlags),
		Action: tuneAction,
	}
}

func tuneAction(c *cli.Context) error {
	if c.Bool("show") {
		_, err := fmt.Print(collectives.Tuning{}.Table("The built-in table."))
		return err
	}
	start, err := clikit.ReadTuning(c.String("tuning"))
	if err != nil {
		return clikit.Usage(err)
	}
	on, err := regexp.Compile(c.String("on"))
	if err != nil {
		return clikit.Usage(fmt.Errorf("--on: %w", err))
	}
	settings := slices.DeleteFunc(tune.Settings(), func(s tune.Setting) bool { return !on.MatchString(s.Name) })
	file := c.String("output")
	switch {
	case len(settings) == 0:
		return clikit.Usage(fmt.Errorf("--on %s: no such setting; there are %s", c.String("on"), settingNames(tune.Settings())))
	case c.Int("reps") < 2:
		return clikit.Usage(errors.New("--reps starts at 2"))
	case c.Int("rounds") < stat.MinPairs:
		return clikit.Usage(fmt.Errorf("--rounds %d: fewer than %d show nothing", c.Int("rounds"), stat.MinPairs))
	case file == "":
		return clikit.Usage(errors.New("give the file to write: --output FILE"))
	case c.NArg() > 0:
		return clikit.Usage(errors.New("zipper tune runs a program of its own: give no other"))
	}
	if err := clikit.CheckWritable(file); err != nil {
		return clikit.Usage(fmt.Errorf("--output: %w", err))
	}
	b, err := openBench(c)
	if err != nil {
		return err
	}
	defer b.close()
	if len(b.job.Clusters) < 2 || ranks(b.job) < 3 {
		return clikit.Usage(errors.New("want several clusters, and three ranks at least: fewer ranks have nothing to choose"))
	}
	best, all, broken := tune.Choose(b.ctx, start, settings, b.tuned(c), func(t tune.Choice) { printChoice(os.Stderr, t) })
	if broken != nil && len(all) == 0 {
		return broken
	}
	if err := clikit.WriteBytes(file, []byte(best.Table(aboutTable(b, all)))); err != nil {
		return errors.Join(broken, err)
	}
	if broken != nil {
		return fmt.Errorf("%w; %s has the choices before it", broken, file)
	}
	return nil
}

func settingNames(all []tune.Setting) string {
	var list []string
	for _, s := range all {
		list = append(list, s.Name)
	}
	return strings.Join(list, ", ")
}

// tuned returns the function that measures on the job of the flags.
func (b *bench) tuned(c *cli.Context) tune.Measure {
	return func(ctx context.Context, s tune.Setting, tunings []collectives.Tuning) ([]*drive.Comparison, error) {
		zipped, err := target("zipped", b.job, b.lab)
		if err != nil {
			return nil, err
		}
		var targets []drive.Target
		for _, t := range tunings {
			with := withTuning(zipped, t.String())
			with.Name = t.String()
			targets = append(targets, with)
		}
		o := osu.Defaults()
		o.MinSize, o.MaxSize, o.Rule.Max = s.Min, s.Max, c.Int("reps")
		o.Rule.Min = min(o.Rule.Min, o.Rule.Max)
		rounds := c.Int("rounds")
		return b.runner.Compare(ctx, targets, o, rounds, func(round int, t drive.Target) {
			fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", s.Name, round+1, rounds, t.Name)
		}, s.Benchmarks...)
	}
}

// printChoice prints the result for a setting.
func printChoice(w io.Writer, t tune.Choice) {
	fmt.Fprint(w, choiceLine(t)+"\n")
	for _, r := range t.Tried {
		fmt.Fprintf(w, "  %d: %.3f (%.3f - %.3f) of its time", r.Value, r.Ratio, r.RatioLo, r.RatioHi)
		if r.Slower != "" {
			fmt.Fprintf(w, ", but slower: %s", r.Slower)
		}
		fmt.Fprintln(w)
	}
}

func choiceLine(t tune.Choice) string {
	if t.Is == t.Was {
		return fmt.Sprintf("%s stays %d", t.Setting, t.Was)
	}
	return fmt.Sprintf("%s becomes %d, was %d", t.Setting, t.Is, t.Was)
}

// aboutTable returns the comment at the top of the file.
func aboutTable(b *bench, all []tune.Choice) string {
	var clusters, lines []string
	for _, cl := range b.job.Clusters {
		clusters = append(clusters, fmt.Sprintf("%s=%d", cl.Name, cl.Ranks))
	}
	lines = append(lines, fmt.Sprintf("Made by zipper tune on %s, clusters %s, links %s, load %s; for zipper run --tuning.",
		b.env.Time.Format(time.DateOnly), strings.Join(clusters, " "), b.env.Shaping, b.env.Load))
	for _, t := range all {
		lines = append(lines, choiceLine(t))
	}
	return strings.Join(lines, "\n") + "\n"
}
