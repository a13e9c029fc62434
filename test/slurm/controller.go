// Package slurm tests zipped jobs in batch jobs of Slurm, with real controllers: two clusters on
// this host, each with its own slurmctld and two slurmd, and an ordinary user.
package slurm

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/freeport"
)

// The user and group that submit jobs: nobody and nogroup.
const (
	uid = 65534
	gid = 65534
)

// Site is shared by the clusters: a folder that all users may read, an installation of zipper, and
// munge, by which Slurm's daemons authenticate each other.
type Site struct {
	t    *testing.T
	Dir  string
	Home string // Home is the user's.
}

// NewSite makes a site for the time of a test. Like all functions here it fails the test on errors.
func NewSite(t *testing.T) *Site {
	t.Helper()
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Site{t: t, Dir: dir, Home: filepath.Join(dir, "home")}
	s.do(os.Chmod(dir, 0o755))
	s.mkdir("home", 0o755)
	s.do(os.Chown(s.Home, uid, gid))
	root, err := filepath.Abs("../..")
	s.do(err)
	install := exec.Command(filepath.Join(root, "scripts", "install"))
	install.Env = append(os.Environ(), "PREFIX="+filepath.Join(dir, "zipper"), "DESTDIR=")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, mpi := range []string{"openmpi", "mpich"} {
		for name, source := range map[string]string{
			"cg":      filepath.Join(root, "examples", "cg", "cg.c"),
			"badluck": filepath.Join(root, "test", "programs", "c", "badluck.c"),
			"hog":     filepath.Join("testdata", "hog.c"),
			"lost":    filepath.Join(root, "test", "programs", "c", "lost_shrink.c"),
		} {
			out, err := exec.Command("mpicc."+mpi, "-O2", "-o", filepath.Join(dir, name+"-"+mpi), source,
				"-lm").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	s.mkdir("key", 0o700)
	s.mkdir("munge", 0o755)
	key := make([]byte, 128)
	_, _ = rand.Read(key)
	s.do(os.WriteFile(s.path("key", "key"), key, 0o600))
	s.daemon("munged", "--foreground", "--force", "--socket="+s.socket(), "--key-file="+s.path("key", "key"),
		"--pid-file="+s.path("key", "pid"), "--log-file="+s.path("key", "log"), "--seed-file="+s.path("key", "seed"))
	s.until("munged listens", func() bool { _, err := os.Stat(s.socket()); return err == nil })
	return s
}

func (s *Site) path(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

func (s *Site) socket() string { return s.path("munge", "socket") }

// Zipper is the installed command.
func (s *Site) Zipper() string { return s.path("zipper", "bin", "zipper") }

func (s *Site) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Site) mkdir(name string, mode os.FileMode) {
	s.t.Helper()
	s.do(os.MkdirAll(s.path(name), 0o755))
	s.do(os.Chmod(s.path(name), mode))
}

// daemon starts a program that is ended at the end of the test.
func (s *Site) daemon(name string, args ...string) (pid int) {
	s.t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.WaitDelay = 5 * time.Second // processes that slurmd has started may keep the log open
	s.do(cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("%s %s:\n%s", name, strings.Join(args, " "), tail(log.String()))
		}
	})
	return cmd.Process.Pid
}

func tail(log string) string { return log[max(0, len(log)-4000):] }

// until waits until done returns true, for something that a daemon does.
func (s *Site) until(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not after a minute\n%s", what, s.outputs())
		}
	}
}

// outputs returns the output of jobs so far, and the logs of their prologs.
func (s *Site) outputs() string {
	var b strings.Builder
	for _, pattern := range []string{s.path("home", "*-*"), s.path("run", "*", "log")} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			text, _ := os.ReadFile(f)
			fmt.Fprintf(&b, "%s:\n%s\n", f, tail(string(text)))
		}
	}
	return b.String()
}

// Cluster is a cluster of Slurm's with two nodes of four processors each.
type Cluster struct {
	site *Site
	Name string
	// controller is the process id of its slurmctld.
	controller int
	// daemons are the process ids of its slurmds.
	daemons []int
	// group is the control group that limits their memory; empty: there is none.
	group string
}

// Cluster starts a cluster for the time of the test; more are further lines of its configuration.
func (s *Site) Cluster(name string, more ...string) *Cluster {
	s.t.Helper()
	host, err := os.Hostname()
	s.do(err)
	host, _, _ = strings.Cut(host, ".")
	ports := freeport.Of(s.t, 3)
	s.mkdir(name+"/state", 0o755)
	s.mkdir(name+"/spool", 0o755)
	nodes := []string{name + "1", name + "2"}
	var lines strings.Builder
	for i, node := range nodes {
		s.mkdir(name+"/tmp/"+node, 0o1777|os.ModeSticky)
		fmt.Fprintf(&lines, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=4 RealMemory=1000\n", node,
			host, ports[i+1])
	}
	conf := fmt.Sprintf(`ClusterName=%[1]s
SlurmctldHost=%[2]s(127.0.0.1)
SlurmctldPort=%[3]d
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[5]s
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool/%%n
SlurmdPidFile=%[4]s/slurmd-%%n.pid
SlurmctldPidFile=%[4]s/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
TmpFS=%[4]s/tmp/%%n
KillWait=5
%[6]s%[8]sPartitionName=%[1]s Nodes=%[7]s Default=YES State=UP
`, name, host, ports[0], s.path(name), s.socket(), &lines, strings.Join(nodes, ","), strings.Join(more, ""))
	c := &Cluster{site: s, Name: name}
	s.do(os.WriteFile(c.conf(), []byte(conf), 0o644)) //nolint:gosec // everybody reads it
	c.controller = s.daemon("slurmctld", "-D", "-f", c.conf())
	for _, node := range nodes {
		c.daemons = append(c.daemons, s.daemon("slurmd", "-D", "-N", node, "-f", c.conf()))
	}
	s.until("cluster "+name+" is idle", c.idle)
	// A daemon that does not learn of the end of a job keeps processes running.
	s.t.Cleanup(func() { s.until("cluster "+name+" is idle again", c.idle) })
	return c
}

// limitMemory puts the processes that the cluster's nodes start from now on into a control group
// with a limit of bytes, in either kind of hierarchy. It reports whether that succeeded.
func (c *Cluster) limitMemory(bytes int) (ok bool) {
	c.site.t.Helper()
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"),
			0o600) // otherwise there is no limit below
	}
	group := filepath.Join(root, filepath.Base(c.site.Dir)+"-"+c.Name)
	c.group = group
	if os.Mkdir(group, 0o755) != nil || os.WriteFile(filepath.Join(group, limit), []byte(strconv.Itoa(bytes)),
		0o600) != nil {
		return false
	}
	c.site.t.Cleanup(func() {
		for _, pid := range c.daemons {
			_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
		}
		c.site.until("the control group is empty", func() bool { return os.Remove(group) == nil })
	})
	for _, pid := range c.daemons {
		if os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600) != nil {
			return false
		}
	}
	return true
}

// killed returns the number of processes that the kernel has killed in the control group that
// limits memory.
func (c *Cluster) killed() (n int) {
	c.site.t.Helper()
	for _, name := range []string{"memory.events", "memory.oom_control"} { // of either kind
		text, _ := os.ReadFile(filepath.Join(c.group, name))
		for line := range strings.Lines(string(text)) {
			if _, count, ok := strings.Cut(strings.TrimSpace(line), "oom_kill "); ok {
				k, err := strconv.Atoi(count)
				c.site.do(err)
				n += k
			}
		}
	}
	return n
}

// secondNode changes the controller's record of the cluster's second node.
func (c *Cluster) secondNode(changes ...string) {
	c.site.t.Helper()
	c.Administer(append([]string{"scontrol", "update", "nodename=" + c.Name + "2"}, changes...)...)
}

// stop makes the controller stop answering until it is continued, as on a host that is overloaded.
func (c *Cluster) stop() { c.site.t.Helper(); c.site.do(syscall.Kill(c.controller, syscall.SIGSTOP)) }

// resume makes a controller that was stopped answer again.
func (c *Cluster) resume() { c.site.t.Helper(); c.site.do(syscall.Kill(c.controller, syscall.SIGCONT)) }

// idle reports whether there is no job, not even one that is being cleaned up.
func (c *Cluster) idle() bool {
	out, _ := c.command("sinfo", "-h", "-o", "%T %D").Output()
	return strings.TrimSpace(string(out)) == "idle 2"
}

func (c *Cluster) conf() string { return c.site.path(c.Name, "slurm.conf") }

// command returns a command of the user's at the cluster.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.site.Home
	cmd.Env = []string{"SLURM_CONF=" + c.conf(), "HOME=" + c.site.Home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8",
		"USER=nobody"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

// Job is a batch job.
type Job struct {
	cluster *Cluster
	ID      string
}

// Submit submits a script; options are those of sbatch.
func (c *Cluster) Submit(script string, options ...string) Job {
	c.site.t.Helper()
	cmd := c.command("sbatch", append([]string{"--parsable", "-t", "3", "-o", c.Name + "-%j"}, options...)...)
	cmd.Stdin = strings.NewReader("#!/bin/bash\n" +
		"export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1\n" + script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.site.t.Fatalf("sbatch: %v\n%s", err, out)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	return Job{c, id}
}

// SubmitIn submits a batch script unchanged, from a folder, by a user whose PATH has zipper.
func (c *Cluster) SubmitIn(dir, script string) Job {
	c.site.t.Helper()
	cmd := c.command("sbatch", "--parsable", "-o", filepath.Join(c.site.Home, c.Name+"-%j"))
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(script)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(c.site.Zipper())+":/usr/bin:/bin",
		"OMPI_MCA_btl_vader_single_copy_mechanism=none", "OMPI_MCA_mpi_yield_when_idle=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.site.t.Fatalf("sbatch: %v\n%s", err, out)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	return Job{c, id}
}

// State returns the job's state in Slurm's words: PENDING, RUNNING, COMPLETED, FAILED, CANCELLED …
func (j Job) State() string {
	out, _ := j.cluster.command("scontrol", "-o", "show", "job", j.ID).Output()
	for f := range strings.FieldsSeq(string(out)) {
		if state, ok := strings.CutPrefix(f, "JobState="); ok {
			return state
		}
	}
	return ""
}

// Wait waits for the job's end, and returns its state and its output.
func (j Job) Wait() (state, output string) {
	j.cluster.site.t.Helper()
	j.cluster.site.until("the end of job "+j.ID+" of "+j.cluster.Name, func() bool {
		state = j.State()
		return state != "PENDING" && state != "RUNNING" && state != "COMPLETING"
	})
	return state, j.Output()
}

// Output returns the job's output so far.
func (j Job) Output() string {
	b, _ := os.ReadFile(filepath.Join(j.cluster.site.Home, j.cluster.Name+"-"+j.ID))
	return string(b)
}

// Administer runs a command of Slurm's as its administrator.
func (c *Cluster) Administer(words ...string) {
	c.site.t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"SLURM_CONF=" + c.conf(), "PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.site.t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

// Cancel ends the job as its user would.
func (j Job) Cancel() {
	j.cluster.site.t.Helper()
	if out, err := j.cluster.command("scancel", j.ID).CombinedOutput(); err != nil {
		j.cluster.site.t.Fatalf("scancel: %v\n%s", err, out)
	}
}
