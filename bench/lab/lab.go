// Package lab gives benchmarks the namespace lab of scripts/lab: two clusters on separate networks
// with zipper nodes between them, on one Linux machine. Targets to compare in it: zipped (the
// forwarder relays everything); nat (the default settings on a zipper node that forwards IP: its
// kernel passes connections on); classic (the original's protocol); routed (the
// zipper node routes IP, and one ordinary MPI job covers both clusters); native (one cluster
// alone). It requires root.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Config describes a lab.
type Config struct {
	// Name begins the names of the namespaces; a number follows that tells labs apart that are up
	// at the same time.
	Name           string
	NodesA, NodesB []string
	Zippers        []string
	// Rate is the limit of the links, such as "1gbit"; empty: no limit.
	Rate string
	// Burst is the size that a limited link passes at once, such as "32kb"; empty: the script's
	// default.
	Burst string
	// Latency is how long a limited link queues, such as "500ms"; empty: the script's default.
	Latency string
	// Queue is "fifo", or "peers" if limited links serve the nodes at their far ends in turn;
	// empty: the script's default.
	Queue string
	// MTU is in bytes; empty: the script's default.
	MTU string
	// Sysctl has the nodes' network settings, as NAME=VALUE.
	Sysctl []string
	// Long makes two sites with this link between their border nodes; Zippers are then gA (Sites).
	Long             *delayline.Options
	ForwarderOptions []string
	// Log gets the output of the scripts and forwarders; nil discards it.
	Log *os.File
}

// Reno gives a node's TCP the congestion control of most clusters whatever this machine's default
// is, so that all targets have the same one. BBR costs more processor time than the data, and
// zipper's own links avoid it. Every system allows it in a namespace.
const Reno = "net.ipv4.tcp_congestion_control=reno"

// Small returns the configuration of two nodes a cluster and one zipper node.
func Small() Config {
	return Config{Name: "zb", NodesA: []string{"a1", "a2"}, NodesB: []string{"b1", "b2"}, Zippers: []string{"z1"},
		Sysctl: []string{Reno}}
}

// Lab is a running lab.
type Lab struct {
	cfg    Config
	script string
	// dir has the host files.
	dir   string
	claim *os.File
	// awake may be nil.
	awake   *os.File
	zipper  string
	running []*exec.Cmd
	// classic tells that a forwarder of that protocol runs on the first zipper node.
	classic bool
	// onB tells that a forwarder runs on gB.
	onB bool
	// nat is a forwarder on the first zipper node that has the kernel pass connections on; nil if
	// none runs.
	nat     *exec.Cmd
	routing string
}

// Up creates the lab, proves that the clusters do not reach each other, shapes the links and starts
// a forwarder on every zipper node. The caller must call Down when the error is nil, also after the
// end of ctx.
func Up(ctx context.Context, cfg Config) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the lab needs root, for network namespaces")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(filepath.Dir(self))
	l := &Lab{cfg: cfg, script: filepath.Join(root, "scripts", "lab"), zipper: filepath.Join(root, "bin", "zipper")}
	for _, f := range []string{l.script, l.zipper} {
		if _, err := os.Stat(f); err != nil {
			return nil, fmt.Errorf("the lab needs %s: run zipper from its source tree, after scripts/build", f)
		}
	}
	if l.cfg.Name, l.claim, err = claim(cfg.Name); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "zipper-lab-"); err != nil {
		l.claim.Close()
		return nil, err
	}
	steps := [][]string{append([]string{"up"}, cfg.long()...), {"prove"}}
	if cfg.Rate != "" {
		steps = append(steps, []string{"shape", cfg.Rate})
	}
	for _, s := range steps {
		if err := l.lab(ctx, s...); err != nil {
			_ = l.Down() // the first error is the cause
			return nil, err
		}
	}
	for _, s := range cfg.Sysctl {
		for _, nodes := range [][]string{cfg.NodesA, cfg.NodesB, cfg.between()} {
			for _, n := range nodes {
				if out, err := l.On(n, "sysctl", "-qw", s).CombinedOutput(); err != nil {
					_ = l.Down() // the first error is the cause
					return nil, fmt.Errorf("sysctl %s on %s: %w: %s", s, n, err, strings.TrimSpace(string(out)))
				}
			}
		}
	}
	l.awake = stayAwake()
	for _, z := range cfg.Zippers { // They relay, also while the node routes for other targets.
		if err := l.forwarder(z, append([]string{"--nat=off"}, cfg.ForwarderOptions...)...); err != nil {
			_ = l.Down() // the first error is the cause
			return nil, err
		}
	}
	return l, nil
}

// claim returns the name with the lowest number that no running lab has, and its lock, which ends
// with this process. So a later lab gets the name of a killed run's lab, and removes it at its
// start.
func claim(prefix string) (name string, lock *os.File, err error) {
	for i := 1; i <= maxLabs; i++ {
		name = fmt.Sprintf("%s%d", prefix, i)
		if lock, err = os.OpenFile("/run/"+name+".lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return "", nil, fmt.Errorf("a name for the lab: %w", err)
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return name, lock, nil
		}
		lock.Close()
		if err != syscall.EWOULDBLOCK {
			return "", nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
		}
	}
	return "", nil, fmt.Errorf("%d labs are up on this machine already", maxLabs)
}

func (l *Lab) forwarder(node string, options ...string) error {
	cmd := l.command(context.Background(), append([]string{"on", node, l.zipper, "forwarder", "--log", "warn"},
		options...)...)
	cmd.Stdout, cmd.Stderr = l.cfg.Log, l.cfg.Log
	if err := cmd.Start(); err != nil {
		return err
	}
	l.running = append(l.running, cmd)
	return nil
}

// Down ends everything in the lab and removes it.
func (l *Lab) Down() error {
	for _, c := range l.running {
		end(c)
	}
	l.running = nil
	os.RemoveAll(l.dir)
	if l.awake != nil {
		l.awake.Close()
	}
	defer l.claim.Close()
	return l.lab(context.Background(), "down")
}

// end stops a forwarder.
func end(c *exec.Cmd) {
	c.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(endTime, func() { c.Process.Kill() })
	_ = c.Wait() // it ends by a signal
	timer.Stop()
}

// Shape limits every link ("1gbit"; "off" lifts the limit), or those of some nodes; "z1.A" is
// zipper node z1's link to the first cluster.
func (l *Lab) Shape(ctx context.Context, rate string, nodes ...string) error {
	return l.lab(ctx, append([]string{"shape", rate}, nodes...)...)
}

// On returns a command on a node, which is not started. It has a session of its own: the kernel's
// automatic groups (sched(7)) divide processors by session, and these are nodes that have nothing
// to do with each other.
func (l *Lab) On(node string, words ...string) *exec.Cmd {
	cmd := l.command(context.Background(), append([]string{"on", node}, words...)...)
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Setsid = false, true
	return cmd
}

// Zipper returns the path of the zipper command, the same on all nodes.
func (l *Lab) Zipper() string { return l.zipper }

// Forwarders returns the process ids of the forwarders, in the order of Config.Zippers.
func (l *Lab) Forwarders() (pids []int) {
	for _, c := range l.running {
		pids = append(pids, c.Process.Pid)
	}
	return pids
}

// Restart kills a forwarder, by its index in Forwarders, and starts it again.
func (l *Lab) Restart(i int) error {
	old := l.running[i]
	if err := old.Process.Kill(); err != nil {
		return err
	}
	_ = old.Wait() // it ends by a signal
	cmd := l.command(context.Background(), old.Args[1:]...)
	cmd.Stdout, cmd.Stderr = old.Stdout, old.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	l.running[i] = cmd
	return nil
}

func (l *Lab) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.script, args...)
	cmd.Env = append(os.Environ(), l.settings()...)
	// The session is this one, like that of the ranks of jobs: a process cannot give way to one of
	// another session, and on Linux 6.18 a forwarder then waited seconds for a core on which ranks
	// spin. The process group is another one: an interrupt from the terminal is for the caller,
	// which ends forwarders when jobs are over.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	return cmd
}

func (l *Lab) settings() []string {
	return []string{"BURST=" + l.cfg.Burst, "LATENCY=" + l.cfg.Latency, "QUEUE=" + l.cfg.Queue, "MTU=" + l.cfg.MTU,
		"LAB=" + l.cfg.Name, "LAB_RUN=/run/" + l.cfg.Name, "NODES_A=" + strings.Join(l.cfg.NodesA, " "),
		"NODES_B=" + strings.Join(l.cfg.NodesB, " "), "ZIPPERS=" + strings.Join(l.cfg.Zippers, " "),
		fmt.Sprint("LAB_OWNER=", os.Getpid())}
}

func (l *Lab) lab(ctx context.Context, args ...string) error {
	out, err := l.command(ctx, args...).CombinedOutput()
	if l.cfg.Log != nil {
		_, _ = l.cfg.Log.Write(out) // the error below has the text as well
	}
	if err != nil {
		return fmt.Errorf("scripts/lab %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// route switches IP routing between the clusters for targets that want it: on, off, nat, or, with a
// long link, far.
func (l *Lab) route(how string) error {
	if how == l.routing {
		return nil
	}
	if l.nat != nil { // that forwarder needs the present routing, and the other targets are measured without its rules
		end(l.nat)
		l.running = slices.DeleteFunc(l.running, func(c *exec.Cmd) bool { return c == l.nat })
		l.nat = nil
	}
	if err := l.lab(context.Background(), "route", how); err != nil {
		return err
	}
	l.routing = how
	return nil
}

// slots spreads ranks evenly over nodes, the first nodes first. It returns a host file's lines for
// exactly so many ranks: with one slot more in a cluster mpirun would put a rank there that belongs
// in the other.
func slots(nodes []string, ranks int) string {
	per := (ranks + len(nodes) - 1) / len(nodes)
	var b strings.Builder
	for _, n := range nodes {
		here := min(per, ranks)
		if ranks -= here; here > 0 {
			fmt.Fprintf(&b, "%s slots=%d\n", n, here)
		}
	}
	return b.String()
}

// hostfile writes a host file.
func (l *Lab) hostfile(name, text string, ranks int) string {
	path := filepath.Join(l.dir, fmt.Sprintf("%s-%d", name, ranks))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		panic(err) // the directory is our own, made by Up
	}
	return path
}

// args returns the arguments for Open MPI on nodes with several interfaces, the same in every
// target that is compared.
func (l *Lab) args(network string) []string {
	return []string{"--mca", "plm_rsh_agent", l.script + "-rsh", "--bind-to", "none", "--mca", "mpi_yield_when_idle",
		"1", "--mca", "oob_tcp_if_include", network, "--mca", "btl_tcp_if_include", network, "--oversubscribe"}
}

func (l *Lab) rsh() []string {
	return append(append([]string{"env"}, l.settings()...), l.script+"-rsh")
}

func (l *Lab) cluster(name, slots, login string, ranks int, network string) spec.Cluster {
	return spec.Cluster{Name: name, Ranks: ranks, MPI: spec.OpenMPI, Hosts: l.hostfile(name, slots, ranks),
		Launcher: "ssh", Login: login, Args: l.args(network), Zipper: l.zipper}
}

// Zipped returns the target of a job of a ranks in cluster a and b in cluster b, joined by the
// lab's forwarders. env is added to the ranks' environment.
func (l *Lab) Zipped(name string, a, b int, env map[string]string) drive.Target {
	return drive.Target{Name: name, Job: func() (*spec.Job, error) {
		if err := l.route("off"); err != nil {
			return nil, err
		}
		j := &spec.Job{Rsh: l.rsh(), Env: env, Clusters: []spec.Cluster{
			l.cluster("a", slots(l.cfg.NodesA, a), l.cfg.NodesA[0], a, "10.81.1.0/24"),
			l.cluster("b", slots(l.cfg.NodesB, b), l.cfg.NodesB[0], b, "10.81.2.0/24")}}
		for _, z := range l.cfg.Zippers {
			j.Zippers = append(j.Zippers, spec.Zipper{Address: z + ":7475"})
		}
		return j, nil
	}}
}

// Classic returns the same target with the protocol of the original middleware, over a forwarder of
// its own on the first zipper node.
func (l *Lab) Classic(a, b int) (drive.Target, error) {
	if !l.classic {
		if err := l.forwarder(l.cfg.Zippers[0], "--listen", classicPort, "--status", "none", "--protocol",
			jobenv.Classic); err != nil {
			return drive.Target{}, err
		}
		l.classic = true
	}
	zipped := l.Zipped("classic", a, b, nil)
	return drive.Target{Name: "classic", Job: func() (*spec.Job, error) {
		j, err := zipped.Job()
		if err != nil {
			return nil, err
		}
		j.Protocol = jobenv.Classic
		j.Zippers = []spec.Zipper{{Address: l.cfg.Zippers[0] + classicPort}}
		return j, nil
	}}, nil
}

// NAT returns the same target over a forwarder on the first zipper node that has the kernel pass
// connections on, and runs for such jobs only. A forwarder does so by default on a node that
// forwards IP. The target fails if the forwarder cannot.
func (l *Lab) NAT(a, b int) drive.Target {
	zipped := l.Zipped("nat", a, b, nil)
	return drive.Target{Name: "nat", Job: func() (*spec.Job, error) {
		j, err := zipped.Job()
		if err != nil {
			return nil, err
		}
		if err := l.route("nat"); err != nil {
			return nil, err
		}
		if err := l.forwarder(l.cfg.Zippers[0], "--listen", natPort, "--status", "none", "--nat=on"); err != nil {
			return nil, err
		}
		l.nat = l.running[len(l.running)-1]
		j.Zippers = []spec.Zipper{{Address: l.cfg.Zippers[0] + natPort}}
		return j, nil
	}}
}

// Ports of forwarders beside the ordinary one.
const (
	classicPort = ":7485"
	natPort     = ":7486"
)

// Routed returns the target of one ordinary Open MPI job over both clusters, with the first zipper
// node routing IP between them. a ranks are on the nodes of the first cluster, b on those of the
// second.
func (l *Lab) Routed(a, b int) drive.Target {
	return drive.Target{Name: "routed", Job: func() (*spec.Job, error) {
		if err := l.route("on"); err != nil {
			return nil, err
		}
		c := l.cluster("routed", slots(l.cfg.NodesA, a)+slots(l.cfg.NodesB, b), l.cfg.NodesA[0], a+b, "10.81.0.0/16")
		return &spec.Job{Rsh: l.rsh(), Clusters: []spec.Cluster{c}}, nil
	}}
}

// Native returns the target of a job of n ranks inside cluster a.
func (l *Lab) Native(n int) drive.Target {
	return drive.Target{Name: "native", Job: func() (*spec.Job, error) {
		return &spec.Job{Rsh: l.rsh(), Clusters: []spec.Cluster{l.cluster("native", slots(l.cfg.NodesA, n),
			l.cfg.NodesA[0], n, "10.81.1.0/24")}}, nil
	}}
}
