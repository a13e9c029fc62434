package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/jobenv"
)

// VarMPI tells zipper exec which native MPI its cluster uses, when that is known beforehand.
const VarMPI = "ZIPPER_MPI"

// ExecRequest is one process that mpirun (or srun) has started and that is about to become the program.
type ExecRequest struct {
	Share   jobenv.Job // the job, complete
	MPI     MPI        // empty: found out
	Program []string   // program and arguments
	Dir     string     // for a relative program
}

// NativeRank finds out which MPI's launcher started this process and as which rank.
// ok is false when none did.
func NativeRank(get func(string) string) (m MPI, rank string, ok bool) {
	if r := get("OMPI_COMM_WORLD_RANK"); r != "" {
		return OpenMPI, r, true
	}
	if r := get("PMI_RANK"); r != "" {
		return MPICH, r, true
	}
	if r := get("PMIX_RANK"); r != "" { // srun --mpi=pmix: either library
		return "", r, true
	}
	return "", "", false
}

// Speaks reports whether this process should say what is wrong: one for each host, because all ranks meet the same there, but not on all hosts.
func Speaks(get func(string) string) bool {
	for _, local := range []string{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"} {
		if r := get(local); r != "" {
			return r == "0"
		}
	}
	return true
}

// Plan checks the request and gives what to exec: the program's path and its whole environment.
func (r ExecRequest) Plan(environ []string) (path string, env []string, err error) {
	get := func(k string) string { return lookup(environ, k) }
	if len(r.Program) == 0 {
		return "", nil, errors.New("no program: write it after --, as in: zipper exec -- ./prog")
	}
	p, err := InspectProgram(r.Program[0], r.Dir)
	if err != nil {
		return "", nil, err
	}
	m := r.MPI
	if started, _, ok := NativeRank(get); ok && m == "" {
		m = started
	}
	if m == "" {
		m = p.MPI
	}
	if m == "" {
		return "", nil, fmt.Errorf("cannot tell which MPI library %s uses: start it under mpirun, or say --mpi openmpi or --mpi mpich", p.Path)
	}
	if err := matchMPI(p, m, r.Share.Cluster); err != nil {
		return "", nil, err
	}
	if err := p.Preloadable(); err != nil {
		return "", nil, err
	}
	env = without(environ, jobenv.VarSecretFile)
	for _, kv := range r.Share.Environ() {
		env = setEnv(env, kv)
	}
	env = setEnv(env, VarMPI+"="+string(m))
	load := get("LD_PRELOAD")
	if !p.MMPI {
		shim, err := ShimPath(m)
		if err != nil {
			return "", nil, err
		}
		load = preload(shim, load)
	}
	if r.Share.Cache {
		lib, err := unmapsPath()
		if err != nil {
			return "", nil, err
		}
		load = preloadFirst(lib, load)
	}
	if load != "" {
		env = setEnv(env, "LD_PRELOAD="+load)
	}
	return p.Path, env, nil
}

// Exec replaces this process by the program; it returns only on failure.
func (r ExecRequest) Exec() error {
	path, env, err := r.Plan(os.Environ())
	if err != nil {
		return err
	}
	if err := r.stdin(); err != nil {
		return err
	}
	// If mpirun or its daemon dies without a word (kill -9), so shall the program. The setting survives exec.
	if _, _, started := NativeRank(os.Getenv); started {
		runtime.LockOSThread() // the setting belongs to the thread, which must be the one that execs
		parent := os.Getppid()
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err == nil && os.Getppid() != parent {
			return errors.New("the launcher is gone already")
		}
	}
	if err := syscall.Exec(path, r.Program, env); err != nil {
		return fmt.Errorf("cannot run %s: %w", path, err)
	}
	return nil
}

// stdin leaves standard input to rank 0 of MPI_COMM_WORLD alone. Open MPI's other ranks read an empty file anyway; those of
// MPICH would wait for ever on a pipe that nobody writes to.
func (r ExecRequest) stdin() error {
	_, rank, ok := NativeRank(os.Getenv)
	if !ok || rank == "0" && r.Share.First() {
		return nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return unix.Dup2(int(null.Fd()), 0)
}

// matchMPI refuses a program that is linked to another MPI than its cluster starts.
func matchMPI(p Program, m MPI, cluster string) error {
	if p.MPI == "" || p.MPI == m {
		return nil
	}
	return fmt.Errorf("program %s is linked to %s but cluster %s runs %s: give the cluster its own build (program=PATH) or the other library (mpi=%s)",
		p.Path, p.MPI, cluster, m, string(p.MPI))
}

func lookup(environ []string, key string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(environ[i], "="); k == key {
			return v
		}
	}
	return ""
}

func without(environ []string, key string) []string {
	var out []string
	for _, kv := range environ {
		if k, _, _ := strings.Cut(kv, "="); k != key {
			out = append(out, kv)
		}
	}
	return out
}

func setEnv(environ []string, kv string) []string {
	k, _, _ := strings.Cut(kv, "=")
	return append(without(environ, k), kv)
}
