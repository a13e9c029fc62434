package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestForwarderRestarted ends the only forwarder (SIGTERM) in the middle of transfers and restarts
// it, twice. The job goes on, over both libraries, and every byte is correct.
func TestForwarderRestarted(t *testing.T) {
	for _, program := range []string{"stream.c", "rma_stream.c"} {
		t.Run(program, func(t *testing.T) {
			b := New(t)
			prog := b.both("test/programs/c/" + program)
			f := b.StartForwarder()
			end := filepath.Join(t.TempDir(), "stop")
			args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}, Flags: []string{"--zipper", f.Addr}})
			p := b.Start(nil, nil, append(args, "--", prog, end)...)
			b.waitProgress(p)
			for range 2 {
				f.Signal(syscall.SIGTERM)
				if r := b.OK(f.Wait()); !strings.Contains(r.Stderr, "job released") {
					t.Errorf("the forwarder does not report the state of its job:\n%v", r)
				}
				f = b.StartForwarderAt(f.Addr)
				b.WaitFor(time.Minute, "all to join the forwarder that is back",
					func() bool { return strings.Contains(f.Stderr(), "job runs") })
				b.waitProgress(p)
			}
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := b.OK(p.Wait())
			if !strings.Contains(r.Stderr, "the forwarder is shutting down; it is reopened") {
				t.Errorf("the user is not told:\n%v", r)
			}
			b.NothingLeft(id)
		})
	}
}

// TestForwarderRestartedAmongJobs checks that jobs survive the restart of a forwarder at which only
// one of them may gather at a time. A stopped rank keeps the first job from being complete while
// the second one is refused.
func TestForwarderRestartedAmongJobs(t *testing.T) {
	b := New(t)
	prog := b.both("test/programs/c/stream.c")
	f := b.StartForwarder("--max-gathering-from", "1")
	end := filepath.Join(t.TempDir(), "stop")
	var jobs [2]*Proc
	var ids [2]string
	for i := range jobs {
		args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--zipper", f.Addr}})
		jobs[i], ids[i] = b.Start(nil, nil, append(args, "--", prog, end)...), id
		b.waitProgress(jobs[i])
	}
	signal := func(s syscall.Signal, id, library string) {
		pid, err := Victim(id, strings.Replace(prog, "{mpi}", library, 1))
		if err == nil {
			err = syscall.Kill(pid, s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP, ids[0], MPICH)
	signal(syscall.SIGSTOP, ids[1], MPICH)
	signal(syscall.SIGSTOP, ids[1], OpenMPI)
	f.Signal(syscall.SIGTERM)
	b.OK(f.Wait())
	f = b.StartForwarderAt(f.Addr, "--max-gathering-from", "1")
	says := func(what string) {
		b.WaitFor(time.Minute, what, func() bool { return strings.Contains(f.Stderr(), what) })
	}
	says("job begins to gather")
	signal(syscall.SIGCONT, ids[1], OpenMPI)
	signal(syscall.SIGCONT, ids[1], MPICH)
	says("1 jobs from 127.0.0.1 gather already")
	signal(syscall.SIGCONT, ids[0], MPICH)
	for _, p := range jobs {
		b.waitProgress(p)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, p := range jobs {
		b.OK(p.Wait())
		b.NothingLeft(ids[i])
	}
}

// both compiles a program for both libraries and returns its path with {mpi} in it.
func (b *Bed) both(source string) string {
	b.Compile(MPICH, source)
	return strings.Replace(b.Compile(OpenMPI, source), "/"+OpenMPI+"/", "/{mpi}/", 1)
}

// TestForwarderEnds checks which events end jobs at once with their only forwarder, or after they
// have waited for its restart in vain, and which errors they report.
func TestForwarderEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		// end is the signal that ends the forwarder; 0: zipper stop.
		end syscall.Signal
		// own is whether the forwarder serves this job only (--job).
		own bool
		// flags are the flags of the job.
		flags []string
		says  string
	}{
		{name: "zipper stop", says: "job ended by the forwarder: the forwarder is shutting down"},
		{name: "SIGINT", end: syscall.SIGINT, says: "job ended by the forwarder: the forwarder is shutting down"},
		{name: "SIGTERM, job of its own", end: syscall.SIGTERM, own: true,
			says: "job ended by the forwarder: the forwarder is shutting down"},
		{name: "SIGTERM, no fail-over", end: syscall.SIGTERM, flags: []string{"--patience", "0"},
			says: "job ended by the forwarder: the forwarder is shutting down"},
		{name: "SIGTERM, none comes back", end: syscall.SIGTERM, flags: []string{"--patience", "3s"},
			says: "the forwarder is shutting down, and the forwarder is not reached again for 3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(t)
			args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}, Flags: c.flags})
			options := []string{"--status", "127.0.0.1:0"}
			if c.own {
				options = append(options, "--job", id)
			}
			f := b.StartForwarder(options...)
			p := b.Start(nil, nil, append(append(args, "--zipper", f.Addr), "--", bad(b), "wait")...)
			b.waiting(p, 4)
			if c.end == 0 {
				b.OK(b.Run(nil, nil, b.Zipper, "stop", statusOf(f)))
			} else {
				f.Signal(c.end)
			}
			b.OK(f.Wait())
			r := p.Wait()
			if r.Status == 0 {
				t.Errorf("ended well without a forwarder:\n%v", r)
			}
			b.Fails(r, r.Status, c.says)
			b.NothingLeft(id)
		})
	}
}

// TestStopIsCarriedThrough checks that SIGTERM does not cut short a forwarder that is ending its
// jobs, as happens when a service is stopped right after zipper stop. The forwarder waits for a
// rank that is stopped and does not close its link.
func TestStopIsCarriedThrough(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--zipper", f.Addr}})
	prog := bad(b)
	p := b.Start(nil, nil, append(args, "--", prog, "wait")...)
	b.waiting(p, 2)
	victim, err := Victim(id, strings.Replace(prog, "{mpi}", MPICH, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(victim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.Signal(syscall.SIGINT)
	b.WaitFor(waitForwarder, "the job to be ended", func() bool { return strings.Contains(f.Stderr(), "job aborted") })
	f.Signal(syscall.SIGTERM)
	b.OK(f.Wait())
	if err := syscall.Kill(victim, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	r := p.Wait()
	b.Fails(r, r.Status, "job ended by the forwarder: the forwarder is shutting down")
	b.NothingLeft(id)
}

// TestForwarderEndsWhileGathering checks that a rank that waits for the other cluster is told why
// it cannot join, because a job that has not begun cannot be resumed.
func TestForwarderEndsWhileGathering(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	p := half(b, JobID(t), "x", "a", "a=1,b=1", f.Addr, strings.Replace(bad(b), "{mpi}", OpenMPI, 1), "finish")
	b.WaitFor(time.Minute, "the job to gather", func() bool { return strings.Contains(f.Stderr(), "job begins to gather") })
	f.Signal(syscall.SIGTERM)
	b.OK(f.Wait())
	r := p.Wait()
	if r.Status == 0 {
		t.Errorf("ended well:\n%v", r)
	}
	b.Fails(r, r.Status, "the forwarder is shutting down")
}
