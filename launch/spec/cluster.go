package spec

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Cluster describes one native MPI job.
type Cluster struct {
	Name  string
	Ranks int
	// MPI is the native library; if it is empty, the program and the installed libraries decide.
	MPI MPI
	// Hosts is a host file in the native MPI's own form. If it is empty, the cluster is on the
	// hosts that the batch system gave, or on this host (ssh: the login host) alone.
	Hosts string
	// Group is a group of the heterogeneous Slurm job that this process is in, where srun starts
	// the cluster; it is empty if there is none.
	Group string
	// InOrder tells that Hosts names a host for each native rank, one a line.
	InOrder bool
	// Launcher is "mpirun" (the default) to start the cluster from here, or "ssh" to log in to
	// Login and start it there.
	Launcher string
	// Login is the host for the launcher ssh; an empty string means the first host of Hosts.
	Login string
	// Program is the program with its arguments; if it is empty, the job's program is used.
	Program []string
	// Mpirun is the path of the native launcher; if it is empty, PATH is searched.
	Mpirun string
	// Args are further arguments of the native launcher. They stand after ours, so that they win.
	Args []string
	// Env are variables of this cluster's processes.
	Env map[string]string
	// Zipper is the path of the zipper command on the cluster's nodes; an empty string means the
	// same path as here.
	Zipper string
	// System is the cluster's batch system: slurm, pbs or lsf; an empty string means slurm.
	System string
	// Batch are options for the cluster's batch system (zipper submit).
	Batch []string
	// Dir is the working directory; an empty string means the current one.
	Dir string
	// Dual are addresses of its zipper nodes on the networks of other clusters, to which ranks of
	// those take direct links.
	Dual []jobenv.Dual
}

const clusterForm = "NAME=RANKS[,mpi=openmpi|mpich][,hosts=FILE][,program=PATH][,launcher=mpirun|ssh][,login=HOST][,dir=DIR][,dual=[CLUSTER@]HOST[:PORT][+...]]"

// ParseCluster reads the value of a --cluster flag.
func ParseCluster(s string) (Cluster, error) {
	bad := func(why string) (Cluster, error) {
		return Cluster{}, fmt.Errorf("--cluster %s: %s; the form is %s", s, why, clusterForm)
	}
	var c Cluster
	for i, part := range strings.Split(s, ",") {
		key, val, ok := strings.Cut(part, "=")
		if !ok || val == "" {
			return bad(fmt.Sprintf("%q is not KEY=VALUE", part))
		}
		if i == 0 {
			n, err := strconv.Atoi(val)
			if err != nil {
				return bad(fmt.Sprintf("%q is not a number of ranks", val))
			}
			c.Name, c.Ranks = key, n
			continue
		}
		switch key {
		case "mpi":
			m, err := ParseMPI(val)
			if err != nil {
				return bad(err.Error())
			}
			c.MPI = m
		case "hosts":
			c.Hosts = val
		case "program":
			c.Program = []string{val}
		case "launcher":
			c.Launcher = val
		case "login":
			c.Login = val
		case "dir":
			c.Dir = val
		case "dual":
			var err error
			if c.Dual, err = jobenv.ParseDual(val); err != nil {
				return bad("dual: " + err.Error())
			}
		default:
			return bad(fmt.Sprintf("unknown key %q", key))
		}
	}
	return c, nil
}

func (c *Cluster) normalize(j *Job) error {
	if !word.MatchString(c.Name) {
		return fmt.Errorf("cluster name %q: use letters, digits, '.', '_' and '-'", c.Name)
	}
	if c.Ranks < 1 || c.Ranks > wire.MaxRanks {
		return fmt.Errorf("cluster %s: %d ranks; want at least 1 and at most %d", c.Name, c.Ranks, wire.MaxRanks)
	}
	if c.MPI != "" {
		if _, err := ParseMPI(string(c.MPI)); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	switch {
	case c.Launcher == "" && c.Login != "":
		c.Launcher = "ssh"
	case c.Launcher == "":
		c.Launcher = "mpirun"
	}
	if !slices.Contains([]string{"mpirun", "ssh"}, c.Launcher) {
		return fmt.Errorf("cluster %s: launcher=%s: want mpirun (start it from this host) or ssh (log in to one of its hosts first)",
			c.Name, c.Launcher)
	}
	if c.Launcher == "mpirun" && c.Login != "" {
		return fmt.Errorf("cluster %s: login=%s is for launcher=ssh", c.Name, c.Login)
	}
	switch {
	case len(c.Program) == 0:
		c.Program = slices.Clone(j.Program)
	case len(c.Program) == 1 && len(j.Program) > 1:
		// program= replaces the program, not its arguments
		c.Program = append(slices.Clone(c.Program), j.Program[1:]...)
	}
	if len(c.Program) == 0 || c.Program[0] == "" {
		return fmt.Errorf("cluster %s has no program: give one after --, or program=PATH for this cluster", c.Name)
	}
	return nil
}

// ZipperPath returns the path of the zipper command on the cluster's hosts.
func (c Cluster) ZipperPath() string {
	if c.Zipper != "" {
		return c.Zipper
	}
	if self, err := os.Executable(); err == nil {
		return self
	}
	return "zipper"
}
