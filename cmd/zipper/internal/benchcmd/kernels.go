package benchcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/contend"
	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/launch"
)

func kernelsCommand() *cli.Command {
	return &cli.Command{
		Name: "kernels", Usage: "check simulation: NAS kernels recorded in the lab, and played again in virtual time",
		Description: `zipper bench kernels --output DIR

Calibrates a lab of 2 + 2 hosts and a zipper node at each of the rates and runs the kernels there, a rank on each host, recorded. Then
simulates each recording, as zipper simulate --compute 1 does, on the platform of each rate, and compares the whole time with that of
the other runs. DIR gets the recordings, platform files, a time line of each kernel and report.json. Needs root.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`DIR` for the report and its files", Required: true},
			&cli.StringFlag{Name: "kernels", Value: "cg,mg,lu,is", Usage: "`LIST` of kernels"},
			&cli.StringFlag{Name: "class", Value: "A", Usage: "class of all kernels: S, W, A, B or C"},
			&cli.StringFlag{Name: "rates", Value: "1gbit", Usage: "`LIST` of limits of every link in the lab"},
			&cli.IntFlag{Name: "rounds", Value: 3, Usage: "runs of each kernel at each rate"},
			&cli.StringFlag{Name: "again", Usage: "do not measure; simulate the recorded kernels of the run whose output is in `DIR` again"},
			clikit.LogFlag,
		},
		Action: benchKernels,
	}
}

// kernelsReport is the content of report.json.
type kernelsReport struct {
	Environment drive.Environment  `json:"environment"`
	Rates       []string           `json:"rates"`
	Runs        []contend.Recorded `json:"runs"`
}

func benchKernels(c *cli.Context) error {
	dir := c.String("output")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var r kernelsReport
	from := dir
	if again := c.String("again"); again != "" {
		from = again
		b, err := os.ReadFile(filepath.Join(from, "report.json"))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, &r); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(from, "report.json"), err)
		}
	} else if err := r.measure(c, dir); err != nil {
		return err
	}
	for i := range r.Runs {
		x := &r.Runs[i]
		fmt.Fprintln(os.Stderr, "simulate", x.Trace)
		draw := func(picture func(w io.Writer, format string) error) error {
			name := fmt.Sprintf("%s-%s-%s.svg", x.Kernel, x.Class, x.Rate)
			return clikit.WriteFile(filepath.Join(dir, name), func(w io.Writer) error { return picture(w, "svg") })
		}
		if !strings.HasSuffix(x.Trace, "-1.trace") {
			draw = nil
		}
		if err := x.Simulate(from, r.Rates, draw); err != nil {
			return err
		}
	}
	if err := r.table(c.App.Writer); err != nil {
		return err
	}
	return clikit.WriteFile(filepath.Join(dir, "report.json"), func(w io.Writer) error { return clikit.WriteJSON(w, r) })
}

// measure runs the kernels.
func (r *kernelsReport) measure(c *cli.Context, dir string) error {
	kernels := strings.Split(c.String("kernels"), ",")
	for _, k := range kernels {
		if err := npb.Check(k, 4); err != nil {
			return clikit.Usage(err)
		}
	}
	if _, err := npb.ParseClass(c.String("class")); err != nil {
		return clikit.Usage(err)
	}
	if c.Int("rounds") < 1 {
		return clikit.Usage(errors.New("--rounds: want 1 or more"))
	}
	r.Rates = strings.Split(c.String("rates"), ",")
	for _, rate := range r.Rates {
		if !rateForm.MatchString(rate) {
			return clikit.Usage(fmt.Errorf("--rates %s: want limits such as 1gbit, separated by commas", c.String("rates")))
		}
	}
	log, err := clikit.NewLogger(c.String("log"))
	if err != nil {
		return err
	}
	program, err := drive.Program()
	if err != nil {
		return err
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	r.Environment = drive.Describe(c.String("rates"))
	lab, err := contend.OpenLab(ctx, "zk", 2, 1, r.Rates[0], "peers", nil)
	if err != nil {
		return clikit.WithCause(ctx, err)
	}
	runner := &drive.Runner{Program: program, Options: launch.Options{StartForwarder: jobforwarder.Starter(log, jobforwarder.NATOff)}}
	say := func(what string) { fmt.Fprintln(os.Stderr, what) }
	r.Runs, err = lab.Kernels(ctx, runner, dir, r.Rates, kernels, c.String("class"), c.Int("rounds"),
		contend.Options{Bytes: 16 << 20, Most: 10, Within: 0.02, Say: say}, func(x contend.Recorded) {
			fmt.Fprintf(os.Stderr, "%s: %.3f s, %d messages, %d bytes, %v\n", x.Trace, x.Whole, x.Messages, x.Bytes, x.Processors)
		})
	return clikit.WithCause(ctx, errors.Join(err, lab.Close()))
}

// table writes the simulated times beside the measured ones.
func (r *kernelsReport) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "kernel\trate\tmessages\tMB\tmeasured, s\trecorded at\tsimulated, s\terror")
	var done []string
	for _, first := range r.Runs {
		id := first.Kernel + " " + first.Rate
		if slices.Contains(done, id) {
			continue
		}
		done = append(done, id)
		for i, from := range r.Rates { // those of the recordings
			var simulated, wrong, measured []string
			for k := range r.Runs {
				x := &r.Runs[k]
				if x.Kernel != first.Kernel || x.Class != first.Class {
					continue
				}
				if x.Rate == first.Rate {
					measured = append(measured, fmt.Sprintf("%.2f", x.Whole))
				}
				if e, ok := x.Error(r.Runs, first.Rate); ok && x.Rate == from {
					simulated = append(simulated, fmt.Sprintf("%.2f", x.Simulated[first.Rate]))
					wrong = append(wrong, fmt.Sprintf("%+.1f %%", 100*e))
				}
			}
			if i == 0 {
				fmt.Fprintf(t, "%s %s\t%s\t%d\t%.0f\t%s", first.Kernel, first.Class, first.Rate, first.Messages,
					float64(first.Bytes)/1e6, strings.Join(measured, " "))
			} else {
				fmt.Fprint(t, "\t\t\t\t")
			}
			fmt.Fprintf(t, "\t%s\t%s\t%s\n", from, strings.Join(simulated, " "), strings.Join(wrong, " "))
		}
	}
	return t.Flush()
}
