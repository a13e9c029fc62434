package native

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/inherited"
	"github.com/leidenzipper/zipper/launch/spec"
)

// VarMPI names the native MPI of the cluster for zipper exec, where that is known beforehand.
const VarMPI = "ZIPPER_MPI"

// ExecRequest describes a process that mpirun (or srun) has started and that is about to become the
// program.
type ExecRequest struct {
	// Share is the job's description, complete.
	Share jobenv.Job
	// MPI is the native library; if it is empty, Plan finds out.
	MPI spec.MPI
	// Program is the program with its arguments.
	Program []string
	// Dir is the directory for a program with a relative path.
	Dir string
}

// Plan checks the request and returns the arguments of exec: the program's path and its whole
// environment.
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
	if started, _, ok := Rank(get); ok && m == "" {
		m = started
	}
	if m == "" {
		m = p.MPI
	}
	if m == "" {
		return "", nil, fmt.Errorf("cannot tell which MPI library %s uses: start it under mpirun, or say --mpi openmpi or --mpi mpich",
			p.Path)
	}
	if err := srunFits(get, m, p.MPI); err != nil {
		return "", nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	if err := p.Match(m, r.Share.Cluster); err != nil {
		return "", nil, err
	}
	if err := p.Fits(); err != nil {
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
	env = place(env, r.Share)
	load := get("LD_PRELOAD")
	audit, err := p.audited()
	if err != nil {
		return "", nil, err
	}
	if !p.MMPI || p.ABI { // the libraries preloaded below come before all libraries that a program is linked with
		shim, err := p.Shim(m)
		if err != nil {
			return "", nil, err
		}
		if audit == "" {
			load = preload(shim, load, p.First...)
		}
	}
	if audit == "" && get("LD_AUDIT") != "" { // of a zipper exec that has started a script before
		env = setEnv(env, "LD_AUDIT="+leaveOut(auditLibrary, get("LD_AUDIT")))
	}
	if p.ABI {
		lib, err := FindABI(m, get("LD_LIBRARY_PATH"))
		if err != nil {
			return "", nil, err
		}
		if lib != "" {
			load = preloadLast(lib, load)
		}
	}
	if audit != "" {
		env = setEnv(env, "LD_AUDIT="+preloadFirst(audit, get("LD_AUDIT")))
		signals, err := libraryPath(signalsLibrary)
		if err != nil {
			return "", nil, err
		}
		load = preloadFirst(signals, load)
		// The program may load no MPI library, so an error does not matter.
		if lib, err := FindABI(m, get("LD_LIBRARY_PATH")); err == nil && lib != "" {
			env = setEnv(env, VarABILibrary+"="+lib)
		}
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

// Exec replaces this process by the program. It returns only on failure.
func (r ExecRequest) Exec() error {
	path, env, err := r.Plan(os.Environ())
	if err != nil {
		return err
	}
	if err := r.stdin(); err != nil {
		return err
	}
	// If mpirun or its daemon dies without a signal to its processes (kill -9), the program has to
	// die as well. The setting survives exec.
	runtime.LockOSThread() // the setting belongs to the thread, which must be the one that execs
	if _, _, started := Rank(os.Getenv); started {
		parent := os.Getppid()
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err == nil &&
			os.Getppid() != parent {
			return errors.New("the launcher is gone already")
		}
	}
	if err := inherited.Restore(); err != nil {
		return fmt.Errorf("cannot set the mask of signals: %w", err)
	}
	if err := syscall.Exec(path, r.Program, env); err != nil {
		return fmt.Errorf("cannot run %s: %w", path, err)
	}
	return nil
}

// stdin leaves standard input to rank 0 of MPI_COMM_WORLD alone. Open MPI's other ranks read an
// empty file in any case; those of MPICH would wait for ever on a pipe without a writer.
func (r ExecRequest) stdin() error {
	_, rank, ok := Rank(os.Getenv)
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
