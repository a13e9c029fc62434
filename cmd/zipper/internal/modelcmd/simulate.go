package modelcmd

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/simulation/play"
)

// Simulate returns the command zipper simulate.
func Simulate() *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "run messages on a platform in virtual time, by the real engine and forwarder",
		ArgsUsage: "PLATFORM PATTERN|TRACE",
		Description: "The files are those of zipper predict. zipper predict computes times; zipper simulate runs the code that sends messages in a\n" +
			"job, over simulated adapters, also with faults: --faults cut@1.5s,restart@2s/300ms=z1 (cut, stall, pause, restart or kill, the\n" +
			"time, the duration and the target). It prints the output of zipper run --stats, in virtual time. docs/howto/predicting.md says\n" +
			"when to use which.",
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "seed",
				Usage: "seed `N` of random choices, such as the order of simultaneous events and the targets of faults"},
			ranksFlag(), computeFlag(),
			&cli.StringFlag{Name: "faults",
				Usage: "`LIST` of KIND@TIME[/DURATION][=TARGET]; or a number of random faults a second"},
			&cli.BoolFlag{Name: "history", Usage: "log the events on standard error"},
			rowsFlag(),
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
			&cli.StringFlag{Name: "picture", Usage: "also draw time line and utilisation into `FILE` (.svg or .png)"},
		},
		Action: simulate,
	}
}

func simulate(c *cli.Context) error {
	if c.NArg() != 2 {
		return clikit.Usage(errors.New("simulate: want PLATFORM and PATTERN or TRACE (flags come before them)"))
	}
	if f := c.Float64("compute"); !(f >= 0 && f <= mostCompute) {
		return clikit.Usage(fmt.Errorf("simulate: --compute %v: want 0 to 1e6", f))
	}
	o := play.Options{Seed: c.Uint64("seed")}
	for s := range strings.SplitSeq(c.String("faults"), ",") {
		if s == "" {
			continue
		}
		var err error
		if rate, ok := new(big.Rat).SetString(s); ok && rate.Sign() >= 0 {
			o.Rate, _ = rate.Float64()
			continue
		}
		var f play.Fault
		if f, err = play.ParseFault(s); err != nil {
			return clikit.Usage(fmt.Errorf("simulate: --faults: %w", err))
		}
		o.Faults = append(o.Faults, f)
	}
	if c.Bool("history") {
		o.Say = func(at time.Duration, what string) { fmt.Fprintf(os.Stderr, "%12v %s\n", at, what) }
	}
	p, err := readPlatform(c.Args().Get(0))
	if err != nil {
		return err
	}
	var places []string
	if name := c.String("ranks"); name != "" {
		if places, err = readRanks(name, p); err != nil {
			return err
		}
	}
	messages, err := readMessages(c.Args().Get(1), p, places, new(big.Rat).SetFloat64(c.Float64("compute")))
	if err != nil {
		return err
	}
	r, err := play.Run(p, messages, o)
	if err != nil {
		return err
	}
	if name := c.String("picture"); name != "" {
		if err := drawTo(name, r.Report); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return clikit.WriteJSON(c.App.Writer, r)
	}
	r.Stats(c.App.Writer)
	fmt.Fprintln(c.App.Writer)
	return r.Report.Table(c.App.Writer, c.Int("rows"))
}
