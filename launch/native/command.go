package native

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/launch/spec"
)

// Command is one cluster's native launcher with what it starts.
type Command struct {
	MPI     spec.MPI
	Mpirun  string // the launcher, a path or a name on PATH
	PRRTE   bool   // it is Open MPI's since version 5
	Ranks   int
	Hosts   string   // host file, "" = this host, or those of the batch system
	InOrder bool     // Hosts has a host for each rank
	Group   string   // of a heterogeneous Slurm job: srun starts them there
	Stdin   bool     // rank 0 has standard input; srun has to know
	Here    bool     // all ranks are on this host
	Extra   []string // the user's arguments, after ours, so that they win
	Tag     bool     // have it say whose each line of output is
	// Directories of this host for what the MPI library would strew about, on disk and in memory;
	// "" = leave it.
	Session, Shared string
	// Env is the job's variables by name: the processes on other nodes need them too.
	Env   map[string]string
	Words []string // program and arguments
}

// Args is the command line after mpirun's own name.
func (n Command) Args() []string {
	if n.Group != "" {
		return n.srun()
	}
	var a []string
	switch n.MPI {
	case spec.OpenMPI:
		if os.Geteuid() == 0 {
			a = append(a, "--allow-run-as-root")
		}
		if n.Hosts != "" {
			a = append(a, "--hostfile", n.Hosts)
			if n.InOrder {
				a = append(a, "--map-by", "seq") // MPICH takes them so anyway
			}
		}
		if n.Here {
			// Several clusters on this host do not know of each other: bound to cores they would
			// sit on the same ones.
			a = append(a, "--oversubscribe", "--bind-to", "none")
		}
		if n.Tag {
			a = append(a, "--tag-output")
		}
		for k := range n.Env {
			a = append(a, "-x", k) // by name: values do not belong on a command line that everybody can read
		}
	case spec.MPICH:
		if n.Hosts != "" {
			a = append(a, "-f", n.Hosts)
		}
		if n.Tag {
			a = append(a, "-prepend-rank")
		}
	}
	a = append(a, n.Extra...)
	a = append(a, "-n", strconv.Itoa(n.Ranks))
	return append(a, n.Words...)
}

// Environ is the launcher's environment: base, the job's variables, and what it needs beside.
func (n Command) Environ(base []string) []string {
	for k, v := range n.Env {
		base = setEnv(base, k+"="+v)
	}
	return append(base, n.needs(func(k string) string { return lookup(base, k) })...)
}

// needs is what the launcher itself needs, on top of what the user has set (get).
func (n Command) needs(get func(string) string) []string {
	var e []string
	set := func(k, v string) {
		if get(k) == "" {
			e = append(e, k+"="+v)
		}
	}
	if get("SLURM_JOB_ID") != "" {
		// The launchers of clusters in one allocation start their daemons by srun, and one step
		// would wait for the other's end.
		set("SLURM_OVERLAP", "1")
	}
	switch n.MPI {
	case spec.OpenMPI:
		if n.Here && n.Ranks > 1 {
			// Waiting ranks must give way to those that share their core, here and in the other
			// clusters.
			set("OMPI_MCA_mpi_yield_when_idle", "1")
		}
		single, off, agent, session := "OMPI_MCA_btl_vader_single_copy_mechanism", "none", "OMPI_MCA_plm_rsh_agent",
			"OMPI_MCA_orte_tmpdir_base"
		if n.PRRTE {
			single, off, agent, session = "OMPI_MCA_smsc", "^cma", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_tmpdir_base"
		}
		if !crossMemoryAttach() {
			set(single, off)
			if n.Here && !n.PRRTE { // the other components for windows need single copy: they make none, or crash
				set("OMPI_MCA_osc", "^rdma,ucx")
			}
		}
		if n.Here && n.PRRTE {
			// Without a device of its kind this component sets itself up and clears up for every
			// window, says so each time, and crashes where several threads make windows at once.
			set("OMPI_MCA_osc", "^ucx")
		}
		if _, err := exec.LookPath("ssh"); err != nil && n.Here {
			set(agent, "true") // it looks for one even when all ranks are here
		}
		if n.Session != "" {
			set(session, n.Session)
		}
		if n.Shared != "" {
			set("OMPI_MCA_btl_vader_backing_directory", n.Shared) // version 5 knows the old name, too
		}
	case spec.MPICH:
		if n.Here {
			set("UCX_TLS", "self,posix,sysv,tcp")
			set("HYDRA_IFACE", "lo")
		}
	}
	return e
}

// crossMemoryAttach tells whether a process may read another one of the same user
// (process_vm_readv): not in most containers, nor with a restricted ptrace; Open MPI then prints
// warnings and slows down.
func crossMemoryAttach() bool {
	if runtime.GOOS != "linux" {
		return false
	}
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && strings.TrimSpace(string(b)) != "0" {
		return false
	}
	for _, f := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(f); err == nil {
			return false
		}
	}
	return os.Getenv("container") == ""
}
