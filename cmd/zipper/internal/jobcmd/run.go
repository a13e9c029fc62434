package jobcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/inherited"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Run returns the command zipper run.
func Run() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a program as one MPI world over several clusters",
		ArgsUsage: "-- PROGRAM [ARGUMENT...]",
		Description: `zipper run --cluster a=2 --cluster b=2,mpi=mpich -- ./prog.{mpi} arguments
zipper run --file job.yaml
zipper run --plan ranks -- ./prog.{mpi} arguments

Virtual ranks are numbered over the clusters in the given order. They are the ranks of MPI_COMM_WORLD, unless --plan or
--order sets another order; error messages name virtual ranks. Standard input goes to rank 0 of MPI_COMM_WORLD; in the
background of a terminal it is empty. Ctrl-C ends the job, Ctrl-Z is ignored. {mpi}, {arch} and {cluster} in the program
or its arguments stand for the name of the cluster's MPI library, of its architecture (x86_64 or aarch64) and of the
cluster. The exit status is that of the first rank that failed: its own status, MPI_Abort's code (1 for code 0), or
128 + N for signal N. It is 1 if the job could not run (255 or 127 from the remote shell: no login, no such command),
and 2 for wrong flags.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "cluster", Aliases: []string{"c"},
				Usage: "`NAME=RANKS`[,mpi=openmpi|mpich][,hosts=FILE][,program=PATH][,launcher=mpirun|ssh][,login=HOST][,dir=DIR][,dual=[CLUSTER@]HOST[:PORT][+...]]; once per cluster"},
			&cli.StringSliceFlag{Name: "zipper", Aliases: []string{"z"},
				Usage: "`HOST[:PORT]`[=NETWORK,NETWORK...] of a forwarder that runs already, and its networks if these are not all clusters'; or a@HOST+b@HOST; may be repeated; default: one on this host for this job"},
			&cli.StringSliceFlag{Name: "network",
				Usage: "`NAME` of a network without ranks that zippers are on, such as a long link between two sites; may be repeated"},
			&cli.StringFlag{Name: "file", Aliases: []string{"f"},
				Usage: "job description, YAML `FILE`; flags have precedence over it, and --cluster and --zipper replace all of its clusters or zippers"},
			&cli.StringFlag{Name: "plan",
				Usage: "run by the plan in `FILE`, written by zipper plan --output: its clusters (if no --cluster is given), hosts and order of ranks"},
			&cli.StringFlag{Name: "order", Usage: orderUsage, EnvVars: []string{"ZIPPER_ORDER"}},
			&cli.BoolFlag{Name: "tag", Usage: "put the rank in MPI_COMM_WORLD before each line of output"},
			&cli.BoolFlag{Name: "stats", Usage: "at the end: the virtual ranks of each cluster, and the traffic between clusters"},
			&cli.BoolFlag{Name: "json", Usage: "at the end: the outcome as one JSON object on standard error"},
			&cli.StringFlag{Name: "record",
				Usage: "record the traffic between ranks, with its times, in `FILE` (in a directory that all nodes share), for zipper predict and zipper plan"},
			&cli.DurationFlag{Name: "timeout", Usage: "how long the clusters wait for each other to join",
				DefaultText: "60s"},
			&cli.StringFlag{Name: "poll", Usage: "how waiting ranks wait: adaptive, busy or event",
				EnvVars: []string{"ZIPPER_POLL"}},
			&cli.StringFlag{Name: "protocol",
				Usage:   "classic: a handshake for every message, half duplex, store and forward, for comparison (a running forwarder must have the same flag)",
				EnvVars: []string{"ZIPPER_PROTOCOL"}},
			&cli.StringFlag{Name: "level", Usage: levelUsage, EnvVars: []string{jobenv.VarLevel}},
			&cli.StringFlag{Name: "patience", Usage: patienceUsage, EnvVars: []string{jobenv.VarPatience}},
			&cli.StringFlag{Name: "on-loss", Usage: onLossUsage, EnvVars: []string{jobenv.VarOnLoss}},
			&cli.StringFlag{Name: "quorum", Usage: quorumUsage, EnvVars: []string{jobenv.VarQuorum}},
			clikit.TuningFlag,
			&cli.StringFlag{Name: "job", Usage: "job `ID`; default: made up"},
			&cli.StringFlag{Name: "secret-file",
				Usage: "`FILE` with the job's secret, for forwarders that demand one; default: made up"},
			clikit.TicketFlag, clikit.HostKeysFlag,
			natFlag("with the forwarder that this command starts: whether the kernel of this host"),
			&cli.StringFlag{Name: "run-dir", Usage: "`DIR` for temporary files (default: the system's)"},
			&cli.StringFlag{Name: "rsh", Usage: "remote shell `COMMAND` for launcher=ssh (default ssh)",
				EnvVars: []string{"ZIPPER_RSH"}},
			clikit.LogFlag,
		},
		Action: func(c *cli.Context) error { return run(c) },
	}
}

// ours are the signals that this process handles itself, also if it was started to ignore them.
var ours = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE,
	syscall.SIGCHLD, syscall.SIGURG}

func run(c *cli.Context) error {
	log, err := clikit.NewLogger(c.String("log"))
	if err != nil {
		return err
	}
	job, err := clikit.JobFromFlags(c)
	if err != nil {
		return clikit.Usage(err)
	}
	if err := job.Normalize(); err != nil {
		return clikit.Usage(err)
	}
	if err := natMistaken(natMode(c), c.Args().First()); err != nil {
		return clikit.Usage(err)
	}
	if err := natUnmet(natMode(c), job); err != nil {
		return clikit.Usage(err)
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	inherited.Ignore(ours...)
	// A terminal must not stop this process, by Ctrl-Z or because the process reads in the
	// background: its forwarder would be silent, and the ranks would give it up.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN)
	named := job.Zippers // Run appends its own to the job's
	stdout, stderr, progress := withProgress()
	out, err := launch.Run(ctx, job, launch.Options{
		Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Progress: progress, Tag: c.Bool("tag"),
		RunDir:         c.String("run-dir"),
		Record:         c.String("record"),
		StartForwarder: jobforwarder.Starter(log, natMode(c)),
	})
	if sig, ok := clikit.InterruptOf(ctx); ok {
		out.Status, out.Reason = sig.Status(), sig.Error()
		err = sig
	}
	if c.Bool("stats") {
		printStats(os.Stderr, out, named)
	} else {
		printLost(os.Stderr, "zipper: ", out.Lost)
	}
	if err == nil && out.Status != 0 && out.Reason != "" {
		err = errors.New(out.Reason)
	}
	if c.Bool("json") {
		_ = json.NewEncoder(os.Stderr).Encode(out)
	}
	if err != nil && out.Launcher != "" {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSuffix(out.Launcher, "\n"))
	}
	log.Debug("run has ended", zap.Any("outcome", out))
	if out.Status != 0 || err != nil {
		return clikit.StatusError{Code: max(out.Status, 1), Err: err}
	}
	return nil
}

// withProgress returns the writers for a job's output, and the function that shows which ranks it
// waits for, in a line on the terminal. The function is nil if standard error is not a terminal.
func withProgress() (stdout, stderr io.Writer, progress func(missing string)) {
	columns, _, ok := clikit.Terminal(os.Stderr)
	if !ok {
		return os.Stdout, os.Stderr, nil
	}
	p := clikit.NewProgress(os.Stderr, columns)
	stdout = os.Stdout
	if _, _, ok := clikit.Terminal(os.Stdout); ok {
		stdout = p.Over(os.Stdout)
	}
	return stdout, p.Over(os.Stderr), func(missing string) {
		if missing != "" {
			missing = "zipper: waiting for " + missing
		}
		p.Show(missing)
	}
}

// printStats prints the summary for users.
func printStats(w io.Writer, out launch.Outcome, forwarders []spec.Zipper) {
	fmt.Fprintf(w, "job %s: exit status %d after %v\n", out.Job, out.Status,
		time.Duration(out.Seconds*float64(time.Second)).Round(time.Millisecond))
	for _, e := range out.Clusters {
		ranks := fmt.Sprintf("virtual ranks %d to %d", e.First, e.First+e.Ranks-1)
		if e.Ranks == 1 {
			ranks = fmt.Sprintf("virtual rank %d", e.First)
		}
		if len(e.World) > 0 {
			ranks += fmt.Sprintf(", in MPI_COMM_WORLD %s", intervals(e.World))
		}
		fmt.Fprintf(w, "  cluster %s (%s): %s\n", e.Cluster, e.MPI, ranks)
	}
	for _, t := range out.Traffic {
		fmt.Fprintf(w, "  crossed %s -> %s: %d messages, %d bytes of data, %d bytes of headers and control\n", t.From,
			t.To, t.Messages, t.Bytes, t.Overhead)
	}
	if k := out.Kernel; k.Messages > 0 {
		fmt.Fprintf(w, "  crossed in the kernel: %d messages, %d bytes of data\n", k.Messages, k.Bytes)
	}
	if len(forwarders) > 0 && len(out.Clusters) > 1 {
		fmt.Fprintln(w, "  crossed: the forwarders know, since they were not started by this command: run zipper status on their hosts")
	}
	if out.Untimed > 0 {
		fmt.Fprintf(w, "  recorded: %d messages are in the matrix without their times\n", out.Untimed)
	}
	printLost(w, "  ", out.Lost)
	if out.Reason != "" {
		fmt.Fprintf(w, "  reason: %s\n", out.Reason)
	}
}

// printLost prints which clusters a job has lost, one in a line that begins with prefix.
func printLost(w io.Writer, prefix string, lost []launch.Lost) {
	for _, l := range lost {
		after := time.Duration(l.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
		fmt.Fprintf(w, "%scluster %s was lost after %v: %s\n", prefix, l.Cluster, after, l.Reason)
	}
}

// intervals formats ascending numbers as 0, 2-5.
func intervals(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i + 1
		for k < len(list) && list[k] == list[k-1]+1 {
			k++
		}
		if k == i+1 {
			parts = append(parts, strconv.Itoa(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[k-1]))
		}
		i = k
	}
	return strings.Join(parts, ", ")
}
