package native

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/launch/spec"
)

// Command describes a call of a cluster's native launcher.
type Command struct {
	MPI spec.MPI
	// Mpirun is the launcher: a path, or a name on PATH.
	Mpirun string
	// PRRTE tells that the launcher is that of Open MPI since version 5.
	PRRTE bool
	Ranks int
	// Hosts is a host file; an empty string means this host, or the hosts of the batch system.
	Hosts string
	// InOrder tells that Hosts has a host for each rank.
	InOrder bool
	// Group is a group of a heterogeneous Slurm job, where srun starts the ranks; it is empty if
	// there is none.
	Group string
	// Stdin tells that rank 0 has standard input, which srun has to know.
	Stdin bool
	// Here tells that all ranks are on this host.
	Here bool
	// Extra are the user's arguments. They stand after ours, so that they win.
	Extra []string
	// Tag tells the launcher to put the rank before each line of output.
	Tag bool
	// Session and Shared are directories of this host for the files of the MPI library, on disk and
	// in memory; an empty string leaves the library's choice.
	Session, Shared string
	// Env has the job's variables by name: processes on other nodes need them as well.
	Env map[string]string
	// Words are the program with its arguments.
	Words []string
}

// Args returns the command line after mpirun's own name.
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
				a = append(a, "--map-by", "seq") // MPICH's default
			}
		}
		if n.Here {
			// Several clusters on this host do not know of each other. Bound to cores they would
			// take the same ones.
			a = append(a, "--oversubscribe", "--bind-to", "none")
		}
		if n.Tag {
			a = append(a, "--tag-output")
		}
		for k := range n.Env {
			a = append(a, "-x", k) // by name, because every user can read values on a command line
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

// Environ returns the launcher's environment: base, the job's variables, and the launcher's own
// settings.
func (n Command) Environ(base []string) []string {
	for k, v := range n.Env {
		base = setEnv(base, k+"="+v)
	}
	return append(base, n.needs(func(k string) string { return lookup(base, k) })...)
}

// needs returns the settings of the launcher itself, in addition to those that the user has made
// (get).
func (n Command) needs(get func(string) string) []string {
	var e []string
	set := func(k, v string) {
		if get(k) == "" {
			e = append(e, k+"="+v)
		}
	}
	if get("SLURM_JOB_ID") != "" {
		// The launchers of clusters in one allocation start their daemons by srun, and one step
		// would wait for the end of the other.
		set("SLURM_OVERLAP", "1")
	}
	switch n.MPI {
	case spec.OpenMPI:
		if n.Here && n.Ranks > 1 {
			// Waiting ranks must give way to the ranks that share their core, here and in the other
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
			if n.Here && !n.PRRTE { // the other components for windows need single copy: they make no window, or crash
				set("OMPI_MCA_osc", "^rdma,ucx")
			}
		}
		if n.Here && n.PRRTE {
			// Without a device of its kind this component sets itself up and clears up for every
			// window, prints that each time, and crashes where several threads make windows at
			// once.
			set("OMPI_MCA_osc", "^ucx")
		}
		if _, err := exec.LookPath("ssh"); err != nil && n.Here {
			set(agent, "true") // it looks for an agent even when all ranks are here
		}
		if n.Session != "" {
			set(session, n.Session)
		}
		if n.Shared != "" {
			set("OMPI_MCA_btl_vader_backing_directory", n.Shared) // version 5 also knows the old name
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
// (process_vm_readv). That is not allowed in most containers, nor with a restricted ptrace, and an
// emulator of user programs lacks the call. Open MPI then prints warnings and slows down, and its
// windows hang.
func crossMemoryAttach() bool {
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && strings.TrimSpace(string(b)) != "0" {
		return false
	}
	for _, f := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(f); err == nil {
			return false
		}
	}
	if os.Getenv("container") != "" {
		return false
	}
	const text = "x" // neither moved nor freed
	b := []byte{0}
	_, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{{Base: &b[0], Len: 1}},
		[]unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(unsafe.StringData(text))), Len: 1}}, 0)
	return err == nil
}
