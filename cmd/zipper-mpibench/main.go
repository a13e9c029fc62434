//go:build openmpi || mpich

// Zipper-mpibench is the MPI program behind `zipper bench osu`, `npb` and `net`: it runs one
// benchmark on all ranks and rank 0 prints the result. It is an ordinary MPI program and may be
// started by mpirun alone.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leidenzipper/zipper/bench/netgauge"
	"github.com/leidenzipper/zipper/bench/netgauge/mpimod"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/mmpi"
	"github.com/urfave/cli/v2"
)

func main() {
	raiseTimerSlack()
	format := &cli.StringFlag{Name: "format", Value: "table", Usage: "table, csv or json"}
	o, n := osu.Defaults(), netgauge.Defaults()
	app := &cli.App{
		Name: "zipper-mpibench", Usage: "benchmarks that run on MPI ranks", HideHelpCommand: true,
		Commands: []*cli.Command{
			{
				Name: "npb", Usage: "a NAS parallel benchmark", ArgsUsage: "KERNEL CLASS", Flags: []cli.Flag{format},
				Action: func(c *cli.Context) error {
					if c.NArg() != 2 {
						return cli.Exit("usage: npb KERNEL CLASS (cg, ep, ft, is, lu, mg; S, W, A, B, C)", 2)
					}
					class, err := npb.ParseClass(c.Args().Get(1))
					if err != nil {
						return cli.Exit(err, 2)
					}
					return onRanks(func(p *mmpi.Process) error {
						r, err := npb.Run(p, c.Args().First(), class)
						if err != nil || p.World().Rank() != 0 {
							return err
						}
						if c.String("format") == "json" {
							err = json.NewEncoder(os.Stdout).Encode(r)
						} else {
							fmt.Println(r)
						}
						if err == nil && !r.Verified {
							err = fmt.Errorf("%s class %s did not verify: %s", r.Kernel, r.Class, r.Detail)
						}
						return err
					})
				},
			},
			{
				Name: "net", Usage: "a Netgauge-style pattern over an MPI module; the report as JSON",
				ArgsUsage: "PATTERN MODULE",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "reps", Usage: "measurements per size", Value: n.Reps, Destination: &n.Reps},
					&cli.Uint64Flag{Name: "seed", Usage: "of random bisections", Value: n.Seed, Destination: &n.Seed},
				},
				Action: func(c *cli.Context) error {
					if c.NArg() != 2 {
						return cli.Exit("usage: net PATTERN MODULE", 2)
					}
					return onRanks(func(p *mmpi.Process) error {
						r, err := mpimod.Run(p.World(), c.Args().Get(0), c.Args().Get(1), n)
						if err != nil || p.World().Rank() != 0 {
							return err
						}
						return json.NewEncoder(os.Stdout).Encode(r)
					})
				},
			},
			{
				Name: "osu", Usage: "an OSU-style micro-benchmark", ArgsUsage: "NAME...",
				Flags: []cli.Flag{format,
					&cli.IntFlag{Name: "min", Usage: "smallest message, bytes", Value: o.MinSize,
						Destination: &o.MinSize},
					&cli.IntFlag{Name: "max", Usage: "largest message, bytes (0: the benchmark's own)",
						Destination: &o.MaxSize},
					&cli.IntFlag{Name: "window", Usage: "messages in flight in bandwidth tests", Value: o.Window,
						Destination: &o.Window},
					&cli.IntFlag{Name: "reps", Usage: "repetitions at most", Value: o.Rule.Max,
						Destination: &o.Rule.Max},
					&cli.IntFlag{Name: "warmup",
						Usage:       "iterations before measuring, at most (0: as many as the original)",
						Destination: &o.Warmup},
					&cli.Float64Flag{Name: "rep-seconds", Usage: "length of one repetition", Value: o.RepSeconds,
						Destination: &o.RepSeconds},
				},
				Action: func(c *cli.Context) error {
					if c.NArg() < 1 || o.MinSize < 1 || o.Window < 1 || o.Rule.Max < 1 || o.Warmup < 0 {
						return cli.Exit(fmt.Sprintf("usage: osu NAME...; sizes, window and reps from 1; NAME is one of %v", osu.Names()),
							2)
					}
					o.Rule.Min = min(o.Rule.Min, o.Rule.Max)
					format := c.String("format")
					write := map[string]func(*osu.Result, io.Writer) error{"table": tableFoot, "csv": (*osu.Result).CSV,
						"json": (*osu.Result).JSON}[format]
					if write == nil {
						return cli.Exit("--format is table, csv or json", 2)
					}
					var progress func(*osu.Result)
					if format == "table" {
						progress = tableSoFar
					}
					begin := time.Now()
					return onRanks(func(p *mmpi.Process) error {
						o.Init = time.Since(begin)
						var mem osu.Memory
						for _, name := range c.Args().Slice() {
							r, err := osu.Run(p, &mem, name, o, progress)
							if err == nil && p.World().Rank() == 0 {
								err = write(r, os.Stdout)
							}
							if err != nil {
								return err
							}
						}
						return nil
					})
				},
			},
		},
	}
	if err := app.Run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "zipper-mpibench:", err)
		mmpi.Exit(1)
	}
	mmpi.Exit(0)
}

// onRanks runs f between the start and the end of MPI. An error on one rank ends all ranks.
func onRanks(f func(*mmpi.Process) error) error {
	p, err := mmpi.Init(mmpi.Funneled)
	if err != nil {
		return err
	}
	if err := f(p); err != nil {
		fmt.Fprintln(os.Stderr, "zipper-mpibench:", err)
		p.Abort(1)
	}
	return p.Finalize()
}

// tableSoFar writes a table line by line, because some sizes take minutes.
func tableSoFar(r *osu.Result) {
	line := r.TableHead()
	if n := len(r.Rows); n > 0 {
		line = r.TableLine(&r.Rows[n-1])
	}
	fmt.Print(line)
}

func tableFoot(_ *osu.Result, w io.Writer) error {
	_, err := io.WriteString(w, osu.TableFoot)
	return err
}
