package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/jobenv"
)

// Half is one cluster's part of a job, ready to be started on the host where this process runs. It is what
// zipper join runs, and what zipper run runs once per cluster, here or through a remote shell.
type Half struct {
	Share   jobenv.Job
	Cluster Cluster // Ranks, MPI, Hosts, Program, Mpirun, Args, Env, Zipper and Dir count
	Env     map[string]string
	Tag     bool   // put the rank in MPI_COMM_WORLD before each line of output
	Nodes   string // contents of the host file, for a half on a host that does not have it; "" = read Cluster.Hosts
	RunDir  string // where to keep temporary files; "" = the system's place

	prrte bool // byPRRTE, once prepared
}

// Grace is how long processes have to end after they were told to, before they are killed.
const Grace = 3 * time.Second

// Prepare checks what can be checked before anything is started, and settles the MPI library and its
// launcher. The error says what to do.
func (h *Half) Prepare(ctx context.Context) error {
	if err := h.prepare(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", h.Cluster.Name, err)
	}
	return nil
}

func (h *Half) prepare(ctx context.Context) error {
	c := &h.Cluster
	if c.Mpirun != "" {
		if _, err := exec.LookPath(c.Mpirun); err != nil {
			return fmt.Errorf("mpirun: %w", err)
		}
		m, version := IdentifyMpirun(ctx, c.Mpirun)
		if c.MPI == "" {
			c.MPI = m
		}
		if c.MPI == "" {
			return fmt.Errorf("cannot tell which MPI library %s belongs to: say mpi=openmpi or mpi=mpich", c.Mpirun)
		}
		h.prrte = byPRRTE(m, version)
	}
	if c.MPI == "" && c.namesMPI() {
		if err := h.findMPI(ctx); err != nil {
			return err
		}
	}
	c.expand()
	dir := c.Dir
	if dir == "" {
		dir, _ = os.Getwd()
	} else if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("dir=%s: there is no such directory on the host where the cluster is started", dir)
	}
	p, err := InspectProgram(c.Program[0], dir)
	switch {
	case err == nil:
		if c.MPI == "" {
			c.MPI = p.MPI
		}
		if c.MPI != "" {
			if err := matchMPI(p, c.MPI, c.Name); err != nil {
				return err
			}
		}
		if err := p.Preloadable(); err != nil {
			return err
		}
	case c.Hosts == "": // with other hosts it may be there and not here: zipper exec will see
		return c.mistyped(err)
	}
	if c.Mpirun == "" {
		if err := h.findMPI(ctx); err != nil {
			return err
		}
	}
	if _, err := ShimPath(c.MPI); err != nil && !p.MMPI {
		return err
	}
	if c.Hosts != "" && h.Nodes == "" {
		if _, err := firstHost(c.Hosts); err != nil {
			return err
		}
	}
	return nil
}

// findMPI settles Mpirun, and MPI where neither the job nor the program says: the first that is installed. Mpirun is the bare name, as one would type it: given a
// path, Open MPI puts its own directories before those of the user's PATH and LD_LIBRARY_PATH.
func (h *Half) findMPI(ctx context.Context) error {
	c := &h.Cluster
	among := []MPI{OpenMPI, MPICH}
	if c.MPI != "" {
		among = []MPI{c.MPI}
	}
	var missing error
	for _, m := range among {
		path, version, err := FindMpirun(ctx, m)
		if err == nil {
			c.MPI, c.Mpirun, h.prrte = m, filepath.Base(path), byPRRTE(m, version)
			return nil
		}
		missing = err
	}
	if c.MPI != "" {
		return missing
	}
	return errors.New("there is no mpirun on PATH: load the module of an MPI library, or install one (on Debian: apt-get install openmpi-bin libopenmpi-dev, or mpich libmpich-dev)")
}

// Run starts the cluster's processes and waits for their end. When ctx ends they are told to end, then killed.
// Nothing of them is left when it returns. The exit status is that of the native launcher (128 + signal if a
// signal ended it or, where it tells, one of its processes); the error is set when it could not be started at all. Prepare must have gone well.
func (h *Half) Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (status int, err error) {
	c := h.Cluster
	rd, err := newRundir(h.RunDir, h.Share.ID)
	if err != nil {
		return 1, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	defer rd.remove()
	mark := randomHex(16)
	env := h.variables(mark)
	n := native{mpi: c.MPI, mpirun: c.Mpirun, prrte: h.prrte, ranks: c.Ranks, inOrder: c.InOrder, extra: c.Args, tag: h.Tag, env: env,
		words: append([]string{c.ZipperPath(), "exec", "--"}, c.Program...)}
	if h.Nodes != "" {
		n.hosts = filepath.Join(rd.dir, "hosts")
		if err := os.WriteFile(n.hosts, []byte(h.Nodes), 0o600); err != nil {
			return 1, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	} else if c.Hosts != "" {
		if n.hosts, err = filepath.Abs(c.Hosts); err != nil {
			return 1, err
		}
	} else if c.here() {
		n.here, n.session, n.shared = true, rd.dir, rd.shared
	}
	cmd := exec.Command(n.mpirun, n.args()...)
	cmd.Dir = c.Dir
	environ := os.Environ()
	for k, v := range env {
		environ = setEnv(environ, k+"="+v)
	}
	cmd.Env = append(environ, n.environ(func(k string) string { return lookup(environ, k) })...)
	var banner hydra
	var said chorus
	merged := NewMerger(stdout)
	out := h.output(merged, ofOutput, &banner, func(edit func([]byte) []byte) func([]byte) []byte { return edit })
	heard := said.once
	if h.prrte {
		heard = func(then func([]byte) []byte) func([]byte) []byte { return withoutNUL(said.once(then)) }
	}
	errs := h.output(NewMerger(stderr), ofErrors, &banner, heard)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, errs
	status, err = supervise(ctx, cmd, mark)
	out.Close()
	errs.Close()
	last := h.output(NewMerger(stderr), ofErrors, &banner, said.once)
	_, _ = last.Write(said.rest(c.Name))
	last.Close()
	status = banner.status(status)
	if lost := merged.Lost(); lost != nil {
		fmt.Fprintf(stderr, "zipper: cluster %s: its output is lost: %v\n", c.Name, lost)
		status = max(status, 1)
	}
	if err != nil {
		err = fmt.Errorf("cluster %s: cannot start %s: %w", c.Name, n.mpirun, err)
	}
	return status, err
}

// output is where one of the native launcher's streams goes: whole lines reach m, tagged if the user wants that, and watched.
func (h *Half) output(m *Merger, streams string, banner *hydra, watch func(edit func([]byte) []byte) func([]byte) []byte) io.WriteCloser {
	cluster, world := h.Cluster.Name, jobenv.WorldRanks(h.Share.Order, h.Share.Layout, h.Cluster.Name)
	switch {
	case h.Cluster.MPI == MPICH && h.Tag:
		return m.Source(watch(banner.watch(retag(cluster, world))))
	case h.Cluster.MPI == MPICH:
		return m.Source(watch(banner.watch(nil)))
	case h.Tag:
		return newFragments(streams, h.prrte, len(world), func(native int) io.WriteCloser { return m.Source(watch(tagged(cluster, world, native))) })
	default:
		return m.Source(watch(nil))
	}
}

// variables are those that the processes need, on every node.
func (h *Half) variables(mark string) map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() { // ours that the user has set: on other hosts Open MPI's processes have only what is named
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "ZIPPER_") && k != jobenv.VarSecretFile {
			env[k] = v
		}
	}
	for _, k := range []string{jobenv.VarOrder, jobenv.VarProtocol, jobenv.VarDual, jobenv.VarReport} {
		if env[k] != "" {
			env[k] = "" // the share says what counts: zipper bench does not look at the environment
		}
	}
	env[varMark], env[VarMPI] = mark, string(h.Cluster.MPI)
	for _, m := range []map[string]string{h.Env, h.Cluster.Env} {
		for k, v := range m {
			env[k] = v
		}
	}
	for _, kv := range h.Share.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}

// supervise runs cmd in a process group of its own until it and everything that bears the mark is gone.
func supervise(ctx context.Context, cmd *exec.Cmd, mark string) (status int, err error) {
	// The kernel sends Pdeathsig when the *thread* that started the child ends, so keep that thread until it is over.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// Standard input must not keep Wait from returning: it is fed through a pipe by a goroutine that nobody waits for.
	stdin := cmd.Stdin
	cmd.Stdin = nil
	var pipe io.WriteCloser
	if stdin != nil {
		if pipe, err = cmd.StdinPipe(); err != nil {
			return 1, err
		}
	}
	cmd.WaitDelay = Grace // output pipes still held by somebody after the end are closed then
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	if pipe != nil {
		go func() {
			_, _ = io.Copy(pipe, stdin) // a program that does not read its input is no failure
			pipe.Close()
		}()
	}
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		_ = cmd.Process.Signal(syscall.SIGTERM) // mpirun passes it on and cleans up after itself
		select {
		case <-over:
		case <-time.After(Grace):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			sweep(mark)
		}
	}()
	err = cmd.Wait()
	close(over)
	<-watched
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	sweep(mark)
	if cmd.ProcessState == nil {
		return 1, err
	}
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && ws.Signaled():
		return 128 + int(ws.Signal()), nil
	default:
		return cmd.ProcessState.ExitCode(), nil
	}
}
