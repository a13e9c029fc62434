package benchcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/netgauge"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

func netCommand() *cli.Command {
	return &cli.Command{
		Name: "net", Usage: "a network, Netgauge-style: a pattern over a module", ArgsUsage: "PATTERN MODULE",
		Description: `zipper bench net                               lists patterns, modules and which pairs fit
zipper bench net --nodes h1:5000,h2:5000 --rank 0 loggp tcp     (and the same with --rank 1 on h2)
zipper bench net --cluster a=1 --cluster b=1 loggp mpi          the zipped path itself; --mode native for one cluster without it`,
		Flags: append([]cli.Flag{
			modeFlag,
			&cli.StringFlag{Name: "nodes",
				Usage: "`ADDRESSES` of all processes in the module's form, separated by commas"},
			&cli.IntFlag{Name: "rank", Usage: "this process's index in --nodes"},
			&cli.IntFlag{Name: "reps", Usage: "measurements per size", Value: netgauge.Defaults().Reps},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of random bisections", Value: 1},
			&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for the others", Value: time.Minute},
			&cli.BoolFlag{Name: "json", Usage: "the same as --format json"},
		}, targetFlags...),
		Action: benchNet,
	}
}

func benchNet(c *cli.Context) error {
	if c.NArg() == 0 {
		return listNet()
	}
	pair, err := words(c, 2, "PATTERN MODULE")
	if err != nil {
		return err
	}
	p, m, err := netgauge.Find(pair[0], pair[1])
	if err != nil {
		return clikit.Usage(err)
	}
	o := netgauge.Defaults()
	o.Reps, o.Seed = c.Int("reps"), c.Uint64("seed")
	if m.Open == nil {
		return netJob(c, p, m, o)
	}
	if c.String("nodes") == "" {
		return clikit.Usage(errors.New("--nodes ADDRESS,ADDRESS and --rank N name the processes and this one"))
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, c.Duration("timeout"))
	defer stop()
	r, err := netgauge.Run(ctx, p, m, netgauge.Place{Rank: c.Int("rank"), Addrs: strings.Split(c.String("nodes"), ",")},
		o)
	if err != nil || c.Int("rank") != 0 {
		return clikit.WithCause(ctx, err)
	}
	return showNet(c, r)
}

// netJob measures on the ranks of a job.
func netJob(c *cli.Context, p netgauge.Pattern, m netgauge.Module, o netgauge.Options) error {
	if c.String("nodes") != "" {
		return clikit.Usage(fmt.Errorf("module %s runs as a job: give --cluster, --file or --lab instead of --nodes",
			m.Name))
	}
	if err := netgauge.Fits(p, m); err != nil {
		return clikit.Usage(err)
	}
	b, t, err := openTarget(c)
	if err != nil {
		return err
	}
	defer b.close()
	r, _, err := b.runner.Net(b.ctx, t, p.Name, m.Name, o)
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, "mode "+t.Name)
	return showNet(c, r)
}

func showNet(c *cli.Context, r *netgauge.Report) error {
	if c.Bool("json") || c.String("format") == "json" {
		shaping := "none"
		if rate := c.String("rate"); rate != "" {
			shaping = rate
		}
		return json.NewEncoder(os.Stdout).Encode(struct {
			*netgauge.Report
			Environment drive.Environment `json:"environment"`
		}{r, drive.Describe(shaping)})
	}
	fmt.Printf("# %s over %s, %d processes\n", r.Pattern, r.Module, r.Ranks)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, strings.Join(r.Columns, "\t")+"\t")
	for _, row := range r.Rows {
		for i, v := range row {
			if i == 0 {
				fmt.Fprintf(t, "%.0f\t", v)
			} else {
				fmt.Fprintf(t, "%.3f\t", v)
			}
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var names []string
	for k := range r.Values {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Printf("# %s = %.4g s\n", k, r.Values[k])
	}
	for _, n := range r.Notes {
		fmt.Println("#", n)
	}
	if r.Lost > 0 {
		fmt.Printf("# %d messages were lost and sent again\n", r.Lost)
	}
	return nil
}

func listNet() error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "patterns:")
	for _, p := range netgauge.Patterns() {
		fmt.Fprintf(t, "  %s\t%s; needs %v\n", p.Name, p.About, p.Needs)
	}
	fmt.Fprintln(t, "modules:")
	modules := append(netgauge.Modules(), netgauge.MPIModules()...)
	for _, m := range modules {
		fmt.Fprintf(t, "  %s\t%s; offers %v\n", m.Name, m.About, m.Offers)
	}
	fmt.Fprintln(t, "impossible pairs:")
	for _, p := range netgauge.Patterns() {
		for _, m := range modules {
			if err := netgauge.Fits(p, m); err != nil {
				fmt.Fprintf(t, "  %s over %s\t%v\n", p.Name, m.Name, err)
			}
		}
	}
	return t.Flush()
}
