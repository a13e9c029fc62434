package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/launch/spec"
	"github.com/leidenzipper/zipper/launch/submit"
	"github.com/leidenzipper/zipper/launch/together"
)

// Submit returns the command zipper submit.
func Submit() *cli.Command {
	return &cli.Command{
		Name:      "submit",
		Usage:     "submit each half of a job to its own batch system, and watch them as one job",
		ArgsUsage: "JOBFILE",
		Description: `zipper submit job.yaml
zipper submit --together job.yaml
zipper submit --status [JOB]
zipper submit --script job.yaml

Each cluster of the job file is submitted by sbatch: here, or over the remote shell where it has login:. Options for sbatch
are under batch: (batch: [--time=30, --partition=mpi]). The forwarders under zippers: run already. One half that fails or is
cancelled cancels the others; Ctrl-C cancels all. The output of all comes here, and the exit status is the job's.

With --together the halves begin at the same time: the half that can start later sets the pace, and the others are deferred
until then. A half that has started waits on its nodes for --idle-limit; then it goes back to its queue, and all begin
again. --status shows the halves and every attempt of jobs that wait to begin.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "script", Usage: "print the batch scripts, and submit nothing"},
			&cli.BoolFlag{Name: "together", Usage: "begin the halves at the same time"},
			&cli.DurationFlag{Name: "idle-limit", Value: together.DefaultIdleLimit,
				Usage: "how long a half that has started waits for the others (--together)"},
			&cli.DurationFlag{Name: "tolerance", Value: together.DefaultTolerance,
				Usage: "by how much the estimated starts may differ (--together)"},
			&cli.BoolFlag{Name: "reserve", Usage: "ask for reservations that begin at the same time, where the site allows them (--together)"},
			&cli.StringFlag{Name: "notify", Usage: "`COMMAND` that gets reports on its standard input, such as: mail -s zipper me@example.org (--together)"},
			&cli.BoolFlag{Name: "status", Usage: "show the jobs that wait to begin together, with every attempt"},
			&cli.DurationFlag{Name: "timeout", Value: time.Hour,
				Usage: "how long a half waits for the others to begin, if the job file does not set it"},
			&cli.StringFlag{Name: "rsh", Usage: "remote shell `COMMAND` (default ssh)", EnvVars: []string{"ZIPPER_RSH"}},
		},
		Action: submitJob,
	}
}

func submitJob(c *cli.Context) error {
	if c.Bool("status") {
		return submitStatus(c)
	}
	if c.NArg() != 1 {
		return clikit.Usage(errors.New("want one job file"))
	}
	for _, name := range []string{"idle-limit", "tolerance", "reserve", "notify"} {
		if c.IsSet(name) && !c.Bool("together") {
			return clikit.Usage(fmt.Errorf("--%s is for --together", name))
		}
	}
	if c.Duration("idle-limit") <= 0 || c.Duration("tolerance") <= 0 {
		return clikit.Usage(errors.New("--idle-limit and --tolerance: want positive durations such as 5m"))
	}
	job, err := spec.ReadFile(c.Args().First())
	if err != nil {
		return clikit.Usage(err)
	}
	if err := clikit.Rsh(c, job); err != nil {
		return clikit.Usage(err)
	}
	var gate func(*submit.Half) string
	if c.Bool("together") {
		gate = submit.Gate(c.Duration("idle-limit"))
	}
	timeout := c.Duration("timeout")
	if gate != nil && !c.IsSet("timeout") {
		timeout = togetherTimeout
	}
	halves, err := submit.Prepare(job, timeout, gate)
	if err != nil {
		return clikit.Usage(err)
	}
	if c.Bool("script") {
		for _, h := range halves {
			fmt.Printf("# cluster %s: sbatch this%s, with the lines of zipper submit in the file that it names\n%s\n", h.Cluster.Name, on(h.Where()), h.Script)
		}
		return nil
	}
	stager, err := submit.NewStager(job.Stage, halves)
	if err != nil {
		return clikit.Usage(err)
	}
	return runHalves(c, job, halves, stager)
}

// runHalves copies the inputs, submits the halves, follows them and copies the outputs.
func runHalves(c *cli.Context, job *spec.Job, halves []*submit.Half, stager *submit.Stager) error {
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	began := time.Now()
	err := stager.In(ctx)
	if err == nil {
		err = begin(ctx, c, job, halves)
	}
	if sig, ok := clikit.InterruptOf(ctx); ok && err != nil {
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return clikit.StatusError{Code: sig.Status(), Err: errors.Join(sig, err)} // err names halves that are left
	}
	if err != nil {
		return err
	}
	err = watch(ctx, job, halves, began)
	if ctx.Err() != nil {
		return err
	}
	if left := stager.Out(ctx); err == nil {
		err = left
	} else if left != nil {
		fmt.Fprintln(os.Stderr, "zipper:", left)
	}
	return err
}

// submitStatus prints the jobs that wait to begin.
func submitStatus(c *cli.Context) error {
	if c.NArg() > 1 {
		return clikit.Usage(errors.New("want one job, or none for all"))
	}
	text, err := submit.Status(c.Args().First())
	if err == nil {
		fmt.Print(text)
	}
	return err
}

// begin submits the halves; with --together it waits until all have begun. If it fails, no half is
// left.
func begin(ctx context.Context, c *cli.Context, job *spec.Job, halves []*submit.Half) error {
	if c.Bool("together") {
		t := submit.Together{Job: job.ID, Log: os.Stderr, Notify: c.String("notify"),
			Settings: together.Settings{Tolerance: c.Duration("tolerance"), IdleLimit: c.Duration("idle-limit"),
				Reserve: c.Bool("reserve")}}
		return t.Begin(ctx, halves)
	}
	for _, h := range halves {
		if err := h.Submit(ctx, 0); err != nil {
			return errors.Join(err, submit.Cancel(halves))
		}
		fmt.Fprintf(os.Stderr, "zipper: job %s, cluster %s: %s%s\n", job.ID, h.Cluster.Name, h.Name(), on(h.Where()))
	}
	return nil
}

// watch follows the halves of a job that was submitted at began until all have ended, as one job.
func watch(ctx context.Context, job *spec.Job, halves []*submit.Half, began time.Time) error {
	status, err := submit.Watch(ctx, halves, os.Stdout, func(cluster, why string) {
		share := job.Share(cluster)
		for _, h := range halves {
			if h.Where() == "" { // the forwarders' addresses as reached from here
				share.Forwarders = job.Share(h.Cluster.Name).Forwarders
			}
		}
		reportEnd(share, began, why)
	})
	if sig, ok := clikit.InterruptOf(ctx); ok {
		return clikit.StatusError{Code: sig.Status(), Err: sig}
	}
	if status != 0 || err != nil {
		return clikit.StatusError{Code: max(status, 1), Err: err}
	}
	return nil
}

func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}
