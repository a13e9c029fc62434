package jobcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/inherited"
	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Join returns the command zipper join.
func Join() *cli.Command {
	return &cli.Command{
		Name:      "join",
		Usage:     "run one cluster's half of a job, inside its own batch script",
		ArgsUsage: "-- PROGRAM [ARGUMENT...]",
		Description: `zipper join --job j1 --secret-file s --cluster a --layout a=4,b=2 --zipper zip1 -- ./prog

The same as mpirun -n 4 zipper exec -- ./prog with the job in the environment, but it also finds mpirun, streams the
output by lines and leaves nothing behind. The halves may start in any order, within the time-out.`,
		Flags: append(shareFlags(),
			&cli.StringFlag{Name: "mpi", Usage: "the cluster's MPI: openmpi or mpich (default: that of the program)",
				EnvVars: []string{native.VarMPI}},
			&cli.StringFlag{Name: "hosts",
				Usage: "host `FILE` for mpirun (default: the batch system's hosts, or this one)"},
			&cli.StringFlag{Name: "mpirun", Usage: "the launcher's `PATH` (default: found on PATH)"},
			&cli.StringSliceFlag{Name: "arg", Usage: "one more `ARGUMENT` for mpirun; may be repeated"},
			&cli.BoolFlag{Name: "tag", Usage: "put the rank in MPI_COMM_WORLD before each line of output"},
			&cli.StringFlag{Name: "run-dir", Usage: "`DIR` for temporary files (default: the system's)"},
			&cli.BoolFlag{Name: "piped", Hidden: true},
		),
		Action: join,
	}
}

func join(c *cli.Context) error {
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	status, err := func() (int, error) {
		if c.Bool("piped") {
			// This process ends too if the connection's server ends without closing the pipe.
			_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0)
			return launch.RunPiped(ctx, os.Stdin, os.Stdout, os.Stderr)
		}
		h, err := halfFromFlags(c)
		if err != nil {
			return clikit.ExitUsage, err
		}
		if err := h.Prepare(ctx); err != nil {
			return clikit.ExitFailure, h.NotStarted(ctx, err)
		}
		inherited.Ignore(ours...)
		// In the background of a terminal reading returns an error, and does not stop this process.
		signal.Ignore(syscall.SIGTTIN)
		var stdin io.Reader
		if h.Share.First() {
			stdin = os.Stdin // of rank 0 of MPI_COMM_WORLD, which is in this cluster
		}
		return h.Run(ctx, stdin, os.Stdout, os.Stderr)
	}()
	if sig, ok := clikit.InterruptOf(ctx); ok {
		status = sig.Status()
		if err == nil { // otherwise the error explains the signal
			err = sig
		}
	}
	if status != 0 && err == nil && !c.Bool("piped") { // otherwise zipper run prints it
		err = fmt.Errorf("this half ended with %s", launch.DescribeStatus(status))
	}
	if status != 0 || err != nil {
		return clikit.StatusError{Code: max(status, 1), Err: err}
	}
	return nil
}

func halfFromFlags(c *cli.Context) (*launch.Half, error) {
	share, err := shareFromFlags(c)
	if err != nil {
		return nil, addJobRemedy(err)
	}
	policy := cmp.Or(c.String("host-keys"), os.Getenv(jobenv.VarHostKeys))
	if err := share.AskHostKeys(policy, jobenv.KnownFile(os.Getenv), clikit.AskHostKey(c.Context,
		share.Timeout)); err != nil {
		return nil, err
	}
	h := &launch.Half{Share: share, ReportsEnd: true, Tag: c.Bool("tag"), RunDir: c.String("run-dir"),
		Cluster: spec.Cluster{Name: share.Cluster, Hosts: c.String("hosts"), Mpirun: c.String("mpirun"),
			Args: c.StringSlice("arg"), Program: c.Args().Slice()}}
	for _, l := range share.Layout {
		if l.Name == share.Cluster {
			h.Cluster.Ranks = l.Size
		}
	}
	if m := c.String("mpi"); m != "" {
		if h.Cluster.MPI, err = spec.ParseMPI(m); err != nil {
			return nil, err
		}
	}
	if len(h.Cluster.Program) == 0 {
		return nil, errors.New("no program: write it after --")
	}
	return h, nil
}

// reportEnd reports to the job's forwarders that a half has ended, or cannot start, so that the
// others need not wait for it. why is a clause without a subject; began is when the half began.
func reportEnd(share jobenv.Job, began time.Time, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	launch.ReportEnded(ctx, share, began, why)
}
