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

// Half is one cluster's part of a job, ready to be started on the host where this process runs.
// zipper join runs one half. zipper run runs one for each cluster, here or through a remote shell.
type Half struct {
	Share jobenv.Job
	// Cluster describes the cluster: Ranks, MPI, Hosts, Program, Mpirun, Args, Env, Zipper and Dir
	// count.
	Cluster spec.Cluster
	// Env are further variables of the processes.
	Env map[string]string
	// Tag tells to put the rank in MPI_COMM_WORLD before each line of output.
	Tag bool
	// Nodes is the text of the host file, for a half on a host that does not have the file. If it
	// is empty, Cluster.Hosts is read.
	Nodes string
	// WorkDir is the launcher's working directory. On another host a cluster without a Dir runs
	// there, or in the user's home if the host has no such directory.
	WorkDir string
	// RunDir is where temporary files are kept; an empty string means the system's place.
	RunDir string
	// ReportsEnd tells that this half reports its end to the job's forwarders (word.go), because no
	// other process would.
	ReportsEnd bool
	// Mark is a random word that a half on another host writes to standard error at its end, if its
	// exit status could be that of the remote shell (writeEnding).
	Mark string

	// prrte tells that the launcher is PRRTE; Prepare finds that out.
	prrte bool
	// settled tells that FindRoom has looked for room.
	settled bool
	// onDisk tells that the shared memory is in the run directory, because /dev/shm has no room.
	onDisk bool
	// examine tells that the program is not linked to MPI, so the processes that it starts are
	// examined (stray.go).
	examine bool
}

// Run starts the cluster's processes and waits for their end. When ctx ends it signals them to end,
// and kills them later. None of them is left when Run returns. status is the exit status of the
// native launcher: 128 + signal if a signal ended the launcher or, if it reports that, one of its
// processes. The error is set if the half could not be started at all, or the batch system has
// ended it. Prepare must have succeeded.
func (h *Half) Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (status int, err error) {
	if !h.ReportsEnd || len(h.Share.Forwarders) == 0 {
		status, _, err = h.run(ctx, stdin, stdout, stderr)
		return status, err
	}
	w := newWord(h.Share)
	stop := w.watch(ctx)
	status, complaint, err := h.run(ctx, stdin, stdout, stderr)
	stop()
	if status == 0 && err == nil && ctx.Err() == nil || causedByOther(context.Cause(ctx)) {
		return status, err
	}
	if why := w.ended(status, err, complaint); why != "" && err == nil {
		err = errors.New(why)
	}
	return status, err
}

// NotStarted reports to the job's forwarders that the half cannot be started, because of err. If
// the batch system has ended the half meanwhile, its reason comes first; NotStarted returns that
// reason.
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

// run is Run without a report to the forwarders. complaint is the first error of the half's ranks.
func (h *Half) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (status int, complaint string,
	err error) {
	c := h.Cluster
	if !h.settled {
		note, err := FindRoom(h)
		if err != nil {
			return 1, "", fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		printNote(stderr, note)
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
	if h.examine {
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

// variables returns the variables that the processes need on every node.
func (h *Half) variables(mark string) map[string]string {
	env := map[string]string{}
	// These are variables of ours that the user has set: on other hosts Open MPI's processes have
	// only variables that the launcher names.
	for _, kv := range os.Environ() {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "ZIPPER_") && k != jobenv.VarSecretFile {
			env[k] = v
		}
	}
	for _, k := range []string{jobenv.VarAppnum, jobenv.VarOrder, jobenv.VarNetworks, jobenv.VarProtocol,
		jobenv.VarLevel, jobenv.VarPatience, jobenv.VarOnLoss, jobenv.VarQuorum, jobenv.VarDual, jobenv.VarReport,
		jobenv.VarTicket, jobenv.VarTicketFile} {
		if env[k] != "" {
			env[k] = "" // the share decides: zipper bench does not look at the environment
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
