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

// Cluster is one native MPI job.
type Cluster struct {
	Name  string
	Ranks int
	MPI   MPI // empty: found out from the program and from what is installed
	// host file in the native MPI's own form; empty: the hosts that the batch system gave, or this
	// one (ssh: the login host) alone
	Hosts string
	// group of the heterogeneous Slurm job that this process is in: srun starts the cluster there;
	// empty: none
	Group    string
	InOrder  bool              // Hosts names a host for each native rank, one a line
	Launcher string            // "mpirun" (default): start it from here; "ssh": log in to Login and start it there
	Login    string            // host for launcher ssh; empty: the first host of Hosts
	Program  []string          // program and arguments; empty: those of the job
	Mpirun   string            // the launcher program itself; empty: found on PATH
	Args     []string          // extra arguments for it, after ours, so that they win
	Env      map[string]string // for this cluster's processes
	Zipper   string            // path of the zipper command on the cluster's nodes; empty: as here
	Batch    []string          // options for its batch system (zipper submit)
	Dir      string            // working directory; empty: the current one
	// addresses of its zipper nodes on the networks of other clusters: ranks there take direct
	// links
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
			return bad(fmt.Sprintf("%q is no KEY=VALUE", part))
		}
		if i == 0 {
			n, err := strconv.Atoi(val)
			if err != nil {
				return bad(fmt.Sprintf("%q is no number of ranks", val))
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

// ZipperPath is the zipper command on the cluster's hosts.
func (c Cluster) ZipperPath() string {
	if c.Zipper != "" {
		return c.Zipper
	}
	if self, err := os.Executable(); err == nil {
		return self
	}
	return "zipper"
}
