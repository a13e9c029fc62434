package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestJobsEndUnderLoad starts jobs that work with several threads and end, one after the other.
// Processes of the job (ranks, launchers, the forwarder in zipper run) lose their processor at
// random. One job in five runs over a path with delays, and so do all of the long run's thousand
// jobs. If a job does not end, the stacks of all its threads are printed, and the forwarder's
// status.
func TestJobsEndUnderLoad(t *testing.T) {
	each := 6
	if long() {
		each = 250
	}
	for i, s := range []split{twoTwo, mixedFour, mpichPair, oneOne} {
		t.Run(s.name, func(t *testing.T) {
			b := New(t)
			path := compileFor(b, s.clusters, "c/ending.c", "-pthread")
			random := rand.New(rand.NewPCG(uint64(i), 2)) //nolint:gosec // not a secret
			lasting := *b                                 // the forwarder serves all runs
			lasting.Limit = 3 * time.Hour
			f := lasting.StartForwarder("--status", "127.0.0.1:0")
			slow := tamper(t, f.Addr, func(_ bool, _ wire.Header, frame []byte) [][]byte {
				if random.IntN(4) == 0 {
					time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond) // the delay of the path
				}
				return [][]byte{frame}
			})
			matchesNative := 0
			for run := range each {
				j := Job{Clusters: s.clusters}
				if run%5 == 4 || long() {
					j.Flags = []string{"--zipper", slow.Addr}
				}
				argv := []string{path}
				if run%2 == 1 {
					argv = append(argv, "frees")
				}
				if !b.endsWell(j, f, uint64(1000*i+run), argv...) {
					matchesNative++
				}
			}
			if matchesNative > 0 {
				t.Skipf("in %d of %d runs the launcher of Open MPI (%s) has not noticed that its processes had ended",
					matchesNative, each, version(OpenMPI))
			}
		})
	}
}

// endsWell runs a job, over the forwarder if f is not nil, while its processes are stopped at
// random; the seed determines when and which. It returns false if all processes have ended except a
// launcher that does so natively too.
func (b *Bed) endsWell(j Job, f *Forwarder, seed uint64, argv ...string) bool {
	b.T.Helper()
	patience := b.Limit / 2 // leaves time for a look at the processes
	args, id := b.runArgs(j)
	p := b.Start(nil, j.Env, append(append(args, "--"), argv...)...)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not a secret
	disturb := seed%4 != 0                   // some jobs run undisturbed
	for begin := time.Now(); ; {
		pause := time.Duration(random.IntN(120)) * time.Millisecond
		select {
		case <-p.done:
			b.OK(p.Wait())
			b.NothingLeft(id)
			return true
		case <-time.After(pause):
		}
		if time.Since(begin) > patience {
			if onlyPrterun(id) && !nativeIsReliable() {
				p.cancel()
				p.Wait()
				b.NothingLeft(id)
				return false
			}
			b.T.Fatalf("run %d has not ended in %v; it printed:\n%s%s\n%s\nthe forwarder shows\n%v", seed, patience,
				p.Stdout(), p.Stderr(), stacks(id), b.Run(nil, nil, b.Zipper, "status", statusOf(f)))
		}
		victims := Processes(id)
		if !disturb || len(victims) == 0 {
			continue
		}
		v := victims[random.IntN(len(victims))]
		if syscall.Kill(v, syscall.SIGSTOP) == nil {
			// the time for which the process is stopped
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
			_ = syscall.Kill(v, syscall.SIGCONT) // its launcher may have killed it
		}
	}
}

// onlyPrterun reports whether Open MPI's launcher, from version 5 on, is all that is left of a job.
// The launcher of 6.0.0rc2 alone (mpirun -n 2, without zipper), stopped at random with the
// processes that it has started, was found asleep for good after them in three runs of twenty.
func onlyPrterun(id string) bool {
	pids := Processes(id)
	for _, pid := range pids {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // the process may have ended meanwhile
		if strings.TrimSpace(string(name)) != "prterun" {
			return false
		}
	}
	return len(pids) > 0
}

// stacks returns the remaining processes of a job, with the stacks of their threads as gdb prints
// them.
func stacks(id string) string {
	var out strings.Builder
	pids := Processes(id)
	slices.Sort(pids)
	for _, pid := range pids {
		// the process may have ended meanwhile
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		o, err := exec.Command("gdb", "-p", fmt.Sprint(pid), "-batch", "-ex", "thread apply all bt 25").CombinedOutput()
		fmt.Fprintf(&out, "--- process %d: %q, %s(gdb: %v)\n%s\n", pid, command, stat, err, o)
	}
	return out.String()
}
