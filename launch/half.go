package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/output"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Half is one cluster's part of a job, ready to be started on the host where this process runs. It
// is what zipper join runs, and what zipper run runs once per cluster, here or through a remote
// shell.
type Half struct {
	Share   jobenv.Job
	Cluster spec.Cluster // Ranks, MPI, Hosts, Program, Mpirun, Args, Env, Zipper and Dir count
	Env     map[string]string
	Tag     bool   // put the rank in MPI_COMM_WORLD before each line of output
	Nodes   string // contents of the host file, for a half on a host that does not have it; "" = read Cluster.Hosts
	RunDir  string // where to keep temporary files; "" = the system's place
	Tells   bool   // it tells the job's forwarders when it ends (word.go): nobody else would

	prrte   bool // the launcher is PRRTE, once prepared
	settled bool // FindRoom has looked for room
	onDisk  bool // its shared memory is in the run directory, for want of room in /dev/shm
	lookUp  bool // the program is not linked to MPI: what it starts is looked at (stray.go)
}

// Run starts the cluster's processes and waits for their end. When ctx ends they are told to end,
// then killed. Nothing of them is left when it returns. The exit status is that of the native
// launcher (128 + signal if a signal ended it or, where it tells, one of its processes); the error
// is set when it could not be started at all, or the batch system has ended it. Prepare must have
// gone well.
func (h *Half) Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (status int, err error) {
	if !h.Tells || len(h.Share.Forwarders) == 0 {
		status, _, err = h.run(ctx, stdin, stdout, stderr)
		return status, err
	}
	w := newWord(h.Share)
	stop := w.watch(ctx)
	status, said, err := h.run(ctx, stdin, stdout, stderr)
	stop()
	if status == 0 && err == nil && ctx.Err() == nil || fromElsewhere(context.Cause(ctx)) {
		return status, err
	}
	if why := w.ended(status, err, said); why != "" && err == nil {
		err = errors.New(why)
	}
	return status, err
}

// NotStarted tells the job's forwarders that the half cannot be started, because of err, or has
// been ended meanwhile: then the batch system's reason, which it returns, comes first.
func (h *Half) NotStarted(ctx context.Context, err error) error {
	w := newWord(h.Share)
	why := ""
	if ctx.Err() != nil {
		why = w.ending(context.Cause(ctx))
	} else {
		why = w.ended(1, err, "")
	}
	if why != "" {
		return errors.New(why)
	}
	return err
}

// run is Run without telling anybody; said is the first error of the half's ranks.
func (h *Half) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (status int, said string,
	err error) {
	c := h.Cluster
	if !h.settled {
		note, err := FindRoom(h)
		if err != nil {
			return 1, "", fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		tellNote(stderr, note)
	}
	rd, err := newRundir(h.RunDir, h.Share.ID)
	if err != nil {
		return 1, "", fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	defer rd.remove()
	mark := rand.Text()
	n := native.Command{
		MPI: c.MPI, Mpirun: c.Mpirun, PRRTE: h.prrte, Ranks: c.Ranks, InOrder: c.InOrder, Extra: c.Args, Tag: h.Tag,
		Group: c.Group, Stdin: h.Share.First(), Env: h.variables(mark),
		Words: append([]string{c.ZipperPath(), "exec", "--"}, c.Program...),
	}
	if h.Nodes != "" || c.Hosts != "" {
		n.Hosts = filepath.Join(rd.dir, "hosts")
		if err := h.writeHosts(n.Hosts); err != nil {
			return 1, "", fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	} else if c.Here() {
		n.Here, n.Session, n.Shared = true, rd.dir, rd.shared
		if h.onDisk {
			n.Shared = rd.dir
		}
	}
	cmd := exec.Command(n.Mpirun, n.Args()...)
	cmd.Dir = c.Dir
	cmd.Env = n.Environ(os.Environ())
	streams := output.Open(output.Launcher{
		Cluster: c.Name, World: jobenv.WorldRanks(h.Share.Order, h.Share.Layout, c.Name),
		Tag: h.Tag, MPICH: c.MPI == spec.MPICH, PRRTE: h.prrte, Srun: c.Group != "",
	}, stdout, stderr)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, streams.Stdout, streams.Stderr
	var watch func(context.Context, int) error
	if h.lookUp {
		watch = func(ctx context.Context, root int) error { return findStray(ctx, "/proc", root) }
	}
	status, err = supervise(ctx, cmd, mark, watch)
	streams.Close()
	status = streams.Status(status)
	if status == 128+int(unix.SIGBUS) {
		fmt.Fprintf(stderr, "zipper: cluster %s: %s\n", c.Name, rd.busError())
	}
	if lost := streams.Lost(); lost != nil {
		fmt.Fprintf(stderr, "zipper: cluster %s: its output is lost: %v\n", c.Name, lost)
		status = max(status, 1)
	}
	var alone stray
	switch {
	case errors.As(err, &alone):
		err = fmt.Errorf("cluster %s: %w", c.Name, err)
	case err != nil:
		err = fmt.Errorf("cluster %s: cannot start %s: %w", c.Name, n.Mpirun, err)
	}
	return status, streams.Complaint(), err
}

// variables are those that the processes need, on every node.
func (h *Half) variables(mark string) map[string]string {
	env := map[string]string{}
	// ours that the user has set: on other hosts Open MPI's processes have only what is named
	for _, kv := range os.Environ() {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "ZIPPER_") && k != jobenv.VarSecretFile {
			env[k] = v
		}
	}
	for _, k := range []string{jobenv.VarAppnum, jobenv.VarOrder, jobenv.VarProtocol, jobenv.VarLevel, jobenv.VarPatience, jobenv.VarDual,
		jobenv.VarReport} {
		if env[k] != "" {
			env[k] = "" // the share says what counts: zipper bench does not look at the environment
		}
	}
	native.Displace(env)
	env[varMark], env[native.VarMPI] = mark, string(h.Cluster.MPI)
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

// writeHosts writes the host file in the form of the cluster's launcher.
func (h *Half) writeHosts(file string) error {
	hosts, err := spec.ParseHosts(h.Nodes)
	if h.Nodes == "" {
		hosts, err = spec.ReadHosts(h.Cluster.Hosts)
	}
	if err != nil {
		return err
	}
	text, err := spec.HostFile(h.Cluster.MPI, hosts)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
