package jobcmd

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/launch/spec"
	"github.com/leidenzipper/zipper/launch/submit"
)

// Submit returns the command zipper submit.
func Submit() *cli.Command {
	return &cli.Command{
		Name:      "submit",
		Usage:     "submit each half of a job to its own batch system, and watch them as one job",
		ArgsUsage: "JOBFILE",
		Description: `zipper submit job.yaml
zipper submit --script job.yaml

Each cluster of the job file is submitted by sbatch: here, or over the remote shell where it has login:. Options for sbatch
are under batch: (batch: [--time=30, --partition=mpi]). The forwarders under zippers: run already. One half that fails or is
cancelled cancels the others; Ctrl-C cancels all. The output of all comes here, and the exit status is the job's.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "script", Usage: "print the batch scripts, and submit nothing"},
			&cli.DurationFlag{Name: "timeout", Value: time.Hour,
				Usage: "how long a half waits for the others to begin, if the job file does not set it"},
			&cli.StringFlag{Name: "rsh", Usage: "remote shell `COMMAND` (default ssh)", EnvVars: []string{"ZIPPER_RSH"}},
		},
		Action: submitJob,
	}
}

func submitJob(c *cli.Context) error {
	if c.NArg() != 1 {
		return clikit.Usage(errors.New("want one job file"))
	}
	job, err := spec.ReadFile(c.Args().First())
	if err != nil {
		return clikit.Usage(err)
	}
	if err := clikit.Rsh(c, job); err != nil {
		return clikit.Usage(err)
	}
	halves, err := submit.Prepare(job, c.Duration("timeout"))
	if err != nil {
		return clikit.Usage(err)
	}
	if c.Bool("script") {
		for _, h := range halves {
			fmt.Printf("# cluster %s: sbatch this%s, with the lines of zipper submit in the file that it names\n%s\n", h.Cluster.Name, on(h.Where()), h.Script)
		}
		return nil
	}
	began := time.Now()
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	for _, h := range halves {
		if err := h.Submit(ctx); err != nil {
			return errors.Join(err, submit.Cancel(halves))
		}
		fmt.Fprintf(os.Stderr, "zipper: job %s, cluster %s: Slurm job %s%s\n", job.ID, h.Cluster.Name, h.ID,
			on(h.Where()))
	}
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
