package benchcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/figure"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "an OSU-style benchmark on several modes in turn, with a test of the difference",
		ArgsUsage: "NAME",
		Flags:     slices.Concat([]cli.Flag{modesFlag, roundsFlag, plotFlag}, targetFlags, osuFlags),
		Action:    benchCompare,
	}
}

var (
	roundsFlag = &cli.IntFlag{Name: "rounds",
		Usage: "runs of each mode (4 or more can show a difference, 6 or more an interval)", Value: 10}
	plotFlag = &cli.StringFlag{Name: "plot", Usage: "also draw `FILE` (.svg, .png or .pdf)"}
)

func benchCompare(c *cli.Context) error {
	name, err := osuName(c)
	if err != nil {
		return err
	}
	if c.Int("rounds") < 1 {
		return clikit.Usage(errors.New("--rounds starts at 1"))
	}
	o, err := osuOptions(c, c.Int("min"), c.Int("max"))
	if err != nil {
		return err
	}
	if err := checkPlot(c.String("plot")); err != nil {
		return clikit.Usage(err)
	}
	b, err := openBench(c)
	if err != nil {
		return err
	}
	defer b.close()
	targets, err := b.targets(strings.Split(c.String("modes"), ","), b.job)
	if err != nil {
		return err
	}
	all, err := b.runner.Compare(b.ctx, targets, o, c.Int("rounds"), func(round int, t drive.Target) {
		fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, c.Int("rounds"), t.Name)
	}, name)
	cmp := all[0]
	if cmp.Rounds == 0 {
		return err
	}
	if err != nil {
		err = fmt.Errorf("%w; shown are the %d of %d rounds before", err, cmp.Rounds, c.Int("rounds"))
	}
	// The numbers come before the picture, so that a picture that fails does not cost them.
	shown := show(c, cmp, map[string]any{"environment": b.env, "comparison": cmp})
	return errors.Join(err, shown, writePlot(c.String("plot"), cmp.Figure()))
}

// checkPlot returns an error, before anything is measured, if a picture could not be written.
func checkPlot(file string) error {
	switch filepath.Ext(file) {
	case ".svg", ".png", ".pdf":
		return clikit.CheckWritable(file)
	}
	if file == "" {
		return nil
	}
	return fmt.Errorf("--plot %s: want a name that ends in .svg, .png or .pdf", file)
}

// writePlot draws into a file, in the format of its name. It does nothing without a name.
func writePlot(file string, f figure.Figure) error {
	if file == "" {
		return nil
	}
	picture, err := f.Draw(strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return err
	}
	return clikit.WriteBytes(file, picture)
}
