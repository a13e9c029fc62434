package benchcmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/launch/spec"
)

func scaleCommand() *cli.Command {
	return &cli.Command{
		Name: "scale", Usage: "an OSU-style benchmark over the number of ranks, on several modes in turn",
		ArgsUsage: "NAME",
		Flags: append([]cli.Flag{
			modesFlag,
			&cli.StringFlag{Name: "ranks",
				Usage: "`LIST` of ranks in each cluster, in place of those of --cluster (the results name the sum)",
				Value: "1,2,4"},
			&cli.IntFlag{Name: "size", Usage: "message, bytes", Value: 1024},
			roundsFlag,
			&cli.IntFlag{Name: "window", Usage: "messages in flight in bandwidth tests", Value: 64},
			&cli.IntFlag{Name: "reps", Usage: "repetitions at most", Value: 50},
			plotFlag,
		}, targetFlags...),
		Action: benchScale,
	}
}

func benchScale(c *cli.Context) error {
	name, err := osuName(c)
	if err != nil {
		return err
	}
	o, err := osuOptions(c, c.Int("size"), c.Int("size"))
	if err != nil {
		return err
	}
	if c.Int("rounds") < 1 {
		return clikit.Usage(errors.New("--rounds starts at 1"))
	}
	if o.MinSize&(o.MinSize-1) != 0 {
		return clikit.Usage(fmt.Errorf("--size %d: want a power of two", o.MinSize))
	}
	ranks, err := numbers(c, "ranks", 1)
	if err != nil {
		return clikit.Usage(err)
	}
	if err := checkPlot(c.String("plot")); err != nil {
		return clikit.Usage(err)
	}
	b, err := openBench(c)
	if err != nil {
		return err
	}
	defer b.close()
	var all []*drive.Comparison
	var broken error // the error that ended the measurement early
	for _, n := range ranks {
		job := *b.job
		job.Clusters = append([]spec.Cluster(nil), b.job.Clusters...)
		for i := range job.Clusters {
			job.Clusters[i].Ranks = n
		}
		targets, err := b.targets(strings.Split(c.String("modes"), ","), &job)
		if err != nil {
			return err
		}
		var cs []*drive.Comparison
		cs, broken = b.runner.Compare(b.ctx, targets, o, c.Int("rounds"), func(round int, t drive.Target) {
			fmt.Fprintf(os.Stderr, "%d ranks in each cluster, round %d of %d: %s\n", n, round+1, c.Int("rounds"),
				t.Name)
		}, name)
		if cs[0].Rounds > 0 {
			all = append(all, cs...)
		}
		if broken != nil {
			break
		}
	}
	if all == nil {
		return broken
	}
	if broken != nil {
		broken = fmt.Errorf("%w; the results before it are shown", broken)
	}
	size := o.MinSize
	if len(all[0].Rows) == 1 {
		size = all[0].Rows[0].Size // 0 for the barrier
	}
	s := drive.OverRanks(all, name, size)
	shown := show(c, &s, map[string]any{"environment": b.env, "scaling": s})
	return errors.Join(broken, shown, writePlot(c.String("plot"), s.Figure()))
}
