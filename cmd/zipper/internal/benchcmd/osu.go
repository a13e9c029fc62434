package benchcmd

import (
	"errors"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

func osuCommand() *cli.Command {
	return &cli.Command{
		Name: "osu", Usage: "an OSU-style micro-benchmark", ArgsUsage: "NAME",
		Description: "NAME: latency, bw, bibw, mbw_mr, multi_lat; barrier, bcast, reduce, allreduce, alltoall, alltoallv, gather, scatter,\nallgather, allgatherv; and these with i in front: nonblocking, with the share of overlap; init: MPI_Init, the shortest of all ranks.",
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
			return show(c, res, map[string]any{"environment": b.env, "target": t.Name, "result": res,
				"traffic": out.Traffic})
		},
	}
}

var osuFlags = []cli.Flag{
	&cli.IntFlag{Name: "min", Usage: "smallest message, bytes", Value: 1},
	&cli.IntFlag{Name: "max", Usage: "largest message, bytes (0: the benchmark's own)"},
	&cli.IntFlag{Name: "window", Usage: "messages in flight in bandwidth tests", Value: 64},
	&cli.IntFlag{Name: "reps", Usage: "repetitions at most, for each size", Value: 50},
}

// osuName returns the argument of a command that takes one OSU-style benchmark.
func osuName(c *cli.Context) (string, error) {
	name, err := words(c, 1, "NAME")
	if err != nil {
		return "", err
	}
	if err := osu.Known(name[0]); err != nil {
		return "", clikit.Usage(err)
	}
	return name[0], nil
}

// osuOptions returns the options of the flags --window and --reps for messages of lo to hi bytes.
// If hi is 0, the benchmark's own sizes are used.
func osuOptions(c *cli.Context, lo, hi int) (osu.Options, error) {
	o := osu.Defaults()
	o.MinSize, o.MaxSize, o.Window, o.Rule.Max = lo, hi, c.Int("window"), c.Int("reps")
	if o.MinSize < 1 || o.MaxSize < 0 || o.Window < 1 || o.Rule.Max < 2 {
		return o, clikit.Usage(errors.New("--min, --size and --window start at 1, --reps at 2"))
	}
	o.Rule.Min = min(o.Rule.Min, o.Rule.Max)
	return o, nil
}
