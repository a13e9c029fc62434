package native

import (
	"fmt"
	"os"
	"strconv"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Variables that zipper exec sets for the program, and for the script that starts it.
const (
	// the process's rank in MPI_COMM_WORLD, set by zipper exec; absent where that is not known
	// before MPI_Init
	VarRank = "ZIPPER_RANK"
	// the number of ranks in MPI_COMM_WORLD, set by zipper exec with ZIPPER_RANK
	VarSize = "ZIPPER_SIZE"
	// the rank in the cluster, set by zipper exec where it has replaced the launcher's variables
	// (OMPI_COMM_WORLD_RANK, PMI_RANK); MMPI gives it back to the MPI library during MPI_Init
	VarNativeRank = "ZIPPER_NATIVE_RANK"
	// the number of ranks in the cluster, set by zipper exec with ZIPPER_NATIVE_RANK
	VarNativeSize = "ZIPPER_NATIVE_SIZE"
	// identifies the launcher that has given ZIPPER_NATIVE_RANK, set by zipper exec: the namespace
	// of its processes, or its socket to this process
	VarLauncher = "ZIPPER_LAUNCHER"
)

// places are the names of the variables that depend on the process's place in the job.
var places = [...]string{VarRank, VarSize, VarNativeRank, VarNativeSize, VarLauncher}

// Displace empties the variables of an environment that describe the place of another process.
func Displace(env map[string]string) {
	for _, k := range places {
		if env[k] != "" {
			env[k] = ""
		}
	}
}

// launcher names the variables in which a launcher gives a process its rank in the cluster, and the
// number of ranks there.
type launcher struct {
	// mpi is the library that the launcher belongs to; it is empty for a launcher of either.
	mpi spec.MPI
	// rank and size are the names of the variables.
	rank, size string
	// replaced tells that programs see the values of the job's MPI_COMM_WORLD in these variables.
	replaced bool
}

// known are the launchers, in order of precedence: srun may have started the daemons of the others.
// PMIX_RANK belongs to PMIX_NAMESPACE, and SLURM_STEP_NUM_TASKS to the step, so these two stay.
var known = [...]launcher{
	{spec.OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true},
	{spec.MPICH, "PMI_RANK", "PMI_SIZE", true},
	{"", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", false}, // srun --mpi=pmix
}

// startedBy finds the launcher that started this process. ok is false when none did.
func startedBy(get func(string) string) (l launcher, ok bool) {
	for _, l := range known {
		if get(l.rank) != "" {
			return l, true
		}
	}
	return launcher{}, false
}

// identity returns a text that identifies the launcher of this process: the namespace that it has
// given its processes, or its socket to this one. It is empty if neither exists.
func identity(get func(string) string) string {
	if ns := get("PMIX_NAMESPACE"); ns != "" {
		return ns
	}
	if fd := get("PMI_FD"); fd != "" {
		socket, _ := os.Readlink("/proc/self/fd/" + fd) // without /proc all launchers look alike
		return socket
	}
	return ""
}

// native returns the process's rank in the cluster and the number of ranks there as the launcher
// gave them, also where an earlier zipper exec has replaced them by the values of MPI_COMM_WORLD.
func (l launcher) native(get func(string) string) (rank, size string) {
	if l.replaced && get(VarNativeRank) != "" && get(VarLauncher) == identity(get) {
		return get(VarNativeRank), get(VarNativeSize)
	}
	return get(l.rank), get(l.size)
}

// Rank returns the MPI library whose launcher started this process, and the process's rank in its
// cluster. ok is false if no launcher did.
func Rank(get func(string) string) (m spec.MPI, rank string, ok bool) {
	l, ok := startedBy(get)
	if !ok {
		return "", "", false
	}
	rank, _ = l.native(get)
	return l.mpi, rank, true
}

// place puts the process's place in MPI_COMM_WORLD into an environment: in our variables, and in
// those of the launcher. Where the launcher has started another number of processes than the layout
// has, MPI_Init is going to fail, and no place is known.
func place(environ []string, job jobenv.Job) []string {
	get := func(k string) string { return lookup(environ, k) }
	nativeRank, nativeSize := "0", "1" // for a process that no launcher has started
	l, started := startedBy(get)
	if started {
		nativeRank, nativeSize = l.native(get)
	}
	world := jobenv.WorldRanks(job.Order, job.Layout, job.Cluster)
	rank, err := strconv.Atoi(nativeRank)
	fits := err == nil && rank >= 0 && rank < len(world) && nativeSize == strconv.Itoa(len(world))
	for _, k := range places {
		environ = without(environ, k)
	}
	if !fits {
		return environ
	}
	total := 0
	for _, c := range job.Layout {
		total += c.Size
	}
	set := func(k string, v any) { environ = setEnv(environ, fmt.Sprintf("%s=%v", k, v)) }
	set(VarRank, world[rank])
	set(VarSize, total)
	if l.replaced {
		set(l.rank, world[rank])
		set(l.size, total)
		set(VarNativeRank, nativeRank)
		set(VarNativeSize, nativeSize)
		set(VarLauncher, identity(get))
	}
	return environ
}

// Speaks tells whether this process should report what is wrong: one process on each host, because
// all ranks of a host have the same problem, but not all hosts.
func Speaks(get func(string) string) bool {
	for _, local := range []string{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"} {
		if r := get(local); r != "" {
			return r == "0"
		}
	}
	return true
}
