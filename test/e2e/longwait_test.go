package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLongWait: ranks that wait long in a collective sleep, whether they lead their cluster or
// follow. (Native MPI spins, so there is nothing to compare with.)
func TestLongWait(t *testing.T) {
	for _, job := range []Job{
		{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}},
		{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}, Env: []string{"ZIPPER_POLL=event"}},
		{Clusters: []Cluster{A(1, OpenMPI), B(2, MPICH)}},
	} {
		b := New(t)
		b.OK(b.Zipped(job, compileFor(b, job.Clusters, "c/longwait.c")))
	}
}

// TestStandstill has ranks call different functions: when all of them wait, the user is told in
// which functions.
func TestStandstill(t *testing.T) {
	const both = "waits in MPI_Barrier (1 of 2), MPI_Recv (1 of 2)"
	for _, run := range []struct {
		split split
		want  string
	}{
		{mixed, "cluster a waits in MPI_Recv; cluster b waits in MPI_Barrier"},
		{twoTwo, "cluster a " + both + "; cluster b " + both},
		{split{"2+2 MPICH", []Cluster{A(2, MPICH), B(2, MPICH)}}, "cluster a " + both + "; cluster b " + both},
	} {
		overSplits(t, "", []split{run.split}, func(b *Bed, s split) {
			path := compileFor(b, s.clusters, "c/standstill.c")
			args, id := b.runArgs(Job{Clusters: s.clusters, Flags: []string{"--patience", "1s"}})
			p := b.Start(nil, nil, append(append(args, "--"), path)...)
			b.WaitFor(time.Minute, "the warning", func() bool { return strings.Contains(p.Stderr(), "all processes have waited for 1s") })
			p.Signal(syscall.SIGINT)
			if r := p.Wait(); !strings.Contains(r.Stderr, run.want) {
				b.T.Errorf("want %q:\n%v", run.want, r)
			}
			b.NothingLeft(id)
		})
	}
}
