package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// file is the form of the job file. Unknown keys are errors. docs/reference/job-file.md is made
// from the comments here and in the parts.
type file struct {
	// The job's id, a word. Without this key zipper makes one up.
	Job string `yaml:"job"`
	// A file with the job's secret, for forwarders that demand one. Without this key zipper makes
	// one up.
	Secret string `yaml:"secret_file"`
	// A file with the job's ticket, for forwarders that demand one.
	Ticket string `yaml:"ticket_file"`
	// Program and arguments. In them {mpi} stands for the name of each cluster's MPI library,
	// {arch} for its architecture (x86_64 or aarch64), and {cluster} for the name of the cluster.
	Program command `yaml:"program"`
	// How long the clusters wait for each other to join: 60s.
	Timeout duration `yaml:"timeout"`
	// How waiting ranks wait: adaptive, busy or event.
	Poll string `yaml:"poll"`
	// classic: the protocol of the original middleware, for comparison.
	Protocol string `yaml:"protocol"`
	// How far the job trusts its networks: plain, checked or sealed. Without this key checked, or
	// sealed if the job has networks.
	Level string `yaml:"level"`
	// How long the job waits for an unreachable rank, forwarder or link if nothing shows that it is
	// dead: 60s.
	Patience string `yaml:"patience"`
	// The reaction of the job to the loss of a cluster: end (default), or continue without it.
	OnLoss string `yaml:"on_loss"`
	// The side of a permanently cut link between zippers that continues, with on_loss: continue:
	// rank0, the side with rank 0 (default), or both.
	Quorum string `yaml:"quorum"`
	// The level of messages that ranks and launcher print: debug, info, warn or error.
	Log string `yaml:"log"`
	// Variables of the environment for all processes.
	Env map[string]string `yaml:"env"`
	// The remote shell for clusters that are started elsewhere: ssh.
	Rsh command `yaml:"rsh"`
	// Networks without ranks that zippers are on, such as a long link between two sites.
	Networks []string `yaml:"networks"`
	// Forwarders that run already. Without this key one is started on this host for the job.
	Zippers []fileZipper `yaml:"zippers"`
	// Files that zipper submit copies: in, before the job, from the current directory to each
	// cluster's dir; out, after it, from there to a directory here with the cluster's name.
	Stage Stage `yaml:"stage"`
	// The clusters, in the order of virtual ranks.
	Clusters []fileCluster `yaml:"clusters"`
}

// fileZipper may be written as its address alone.
type fileZipper struct {
	// HOST or HOST:PORT, by which all clusters reach the forwarder; #KEY after it is its host key.
	Address string `yaml:"address"`
	// The forwarder's address on each network, if it has several.
	Addresses map[string]string `yaml:"addresses"`
	// The clusters that reach the forwarder, if not all clusters do.
	Clusters []string `yaml:"clusters"`
	// The networks without ranks that the forwarder is on.
	Networks []string `yaml:"networks"`
	// Networks without ranks on which the forwarder does not listen, but dials others.
	Dial command `yaml:"dial"`
	// The host key that the forwarder must have, as zipper status shows it.
	HostKey string `yaml:"fingerprint"`
}

// fileCluster needs name and ranks.
type fileCluster struct {
	// The cluster's name, a word.
	Name string `yaml:"name"`
	// The number of processes.
	Ranks count `yaml:"ranks"`
	// The cluster's MPI library, openmpi or mpich. Without this key it is the program's.
	MPI MPI `yaml:"mpi"`
	// A host file in Open MPI's form (node1 slots=4). Without this key the cluster is on the hosts
	// that the batch system gave, or on this host alone.
	Hosts string `yaml:"hosts"`
	// mpirun: the cluster is started from this host. ssh: from its login host.
	Launcher string `yaml:"launcher"`
	// The login host, if it is not the first one of hosts.
	Login string `yaml:"login"`
	// A program of the cluster's own, in place of the job's; without arguments it gets the job's
	// arguments.
	Program command `yaml:"program"`
	// The native launcher's path, if it is not on PATH.
	Mpirun string `yaml:"mpirun"`
	// More arguments for the native launcher. They follow those of zipper, so they have precedence.
	Args []string `yaml:"args"`
	// Variables of the environment for this cluster's processes.
	Env map[string]string `yaml:"env"`
	// The zipper command's path on the cluster's nodes, if it is not the same as here; {arch} in it
	// stands for their architecture.
	Zipper string `yaml:"zipper"`
	// The working directory of the cluster's processes.
	Dir string `yaml:"dir"`
	// Addresses of the cluster's zipper nodes on the networks of other clusters:
	// [CLUSTER@]HOST[:PORT]. Ranks on these nodes then reach the ranks there without a forwarder.
	Dual command `yaml:"dual"`
	// The cluster's batch system, with zipper submit: slurm (the default), pbs or lsf.
	System string `yaml:"system"`
	// Options for the cluster's batch system, with zipper submit.
	Batch []string `yaml:"batch"`
}

// command is a list of words, or one string that is split at white space.
type command []string

// UnmarshalYAML takes both forms.
func (c *command) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*c = strings.Fields(n.Value)
		return nil
	}
	return n.Decode((*[]string)(c))
}

// count is a whole number, because the YAML package would cut the fraction off.
type count int

// UnmarshalYAML requires a whole number.
func (c *count) UnmarshalYAML(n *yaml.Node) error {
	if n.ShortTag() != "!!int" || n.Decode((*int)(c)) != nil {
		return unwanted(n, "ranks", "a whole number")
	}
	return nil
}

// duration is a positive time with its unit.
type duration time.Duration

// UnmarshalYAML requires a time with its unit.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v <= 0 {
		return unwanted(n, "timeout", "a positive duration with its unit, such as 60s")
	}
	*d = duration(v)
	return nil
}

// UnmarshalText takes a zipper that is written as its address alone. UnmarshalYAML would have to
// decode the other form itself, and would then accept unknown keys.
func (z *fileZipper) UnmarshalText(b []byte) error {
	z.Address = string(b)
	return nil
}

// ReadFile reads a job file. Paths in it are relative to the current directory, as on a command
// line.
func ReadFile(name string) (*Job, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	j, err := parseFile(b)
	if err != nil {
		return nil, fmt.Errorf("job file %s: %w", name, err)
	}
	return j, nil
}

func parseFile(b []byte) (*Job, error) {
	var f file
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, explain(err)
	}
	j := &Job{ID: f.Job, Program: f.Program, Timeout: time.Duration(f.Timeout), Poll: f.Poll, Protocol: f.Protocol,
		Level: f.Level, Patience: f.Patience, OnLoss: f.OnLoss, Quorum: f.Quorum,
		Log: f.Log, Env: f.Env, Rsh: f.Rsh, Networks: f.Networks, Stage: f.Stage}
	if err := j.Stage.check(); err != nil {
		return nil, err
	}
	switch f.Poll {
	case "", "adaptive", "busy", "event":
	default:
		return nil, fmt.Errorf("poll: %s: want adaptive, busy or event", f.Poll)
	}
	if f.Secret != "" {
		var err error
		if j.Secret, err = jobenv.ReadSecret(f.Secret, os.Getenv); err != nil {
			return nil, fmt.Errorf("secret_file: %w", err)
		}
	}
	if f.Ticket != "" {
		var err error
		if j.Ticket, err = jobenv.ReadTicket(f.Ticket); err != nil {
			return nil, fmt.Errorf("ticket_file: %w", err)
		}
	}
	for i, z := range f.Zippers {
		out := Zipper{Per: map[string]string{}, Networks: append(z.Clusters, z.Networks...), Dials: z.Dial,
			HostKey: z.HostKey}
		var err error
		if a, key, ok := strings.Cut(z.Address, "#"); ok && out.HostKey == "" {
			z.Address, out.HostKey = a, key
		}
		if out.HostKey != "" {
			if _, err := wire.ParseHostKey(out.HostKey); err != nil {
				return nil, fmt.Errorf("zippers[%d], fingerprint: %w", i, err)
			}
		}
		if z.Address != "" || len(z.Addresses) == 0 {
			if out.Address, err = address(z.Address); err != nil {
				return nil, fmt.Errorf("zippers[%d]: %w", i, err)
			}
		}
		for name, a := range z.Addresses {
			if out.Per[name], err = address(a); err != nil {
				return nil, fmt.Errorf("zippers[%d], addresses, %s: %w", i, name, err)
			}
		}
		j.Zippers = append(j.Zippers, out)
	}
	for _, c := range f.Clusters {
		dual, err := jobenv.ParseDual(strings.Join(c.Dual, "+"))
		if err != nil {
			return nil, fmt.Errorf("cluster %s, dual: %w", c.Name, err)
		}
		j.Clusters = append(j.Clusters, Cluster{Name: c.Name, Ranks: int(c.Ranks), MPI: c.MPI, Hosts: c.Hosts,
			Launcher: c.Launcher, Login: c.Login,
			Program: c.Program, Mpirun: c.Mpirun, Args: c.Args, Env: c.Env, Zipper: c.Zipper, Dir: c.Dir, Dual: dual,
			System: c.System, Batch: c.Batch})
	}
	return j, nil
}
