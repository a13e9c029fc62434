package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lossNet is an arrangement of forwarders for clusters a, b and c, of which c is lost.
type lossNet struct {
	title    string
	networks []string // networks without ranks
	zippers  []string // zippers, with Z1, Z2 … in place of the addresses
}

var lossNets = []lossNet{
	{"side by side", nil, []string{"Z1", "Z2"}},
	{"row", nil, []string{"Z1=a,b", "Z2=b,c"}},
	{"trunk", []string{"wan"}, []string{"Z1=a,b,wan", "Z2=c,wan"}},
}

// over starts the forwarders of an arrangement, and returns them with the flags of a job that goes
// on when a cluster is lost.
func (b *Bed) over(n lossNet, patience string) (forwarders []*Forwarder, flags []string) {
	b.T.Helper()
	flags = []string{"--on-loss", "continue", "--patience", patience}
	for _, w := range n.networks {
		flags = append(flags, "--network", w)
	}
	for i, z := range n.zippers {
		forwarders = append(forwarders, b.StartForwarder())
		flags = append(flags, "--zipper", strings.Replace(z, fmt.Sprint("Z", i+1), forwarders[i].Addr, 1))
	}
	return forwarders, flags
}

// TestLostClusterOverForwarders checks that a loss is known, and that the survivors go on, over
// forwarders side by side, in a row and with a trunk between them.
func TestLostClusterOverForwarders(t *testing.T) {
	calls := [][]string{{"lost_shrink"}, {"lost_phase", "allreduce"}, {"lost_phase", "exit"}}
	if long() {
		calls = append(calls, []string{"lost_pending"}, []string{"lost_shrinking"}, []string{"lost_phase", "ring"},
			[]string{"lost_phase", "ring_large"}, []string{"lost_phase", "fence"}, []string{"lost_phase", "agree"})
	}
	for _, n := range lossNets {
		for _, c := range calls {
			t.Run(n.title+" "+strings.Join(c, " "), func(t *testing.T) {
				b := New(t)
				_, flags := b.over(n, "4s")
				path := compileFor(b, losingMixed.clusters, "c/"+c[0]+".c")
				argv := append([]string{path, losingMixed.victims()}, c[1:]...)
				want := map[bool]string{true: "survived", false: "ok"}[c[len(c)-1] == "exit"]
				b.survives(b.Zipped(Job{Clusters: losingMixed.clusters, Flags: flags}, argv...), want)
			})
		}
	}
}

// TestLostClusterBehindCut checks that the side with rank 0 goes on when the forwarder that leads
// to a cluster is out of reach for longer than the patience, and that the cluster's processes,
// which live, end.
func TestLostClusterBehindCut(t *testing.T) {
	b := New(t)
	forwarders, flags := b.over(lossNets[2], "2s")
	path := compileFor(b, losingMixed.clusters, "c/lost_shrink.c")
	args, id := b.runArgs(Job{Clusters: losingMixed.clusters, Flags: flags})
	p := b.Start(nil, []string{"LOST_BY=cut"}, append(args, "--", path, losingMixed.victims())...)
	b.WaitFor(time.Minute, "the cluster to wait for its loss", func() bool { return strings.Count(p.Stdout(), "is to be lost") == 2 })
	forwarders[1].Signal(syscall.SIGKILL)
	forwarders[1].Wait()
	b.survives(p.Wait(), "ok")
	b.NothingLeft(id)
}

// TestLostClusterStopped checks that a cluster whose processes are stopped for longer than the
// patience is lost, and that the processes end with the reason when they go on. A forwarder waits a
// minute for a stopped process.
func TestLostClusterStopped(t *testing.T) {
	if !long() {
		t.Skip("takes more than a minute: only with ZIPPER_LONG")
	}
	for _, l := range []losing{losingOneOfTwo, losingMPICH} {
		t.Run(l.title, func(t *testing.T) {
			b := New(t)
			path := compileFor(b, l.clusters, "c/lost_shrink.c")
			args, id := b.runArgs(Job{Clusters: l.clusters, Flags: []string{"--on-loss", "continue", "--patience", "4s"}})
			p := b.Start(nil, []string{"LOST_BY=stop"}, append(args, "--", path, l.victims())...)
			b.WaitFor(3*time.Minute, "the survivors to go on", func() bool { return strings.Contains(p.Stdout(), "ok") })
			for _, m := range regexp.MustCompile(`process (\d+) is`).FindAllStringSubmatch(p.Stdout(), -1) {
				pid, err := strconv.Atoi(m[1])
				if err == nil {
					err = syscall.Kill(pid, syscall.SIGCONT)
				}
				if err != nil {
					t.Error(err)
				}
			}
			r := p.Wait()
			b.survives(r, "ok")
			if !strings.Contains(r.Stderr, "no answer for") {
				t.Errorf("no word of the reason: %v", r)
			}
			b.NothingLeft(id)
		})
	}
}

// TestForwarderRestartsAfterLoss checks that the survivors of a lost cluster go on when their only
// forwarder is killed and started again afterwards.
func TestForwarderRestartsAfterLoss(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	path := compileFor(b, losingMixed.clusters, "c/lost_wait.c")
	flag := t.TempDir() + "/go-on"
	args, id := b.runArgs(Job{Clusters: losingMixed.clusters, Flags: []string{"--on-loss", "continue", "--zipper", f.Addr}})
	p := b.Start(nil, nil, append(args, "--", path, losingMixed.victims(), flag)...)
	b.WaitFor(time.Minute, "the survivors to know the loss", func() bool { return strings.Count(p.Stdout(), "knows the loss") == 4 })
	f.Signal(syscall.SIGKILL)
	f.Wait()
	f = b.StartForwarderAt(f.Addr)
	b.WaitFor(time.Minute, "the job to run again", func() bool { return strings.Contains(f.Stderr(), "job runs") })
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.survives(p.Wait(), "ok")
	b.NothingLeft(id)
}

// TestLabLostSite cuts the long link between two sites for longer than the patience: the site with
// rank 0 goes on, and the other one ends and says why. It logs how long after the cut site a goes
// on.
func TestLabLostSite(t *testing.T) {
	patiences := []string{"5s"}
	if long() {
		patiences = []string{"1s", "2s", "5s", "10s"}
	}
	for _, patience := range patiences {
		t.Run(patience, func(t *testing.T) {
			l := newSites(t)
			b := l.b
			job := l.sites("{"+fmt.Sprintf(siteA, "")+", dial: [wan]}", "{"+fmt.Sprintf(siteB, wanB)+"}")
			text, err := os.ReadFile(job)
			if err == nil {
				err = os.WriteFile(job, append(text, "env: {LOST_BY: cut}\n"...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			p := b.Start(nil, l.env, b.Zipper, "run", "--on-loss", "continue", "--patience", patience, "--file", job, "--",
				b.both("test/programs/c/lost_shrink.c"), "2")
			b.WaitFor(time.Minute, "site b to wait for its loss", func() bool { return strings.Count(p.Stdout(), "is to be lost") == 2 })
			begin := time.Now()
			l.lab("line", "cut", "1m")
			b.WaitFor(time.Minute, "site a to go on", func() bool { return strings.Contains(p.Stdout(), "2 ranks go on") })
			t.Logf("site a goes on %v after the cut", time.Since(begin).Round(100*time.Millisecond))
			r := p.Wait()
			b.survives(r, "ok")
			if !strings.Contains(r.Stderr, "the side with cluster a goes on without this one") {
				t.Errorf("site b does not say why it ends: %v", r)
			}
		})
	}
}
