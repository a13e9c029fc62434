package slurm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/freeport"
)

// pair is two clusters, at the first of which a user calls zipper submit.
type pair struct {
	*Site
	clusters map[string]*Cluster
	rsh      string
	port     int
}

// newPair makes two clusters whose urgent jobs preempt others by requeueing them.
func newPair(t *testing.T) *pair {
	t.Helper()
	s := site(t)
	p := &pair{Site: s, clusters: map[string]*Cluster{}, rsh: s.path("rsh"), port: freeport.Of(t, 1)[0]}
	for _, name := range []string{"a", "b"} {
		p.clusters[name] = s.Cluster(name, "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nMessageTimeout=5\n",
			fmt.Sprintf("PartitionName=urgent Nodes=%s1,%[1]s2 PriorityTier=10 State=UP\n", name))
	}
	s.daemon(s.Zipper(), "forwarder", "--listen", fmt.Sprintf("127.0.0.1:%d", p.port), "--status", "none")
	s.do(os.WriteFile(p.rsh, []byte("#!/bin/sh\n[ \"$1\" = head-b ] || exit 255\nshift\nSLURM_CONF="+p.clusters["b"].conf()+" exec \"$@\"\n"), 0o755)) //nolint:gosec // the user runs it
	return p
}

// submission is a call of zipper submit --together.
type submission struct {
	cmd       *exec.Cmd
	out, errs lockedBuffer
	name      string
}

// lockedBuffer may be read while a process writes to it.
type lockedBuffer struct {
	lock sync.Mutex
	buf  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.buf.String()
}

// submit submits a job of two ranks a half; more are further lines of the job file.
func (p *pair) submit(name, program, more string, flags ...string) *submission {
	p.t.Helper()
	return p.start(name, p.jobFile(name, program, more), flags...)
}

// submitEdited submits a job whose file is changed.
func (p *pair) submitEdited(name, from, to string) *submission {
	p.t.Helper()
	return p.start(name, strings.Replace(p.jobFile(name, p.path("cg-{mpi}"), ""), from, to, 1))
}

// jobFile returns a job file.
func (p *pair) jobFile(name, program, more string) string {
	return fmt.Sprintf(`
job: %s
program: "%s"
rsh: %s
zippers: ["127.0.0.1:%d"]
env: {OMPI_MCA_btl_vader_single_copy_mechanism: none, OMPI_MCA_mpi_yield_when_idle: "1"}
%s
clusters:
  - {name: a, ranks: 2, mpi: openmpi, batch: [--time=3]}
  - {name: b, ranks: 2, mpi: mpich, login: head-b, batch: [--time=3]}
`, name, program, p.rsh, p.port, more)
}

// start writes the job file and calls zipper submit.
func (p *pair) start(name, text string, flags ...string) *submission {
	p.t.Helper()
	file := p.path(name + ".yaml")
	p.do(os.WriteFile(file, []byte(text), 0o644)) //nolint:gosec // the user reads it
	u := &submission{name: name}
	u.cmd = p.clusters["a"].command(p.Zipper(), append(append([]string{"submit", "--together"}, flags...), file)...)
	u.cmd.Stdout, u.cmd.Stderr = &u.out, &u.errs
	p.do(u.cmd.Start())
	p.t.Cleanup(func() {
		if u.cmd.ProcessState == nil { // the test has failed
			_ = u.cmd.Process.Signal(os.Interrupt)
			_ = u.cmd.Wait()
		}
	})
	return u
}

// job returns the batch job of a half, once it is submitted.
func (p *pair) job(u *submission, cluster string) Job {
	p.t.Helper()
	var id string
	p.until("cluster "+cluster+" has "+u.name, func() bool {
		m := regexp.MustCompile(`cluster ` + cluster + `: submitted as Slurm job ([0-9]+)`).FindStringSubmatch(u.errs.String())
		if m != nil {
			id = m[1]
		}
		return m != nil
	})
	return Job{p.clusters[cluster], id}
}

// started returns when a job has started, in seconds.
func (j Job) started() int64 {
	out, _ := j.cluster.command("scontrol", "-o", "show", "job", j.ID).Output()
	m := regexp.MustCompile(`\bStartTime=(\S+)`).FindSubmatch(out)
	if m == nil {
		return 0
	}
	at, _ := time.Parse("2006-01-02T15:04:05", string(m[1]))
	return at.Unix()
}

// apart returns the time between the starts of the halves of a job that has ended well.
func (p *pair) apart(u *submission) time.Duration {
	p.t.Helper()
	d := p.job(u, "a").started() - p.job(u, "b").started()
	return time.Duration(max(d, -d)) * time.Second
}

// nothingLeft checks that no half and no file is left.
func (p *pair) nothingLeft() {
	p.t.Helper()
	for _, c := range p.clusters {
		if list, _ := c.command("squeue", "-h", "-o", "%i %j %T").Output(); bytes.Contains(list, []byte("zipper-")) {
			p.t.Errorf("cluster %s still has %s", c.Name, list)
		}
	}
	if left, _ := filepath.Glob(p.path("home", ".zipper", "jobs", "*")); len(left) > 0 {
		p.t.Errorf("%v is left", left)
	}
}

// occupy fills a cluster with a job of another user's for a time, and returns it once it runs.
func (p *pair) occupy(cluster string, seconds int, options ...string) Job {
	p.t.Helper()
	j := p.clusters[cluster].Submit(fmt.Sprintf("sleep %d", seconds), append([]string{"-N", "2", "-t", "10"}, options...)...)
	p.until("the other user's job runs", func() bool { return j.State() == "RUNNING" })
	return j
}

// TestTogether checks a job whose second cluster is full: its first half is deferred meanwhile, and
// says so. Then a half is cancelled, and the user interrupts the command: all halves are gone.
func TestTogether(t *testing.T) {
	p := newPair(t)
	p.occupy("b", 30)
	notes := p.path("home", "notes")
	u := p.submit("full", p.path("cg-{mpi}"), "", "--notify", "cat >>"+notes)
	a := p.job(u, "a")
	p.until("status", func() bool {
		out, _ := p.clusters["a"].command(p.Zipper(), "submit", "--status", "full").CombinedOutput()
		return regexp.MustCompile(`cluster a: Slurm job `+a.ID+`: is deferred for cluster b \(Slurm job [0-9]+ on head-b\), until`).Match(out) &&
			bytes.Contains(out, []byte("attempt 1, from"))
	})
	if state := a.State(); state != "PENDING" {
		t.Errorf("a's half is %s while b is full", state)
	}
	if err := u.cmd.Wait(); err != nil || !strings.Contains(u.out.String(), "verified") || strings.Contains(u.out.String(), "zipper:") {
		t.Errorf("%v\n%s\n%s", err, &u.out, &u.errs)
	}
	if d := p.apart(u); d > time.Minute {
		t.Errorf("the halves start %v apart", d)
	}
	if text, _ := os.ReadFile(notes); !bytes.Contains(text, []byte("all halves have begun")) {
		t.Errorf("--notify: %s", text)
	}
	p.nothingLeft()

	blocker := p.occupy("b", 60)
	u = p.submit("cancelled", p.path("cg-{mpi}"), "")
	p.job(u, "a")
	b := p.job(u, "b")
	b.Cancel()
	if err := u.cmd.Wait(); err == nil || !strings.Contains(u.errs.String(), "was cancelled by its batch system (scancel, Slurm job "+b.ID) ||
		!strings.Contains(u.errs.String(), "submit the job again") {
		t.Errorf("%v\n%s", err, &u.errs)
	}
	p.nothingLeft()

	u = p.submit("interrupted", p.path("cg-{mpi}"), "")
	p.job(u, "b")
	p.do(u.cmd.Process.Signal(os.Interrupt))
	if err := u.cmd.Wait(); err == nil || u.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v\n%s", err, &u.errs)
	}
	p.nothingLeft()
	blocker.Cancel()
}

// TestTogetherRequeues checks that a half that has started is requeued when the other one does not
// start within the idle limit, and that both begin in another attempt.
func TestTogetherRequeues(t *testing.T) {
	long(t)
	p := newPair(t)
	// The estimate of sbatch takes no notice of this.
	p.clusters["b"].Administer("scontrol", "update", "partition=b", "State=DOWN")
	u := p.submit("requeued", p.path("cg-{mpi}"), "", "--idle-limit", "10s")
	p.until("the first attempt has failed", func() bool {
		return regexp.MustCompile(`attempt 1, .*: cluster a started at .* and was requeued after .*, because cluster b had not started`).MatchString(u.errs.String())
	})
	p.clusters["b"].Administer("scontrol", "update", "partition=b", "State=UP")
	if err := u.cmd.Wait(); err != nil || !strings.Contains(u.out.String(), "verified") {
		t.Errorf("%v\n%s\n%s", err, &u.out, &u.errs)
	}
	if d := p.apart(u); d > time.Minute {
		t.Errorf("the halves start %v apart", d)
	}
	p.nothingLeft()
}

// TestTogetherReserves checks that the halves of a user with that right begin with reservations at
// the same time, that another user's begin without, and that no reservation is left.
func TestTogetherReserves(t *testing.T) {
	long(t)
	p := newPair(t)
	u := p.submit("refused", p.path("cg-{mpi}"), "", "--reserve")
	if err := u.cmd.Wait(); err != nil || strings.Count(u.errs.String(), "no reservation: ") == 0 {
		t.Errorf("%v\n%s\n%s", err, &u.out, &u.errs)
	}
	root := exec.Command(p.Zipper(), "submit", "--together", "--reserve", p.path("refused.yaml"))
	home := t.TempDir()
	root.Dir, root.Env = home, append(os.Environ(), "SLURM_CONF="+p.clusters["a"].conf(), "HOME="+home,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	u = &submission{name: "granted"}
	root.Stdout, root.Stderr = &u.out, &u.errs
	u.cmd = root
	if err := root.Run(); err != nil || strings.Contains(u.errs.String(), "no reservation: ") || !strings.Contains(u.out.String(), "verified") {
		t.Errorf("%v\n%s\n%s", err, &u.out, &u.errs)
	}
	if d := p.apart(u); d > 10*time.Second {
		t.Errorf("with reservations the halves start %v apart\n%s", d, &u.errs)
	}
	for _, c := range p.clusters {
		if out, _ := c.command("scontrol", "-o", "show", "reservation").Output(); bytes.Contains(out, []byte("zipper-")) {
			t.Errorf("cluster %s still has %s", c.Name, out)
		}
	}
}

// TestTogetherErrors checks that halves that cannot begin end the job with an error that says what
// to do, and that nothing is left: options that Slurm refuses, a wrong directory, and a controller
// that does not answer at the submission.
func TestTogetherErrors(t *testing.T) {
	long(t)
	p := newPair(t)
	for _, c := range []struct{ name, edit, to, want string }{
		{"limits", "head-b, batch: [--time=3]", "head-b, batch: [--time=3, --partition=none]", "correct the options under batch:"},
		{"directory", "head-b,", "head-b, dir: /no/dir,", "/no/dir"},
		{"program", "head-b,", "head-b, zipper: /no/zipper,", "there is no /no/zipper on"},
		{"stage", "clusters:", "stage: {in: [no/input]}\nclusters:", "no/input: no such file"},
	} {
		u := p.submitEdited(c.name, c.edit, c.to)
		if err := u.cmd.Wait(); err == nil || !strings.Contains(u.errs.String(), c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, &u.errs)
		}
		p.nothingLeft()
	}
	p.clusters["b"].stop()
	u := p.submit("away", p.path("cg-{mpi}"), "")
	p.until("the submission has no answer", func() bool { return strings.Contains(u.errs.String(), "submit again when it answers") })
	p.clusters["b"].resume() // and gets the request now
	if err := u.cmd.Wait(); err == nil {
		t.Errorf("no error:\n%s", &u.errs)
	}
	p.nothingLeft()
}

// disturbances are the events at the cluster of a half that waits on its nodes for the other one,
// by their names.
var disturbances = map[string]func(p *pair, half Job){
	"competition": func(_ *pair, half Job) { half.cluster.Submit("sleep 15", "-N", "2", "-t", "1") },
	"cancellation": func(_ *pair, half Job) {
		j := half.cluster.Submit("sleep 60", "-N", "2", "-t", "2")
		j.Cancel()
	},
	"preemption": func(p *pair, half Job) {
		half.cluster.Submit("sleep 10", "-p", "urgent", "-N", "2", "-t", "1")
		p.until("the half is preempted", func() bool { return half.State() != "RUNNING" })
	},
	"node": func(p *pair, half Job) {
		list, _ := half.cluster.command("squeue", "-h", "-j", half.ID, "-o", "%N").Output()
		node := "nodename=" + strings.TrimSpace(string(list))
		half.cluster.Administer("scontrol", "update", node, "state=down", "reason=test")
		p.until("the half is back in the queue", func() bool { return half.State() == "PENDING" })
		half.cluster.Administer("scontrol", "update", node, "state=idle")
	},
	"controller": func(_ *pair, half Job) {
		half.cluster.stop()
		time.Sleep(20 * time.Second) // so long the controller is away
		half.cluster.resume()
	},
}

// TestTogetherDisturbed checks twenty submissions in which one half starts first, because the other
// cluster is full, and is disturbed while it waits: by competing jobs, cancellations of these, a
// preemption, a failed node, or a controller that does not answer. The halves of all but one
// submission start within a minute of each other.
func TestTogetherDisturbed(t *testing.T) {
	long(t)
	p := newPair(t)
	const submissions = 20
	kinds := []string{"competition", "cancellation", "preemption", "node", "controller"}
	together := 0
	for i := range submissions {
		kind, first := kinds[i%len(kinds)], string("ab"[i/len(kinds)%2])
		// Its limit lets the estimates meet at once, so that the first half is released.
		p.occupy(other(first), 25, "-t", "1")
		u := p.submit(fmt.Sprintf("j%d", i), p.path("cg-{mpi}"), "", "--idle-limit", "1m")
		half := p.job(u, first)
		p.until("the first half waits on its nodes", func() bool {
			return strings.Contains(u.errs.String(), "cluster "+first+": has started, and waits for ")
		})
		disturbances[kind](p, half)
		err := u.cmd.Wait()
		d := p.apart(u)
		t.Logf("%d, %s at %s: %v apart, %s, %v", i, kind, first, d,
			regexp.MustCompile(`in attempt [0-9]+`).FindString(u.errs.String()), err)
		if err == nil && strings.Contains(u.out.String(), "verified") && d <= time.Minute {
			together++
		} else {
			t.Logf("%s\n%s", &u.out, &u.errs)
		}
	}
	p.nothingLeft()
	if together < submissions-1 {
		t.Errorf("the halves of %d of %d submissions started within a minute", together, submissions)
	}
}
