// Package modelcmd has the commands of zipper that only compute: predict and plan.
package modelcmd

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// ranksFlag and the next functions return flags of predict and simulate, for files that both read.
func ranksFlag() cli.Flag {
	return &cli.StringFlag{Name: "ranks",
		Usage: "plan `FILE` with one \"RANK HOST\" a line, as zipper plan writes it"}
}

func computeFlag() cli.Flag {
	return &cli.Float64Flag{Name: "compute",
		Usage: "keep the gaps between a trace's messages, times `FACTOR` (0 is communication only)"}
}

func rowsFlag() cli.Flag {
	return &cli.IntFlag{Name: "rows", Value: 40, Usage: "messages in the table, 0 for `N` = all"}
}

// Predict returns the command zipper predict.
func Predict() *cli.Command {
	return &cli.Command{
		Name:      "predict",
		Usage:     "predict how long messages take on a platform, and their bottlenecks",
		ArgsUsage: "PLATFORM PATTERN|TRACE",
		Description: "PLATFORM is a platform file. PATTERN is a pattern file or a generator: ring, chain, alltoall, gather, scatter or random,\n" +
			"with settings like random:d=2,seed=1,size=10MB. TRACE is a file that zipper run --record wrote.\n" +
			"docs/howto/predicting.md describes the files and the models.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "sharing",
				Usage: "`RULE` max-min, streams, buffered, zhu, zhu-paper or penalty (default: the platform's)"},
			ranksFlag(), computeFlag(),
			&cli.Float64Flag{Name: "grain", Value: -1,
				Usage: "handle events together that are within this `PART` of a duration (0 exact; default by size)"},
			&cli.BoolFlag{Name: "no-gains", Usage: "do not compute the savings of doubling each resource"},
			rowsFlag(),
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
			&cli.StringFlag{Name: "picture", Usage: "also draw timeline and utilisation into `FILE` (.svg or .png)"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return clikit.Usage(errors.New("predict: want PLATFORM and PATTERN or TRACE (flags come before them)"))
			}
			if f := c.Float64("compute"); !(f >= 0 && f <= mostCompute) {
				return clikit.Usage(fmt.Errorf("predict: --compute %v: want 0 to 1e6", f))
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
			r, err := predict.Run(p, messages, predict.Options{Sharing: c.String("sharing"), Grain: c.Float64("grain"),
				Gains: !c.Bool("no-gains") && len(messages) <= mostForGains, Rates: true})
			if err != nil {
				return err
			}
			if name := c.String("picture"); name != "" {
				if err := drawTo(name, r); err != nil {
					return err
				}
			}
			if c.Bool("json") {
				return clikit.WriteJSON(c.App.Writer, r)
			}
			return r.Table(c.App.Writer, c.Int("rows"))
		},
	}
}

func drawTo(name string, r *predict.Report) error {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")
	return clikit.WriteFile(name, func(w io.Writer) error {
		if err := r.Picture(w, format); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// read opens a file for a reader whose errors name the line, and adds the file's name.
func read[T any](name string, parse func(io.Reader) (T, error)) (v T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return v, err
	}
	defer f.Close()
	if v, err = parse(f); err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func readPlatform(name string) (*platform.Platform, error) {
	return read(name, platform.Read)
}

func isTrace(name string) (bool, error) {
	const head = "zipper-trace"
	return read(name, func(r io.Reader) (bool, error) {
		b := make([]byte, len(head))
		n, err := io.ReadFull(r, b)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
		return string(b[:n]) == head, err
	})
}

// readMessages takes a generator's name, a pattern file or a trace. Without places a trace's ranks
// are where they were recorded, if the platform has those clusters; otherwise the ranks fill the
// platform in order.
func readMessages(arg string, p *platform.Platform, places []string, compute *big.Rat) ([]platform.Message, error) {
	inOrder := places
	if inOrder == nil {
		inOrder = p.Places()
	}
	name, _, _ := strings.Cut(arg, ":")
	if _, ok := pattern.Generators()[name]; ok {
		return pattern.Generate(arg, inOrder)
	}
	recorded, err := isTrace(arg)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is neither a file nor a pattern: patterns are ring, chain, alltoall, gather, scatter and random",
			arg)
	}
	if err != nil {
		return nil, err
	}
	if !recorded {
		return read(arg, func(r io.Reader) ([]platform.Message, error) { return pattern.Read(r, inOrder) })
	}
	t, err := read(arg, trace.Read)
	if err != nil {
		return nil, err
	}
	if places == nil {
		var ok bool
		if places, ok = pattern.Recorded(t, p); !ok {
			places = inOrder
		}
	}
	return pattern.Replay(t, places, compute)
}

func readRanks(name string, p *platform.Platform) ([]string, error) {
	return read(name, func(r io.Reader) ([]string, error) { return pattern.ReadRanks(r, p) })
}
