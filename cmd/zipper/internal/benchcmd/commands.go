package benchcmd

import "github.com/urfave/cli/v2"

// Bench returns the command zipper bench.
func Bench() *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "measure: OSU-style, NAS kernels, networks, comparisons, a report",
		Subcommands: []*cli.Command{osuCommand(), npbCommand(), compareCommand(), scaleCommand(), netCommand(),
			agentCommand(), contentionCommand(), kernelsCommand(), loadCommand(), reportCommand()},
	}
}
