package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/contend"
	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/quantity"
	"github.com/leidenzipper/zipper/internal/timerslack"
	"github.com/leidenzipper/zipper/launch/spec"
)

// labFlags returns the flags that describe the lab.
func labFlags(rate, queue string) []cli.Flag {
	return []cli.Flag{
		rateFlag("rate", rate, "limit of every link in the lab, such as `100mbit`"),
		&cli.StringFlag{Name: "queue", Value: queue,
			Usage: "queue of a limited link: fifo, or peers: nodes are served in turn, as fq_codel does for connections (takes more processor time)"},
		&cli.IntFlag{Name: "hosts", Value: 4, Usage: "hosts of each of the lab's two clusters"},
		&cli.IntFlag{Name: "zippers", Value: 2, Usage: "zipper nodes of the lab"},
	}
}

// Calibrate returns the command zipper calibrate.
func Calibrate() *cli.Command {
	return &cli.Command{
		Name:  "calibrate",
		Usage: "measure clusters and zippers and write the platform file for zipper predict and zipper plan",
		Description: `zipper calibrate --lab --output lab.yaml
zipper calibrate --file job.yaml --output site.yaml

The job file (as for zipper run) names the clusters with their host files and the zippers, whose forwarders must run. An agent
is started on every host and zipper node through the remote shell. One pattern at a time is on the network, each
message repeated until its 95 % confidence interval is within 2 %, at most --repeat times.`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "lab", Usage: "in namespaces of this machine (root)"},
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "job description, YAML `FILE`"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "the platform `FILE` (default: standard output)"},
			&cli.StringFlag{Name: "size", Value: "4MB", Usage: "bytes of a message"},
			&cli.IntFlag{Name: "repeat", Value: 6, Usage: "repetitions at most, 2 or more"},
			&cli.DurationFlag{Name: "timeout", Value: 5 * time.Minute, Usage: "time limit of the whole measurement"},
			clikit.LogFlag,
		}, labFlags("50mbit", "fifo")...),
		Action: runCalibrate,
	}
}

// messageSize reads --size.
func messageSize(c *cli.Context) (int, error) {
	size, err := quantity.Size(c.String("size"))
	if err != nil {
		return 0, clikit.Usage(err)
	}
	if f, _ := size.Float64(); f < 1 || f > 1<<30 || !size.IsInt() {
		return 0, clikit.Usage(fmt.Errorf("--size %s: want 1 byte to 1 GiB", c.String("size")))
	}
	return int(size.Num().Int64()), nil
}

func runCalibrate(c *cli.Context) error {
	bytes, err := messageSize(c)
	if err != nil {
		return err
	}
	if c.Int("repeat") < 2 {
		return clikit.Usage(errors.New("--repeat: want 2 or more, for confidence intervals"))
	}
	if f := c.String("output"); f != "" {
		if err := clikit.CheckWritable(f); err != nil { // an error now is better than one after minutes
			return fmt.Errorf("--output: %w", err)
		}
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	ctx, stop := context.WithTimeoutCause(ctx, c.Duration("timeout"),
		fmt.Errorf("not done within %v: give it more --timeout", c.Duration("timeout")))
	defer stop()
	site, closeSite, err := openSite(ctx, c)
	if err != nil {
		return clikit.WithCause(ctx, err)
	}
	begin := time.Now()
	samples, err := contend.Calibrate(ctx, site, contend.Options{Bytes: bytes, Most: c.Int("repeat"), Within: 0.02,
		Say: func(what string) {
			fmt.Fprintf(os.Stderr, "%5.1f s  %s\n", time.Since(begin).Seconds(), what)
		}})
	if cerr := closeSite(); err == nil {
		err = cerr
	}
	if err != nil {
		return clikit.WithCause(ctx, err)
	}
	write := func(w io.Writer) error {
		_, err := calibrate.Write(w, samples)
		return err
	}
	if f := c.String("output"); f != "" {
		return clikit.WriteFile(f, write)
	}
	return write(os.Stdout)
}

// openSite returns the lab or the site of the job file, with agents.
func openSite(ctx context.Context, c *cli.Context) (*contend.Site, func() error, error) {
	f := c.String("file")
	switch {
	case c.Bool("lab") == (f != ""):
		return nil, nil, clikit.Usage(errors.New("say what to measure: --lab, or --file JOB"))
	case f != "":
		job, err := spec.ReadFile(f)
		if err != nil {
			return nil, nil, clikit.Usage(err)
		}
		s, err := contend.Open(job)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Session.Close, nil
	}
	l, err := openLab(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return &l.Site, l.Close, nil
}

func openLab(ctx context.Context, c *cli.Context) (*contend.Lab, error) {
	if c.Int("hosts") < 2 || c.Int("hosts") > 64 || c.Int("zippers") < 1 || c.Int("zippers") > 8 {
		return nil, clikit.Usage(errors.New("--hosts: want 2 to 64; --zippers: want 1 to 8"))
	}
	if q := c.String("queue"); q != "fifo" && q != "peers" {
		return nil, clikit.Usage(fmt.Errorf("--queue %s: want fifo or peers", q))
	}
	return contend.OpenLab(ctx, "zc", c.Int("hosts"), c.Int("zippers"), c.String("rate"), c.String("queue"), nil)
}

// agentCommand returns the command that sessions start on hosts.
func agentCommand() *cli.Command {
	return &cli.Command{Name: "agent", Hidden: true, Usage: "move messages for a session on standard input",
		Action: func(c *cli.Context) error {
			if err := timerslack.Start(); err != nil {
				fmt.Fprintf(os.Stderr, "zipper bench agent: %v: the Go runtime's monitor takes processor time from the measurement\n",
					err)
			}
			return transfer.Serve(c.Context, os.Stdin, os.Stdout)
		}}
}
