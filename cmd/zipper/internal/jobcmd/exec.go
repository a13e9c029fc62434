package jobcmd

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Exec returns the command zipper exec.
func Exec() *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a program as one rank of a job (under mpirun or srun)",
		ArgsUsage: "-- PROGRAM [ARGUMENT...]",
		Description: `mpirun -n 4 zipper exec -- ./prog

The job is described by the environment (ZIPPER_JOB, ZIPPER_SECRET or ZIPPER_SECRET_FILE, ZIPPER_CLUSTER,
ZIPPER_LAYOUT, ZIPPER_FORWARDERS, ZIPPER_TIMEOUT), by a file of such lines (--env FILE), or by flags; flags
have precedence over the file, and the file over the environment.`,
		Flags: append(shareFlags(), &cli.StringFlag{Name: "mpi",
			Usage: "the cluster's MPI: openmpi or mpich (default: that of the program)", EnvVars: []string{native.VarMPI}}),
		Action: execProgram,
	}
}

func execProgram(c *cli.Context) error {
	r := native.ExecRequest{Program: c.Args().Slice()}
	err := func() error {
		if m := c.String("mpi"); m != "" {
			var err error
			if r.MPI, err = spec.ParseMPI(m); err != nil {
				return clikit.Usage(err)
			}
		}
		var err error
		if r.Share, err = shareFromFlags(c); err != nil {
			return clikit.Usage(addJobRemedy(err))
		}
		r.Dir, _ = os.Getwd()
		return r.Exec()
	}()
	_, rank, started := native.Rank(os.Getenv)
	if r.Share.ID != "" && (!started || native.Speaks(os.Getenv)) {
		reportEnd(r.Share, time.Now(), fmt.Sprintf("could not be started (%v)", err))
	}
	switch {
	case !started || rank == "0":
		return err
	case !native.Speaks(os.Getenv):
		return clikit.StatusError{Code: clikit.ExitFailure, Err: nil}
	}
	status := clikit.StatusError{Code: clikit.ExitFailure, Err: err}
	errors.As(err, &status)
	host, _ := os.Hostname()
	return clikit.StatusError{Code: status.Code, Err: fmt.Errorf("rank %s, on %s: %w", rank, host, status.Err)}
}

// These texts describe --level, --patience, --on-loss and --quorum of run, join and exec.
const (
	levelUsage    = "how far the job trusts its networks: plain, checked (every byte has a checksum, and damaged frames are retransmitted) or sealed (also encrypted from rank to rank); equal in all clusters; default: checked, or sealed if there are networks without ranks"
	patienceUsage = "how long the job waits for an unreachable rank, forwarder or link between forwarders, if nothing shows that it is dead; equal in all clusters; default: 1m"
	onLossUsage   = "what the job does when a cluster is lost: end, or continue without it, if the program handles MPI_ERR_PROC_FAILED; equal in all clusters; default: end"
	quorumUsage   = "which side of a link between forwarders that stays cut goes on, with --on-loss continue: rank0 (the one with rank 0) or both; equal in all clusters; default: rank0"
)

// orderUsage describes --order of run, join and exec.
const orderUsage = "the cluster of each rank of MPI_COMM_WORLD, such as `a,b=2,a`, as zipper plan prints it; equal in all clusters; default: cluster by cluster"

// shareFlags returns the flags that describe one cluster's share of a job; see jobenv.
func shareFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "env", Usage: "`FILE` with lines such as ZIPPER_JOB=j1"},
		&cli.StringFlag{Name: "job", Usage: "job `ID` (ZIPPER_JOB)"},
		&cli.StringFlag{Name: "secret-file", Usage: "`FILE` with the job's secret (ZIPPER_SECRET_FILE)"},
		&cli.StringFlag{Name: "cluster", Usage: "this cluster's `NAME` (ZIPPER_CLUSTER)"},
		&cli.StringFlag{Name: "layout", Usage: "all clusters in order of virtual rank, `a=4,b=2` (ZIPPER_LAYOUT)"},
		&cli.StringFlag{Name: "order", Usage: orderUsage + " (ZIPPER_ORDER)"},
		&cli.StringFlag{Name: "zipper",
			Usage: "`HOST[:PORT]`[,...] of the forwarders that this cluster reaches; for several hops all forwarders with their clusters, as in zip1=a+b,zip2=b+c (ZIPPER_FORWARDERS)"},
		&cli.StringFlag{Name: "network",
			Usage: "`NAME`[,...] of networks without ranks that forwarders are on (ZIPPER_NETWORKS)"},
		&cli.StringFlag{Name: "protocol",
			Usage: "classic, if the forwarder and the other clusters also use it (ZIPPER_PROTOCOL)"},
		&cli.StringFlag{Name: "level", Usage: levelUsage + " (ZIPPER_LEVEL)"},
		&cli.StringFlag{Name: "patience", Usage: patienceUsage + " (ZIPPER_PATIENCE)"},
		&cli.StringFlag{Name: "on-loss", Usage: onLossUsage + " (ZIPPER_ON_LOSS)"},
		&cli.StringFlag{Name: "quorum", Usage: quorumUsage + " (ZIPPER_QUORUM)"},
		&cli.StringFlag{Name: "dual",
			Usage: "[CLUSTER@]`HOST`[:PORT][,...]: addresses of this cluster's zipper nodes on the networks of other clusters; ranks on these nodes then reach the ranks there directly (ZIPPER_DUAL)"},
		&cli.StringFlag{Name: "direct-allow",
			Usage: "`HOST or CIDR`[,...] that ranks of this cluster may open direct links to, in addition to the addresses of its forwarders (ZIPPER_DIRECT_ALLOW)"},
		&cli.StringFlag{Name: "ticket-file", Usage: "`FILE` with the job's ticket, for forwarders that demand one (ZIPPER_TICKET_FILE)"},
		&cli.StringFlag{Name: "host-keys",
			Usage: "policy for forwarders whose key is in neither the job nor known_forwarders: strict (refuse them), accept-new (zipper join asks for the key once and keeps it); default: accept them (ZIPPER_HOST_KEYS)"},
		&cli.StringFlag{Name: "timeout",
			Usage: "how long to wait for the other clusters (ZIPPER_TIMEOUT; default 60s)"},
	}
}

// addJobRemedy adds the remedy to an error when there is no job at all.
func addJobRemedy(err error) error {
	if errors.Is(err, jobenv.ErrNoJob) {
		return fmt.Errorf("no job: give --job, --secret-file, --cluster, --layout and --zipper, or the same in a file (--env) or in the environment, which Open MPI passes to other hosts only with mpirun -x (%w)",
			err)
	}
	var flags []string
	for _, v := range variable.FindAllString(err.Error(), -1) {
		if f := "--" + shareFlagOf[v]; f != "--" && !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	if len(flags) > 0 {
		return fmt.Errorf("%w (as flags: %s)", err, strings.Join(flags, ", "))
	}
	return err
}

var variable = regexp.MustCompile("ZIPPER_[A-Z_]+")

// shareFlagOf has the flag that corresponds to a variable.
var shareFlagOf = map[string]string{jobenv.VarJob: "job", jobenv.VarSecretFile: "secret-file",
	jobenv.VarCluster: "cluster",
	jobenv.VarLayout:  "layout", jobenv.VarForwarders: "zipper", jobenv.VarTimeout: "timeout",
	jobenv.VarProtocol: "protocol", jobenv.VarDual: "dual", jobenv.VarDirectAllow: "direct-allow", jobenv.VarOrder: "order",
	jobenv.VarNetworks: "network", jobenv.VarTicketFile: "ticket-file", jobenv.VarHostKeys: "host-keys",
	jobenv.VarLevel: "level", jobenv.VarPatience: "patience", jobenv.VarOnLoss: "on-loss", jobenv.VarQuorum: "quorum"}

// shareFromFlags returns a share in which flags win over the file, and the file over the
// environment.
func shareFromFlags(c *cli.Context) (jobenv.Job, error) {
	file := map[string]string{}
	if f := c.String("env"); f != "" {
		var err error
		if file, err = readEnvFile(f); err != nil {
			return jobenv.Job{}, err
		}
	}
	j, err := jobenv.From(func(k string) string {
		if f := shareFlagOf[k]; f != "" && c.IsSet(f) {
			return c.String(f)
		}
		if k == jobenv.VarTicket && c.IsSet("ticket-file") || k == jobenv.VarSecret && c.IsSet("secret-file") {
			return "" // the requested file wins over a secret in the environment
		}
		if v, ok := file[k]; ok {
			return v
		}
		return os.Getenv(k)
	})
	if err != nil {
		return j, err
	}
	if len(j.Zippers) > 0 {
		for _, z := range j.Zippers {
			for i, p := range z.Ports {
				if p.Address == "" {
					continue
				}
				full, err := spec.ParseZipper(p.Address)
				if err != nil {
					return j, err
				}
				z.Ports[i].Address = full.Address
			}
		}
		j.WithZippers(j.Zippers)
		return j, nil
	}
	for i, f := range j.Forwarders {
		z, err := spec.ParseZipper(f)
		if err != nil {
			return j, err
		}
		j.Forwarders[i] = z.Address
		j.SetHostKey(z.Address, j.HostKeys[f])
	}
	return j, nil
}

// readEnvFile reads lines NAME=VALUE. It allows empty lines, comments, a leading "export", and
// quotes around the value.
func readEnvFile(name string) (map[string]string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--env: %w", err)
	}
	m := map[string]string{}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, v, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--env %s, line %d: %w", name, i+1, errors.New("want NAME=VALUE"))
		}
		if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
			v = v[1 : n-1]
		}
		m[k] = v
	}
	if m[jobenv.VarSecret] != "" {
		if err := jobenv.CheckPrivate(name, os.Getenv); err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
	}
	return m, nil
}
