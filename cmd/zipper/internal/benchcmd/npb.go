package benchcmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/launch"
)

func npbCommand() *cli.Command {
	return &cli.Command{
		Name: "npb", Usage: "a NAS parallel benchmark", ArgsUsage: "KERNEL CLASS",
		Description: "KERNEL: ep, is, cg, mg, ft, lu. CLASS: S, W, A, B, C. Each checks its result against the official values.\nRanks in all: a power of two (1, 2, 4, 8 …), for ep any number.",
		Flags: append([]cli.Flag{modeFlag, &cli.BoolFlag{Name: "matrix",
			Usage: "also print the bytes from each rank to each other (jobs of several clusters)"}}, targetFlags...),
		Action: func(c *cli.Context) error {
			kernel, err := words(c, 2, "KERNEL CLASS")
			if err != nil {
				return err
			}
			if _, err := npb.ParseClass(kernel[1]); err != nil {
				return clikit.Usage(err)
			}
			b, t, err := openTarget(c)
			if err != nil {
				return err
			}
			defer b.close()
			if err := npb.Check(kernel[0], ranks(b.job)); err != nil {
				return clikit.Usage(err)
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
					fmt.Fprintf(w, "  crossed %s -> %s: %d messages, %d bytes of data\n", x.From, x.To, x.Messages,
						x.Bytes)
				}
				return printMatrix(w, matrix)
			}, map[string]any{"environment": b.env, "target": t.Name, "result": res, "traffic": out.Traffic,
				"matrix": matrix})
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
