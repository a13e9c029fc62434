package jobcmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/launch/doctor"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Doctor returns the command zipper doctor.
func Doctor() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check this host, a program, or the networks of a job, and say what to do",
		ArgsUsage: "[PROGRAM...] (with --file or --cluster: [PROGRAM [ARGUMENT...]])",
		Description: `zipper doctor                       this host: MPI libraries, directories, addresses
zipper doctor ./prog.{mpi}          and whether the program can be run zipped, with each MPI library that is here
zipper doctor --file job.yaml       the job's networks: which cluster reaches which forwarder, that the clusters do
                                    not reach each other, and addresses or fabrics that only seem to be shared; and of
                                    clusters that are started from this host, their programs, directories and launchers
zipper doctor --to gB.example.org   on a border node: whether it reaches the other site's forwarder, and whether its
                                    kernel lets a connection fill the way there

The exit status is 1 if a problem was found.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "cluster", Aliases: []string{"c"}, Usage: "as for zipper run"},
			&cli.StringSliceFlag{Name: "zipper", Aliases: []string{"z"}, Usage: "as for zipper run"},
			&cli.StringSliceFlag{Name: "network", Usage: "as for zipper run"},
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "job description, YAML `FILE`"},
			&cli.StringSliceFlag{Name: "to", Usage: "a forwarder, `HOST[:PORT]`, that this host must reach; may be repeated"},
			&cli.StringFlag{Name: "rsh", Usage: "remote shell `COMMAND` (default ssh)",
				EnvVars: []string{"ZIPPER_RSH"}},
			&cli.BoolFlag{Name: "json", Usage: "print the findings as JSON"},
			&cli.BoolFlag{Name: "probe", Hidden: true},
		},
		Action: examine,
	}
}

func examine(c *cli.Context) error {
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	if c.Bool("probe") {
		return doctor.Serve(ctx, os.Stdin, os.Stdout)
	}
	var r *doctor.Report
	switch {
	case c.IsSet("to"):
		var to []string
		for _, s := range c.StringSlice("to") {
			z, err := spec.ParseZipper(s)
			if err == nil && z.Address == "" {
				err = fmt.Errorf("%s: want HOST[:PORT]", s)
			}
			if err != nil {
				return clikit.Usage(fmt.Errorf("--to: %w", err))
			}
			to = append(to, z.Address)
		}
		r = doctor.Reach(ctx, to)
	case c.IsSet("file") || c.IsSet("cluster"):
		job, err := clikit.JobFromFlags(c)
		if err != nil {
			return clikit.Usage(err)
		}
		if len(job.Program) == 0 {
			job.Program = []string{"sh"} // no program runs, and every host has this one
		}
		if err := job.Normalize(); err != nil {
			return clikit.Usage(err)
		}
		r = doctor.Job(ctx, job)
	default:
		if c.IsSet("zipper") {
			return clikit.Usage(errors.New("--zipper: give also the clusters that use it (--cluster or --file)"))
		}
		r = doctor.Host(ctx, c.Args().Slice())
		r.Findings = append(r.Findings, kernelFinding())
		if n, most, err := nat.Tracked(); err == nil && crowded(n, most) {
			r.Findings = append(r.Findings, crowdedFinding(n, most))
		}
	}
	if c.Bool("json") {
		if err := clikit.WriteJSON(os.Stdout, r); err != nil {
			return err
		}
	} else if err := r.Write(os.Stdout); err != nil {
		return err
	}
	switch n := r.Problems(); n {
	case 0:
		return nil
	case 1:
		return clikit.StatusError{Code: clikit.ExitFailure, Err: errors.New("1 problem found")}
	default:
		return clikit.StatusError{Code: clikit.ExitFailure, Err: fmt.Errorf("%d problems found", n)}
	}
}

// kernelFinding says whether the kernel of this host would forward connections between ranks for a
// forwarder that runs as the user of this process.
func kernelFinding() doctor.Finding {
	f := doctor.Finding{Level: doctor.OK, Subject: "this host as a zipper node"}
	table, err := nat.Open()
	if err == nil {
		err = table.Close()
	}
	if err == nil {
		f.Detail = "the kernel can forward connections between ranks (zipper forwarder --nat=auto), unless a firewall drops forwarded packets (docs/howto/direct-links.md)"
	} else {
		f.Detail = fmt.Sprintf("a forwarder of this user relays all messages itself: %v", err)
	}
	return f
}

// crowded reports whether the kernel tracks nearly as many connections as it can.
func crowded(n, most int) bool { return most > 0 && n >= most-most/10 }

// crowdedFinding warns that ranks may soon be unable to reach a forwarder on this host.
func crowdedFinding(n, most int) doctor.Finding {
	return doctor.Finding{Level: doctor.Warn, Subject: "this host as a zipper node",
		Detail: fmt.Sprintf("the kernel tracks %d of at most %d connections: when its table is full, ranks that join cannot reach a forwarder here", n, most),
		Advice: "sysctl -w net.netfilter.nf_conntrack_max=NUMBER, or exempt the forwarder's port (docs/howto/direct-links.md)"}
}
