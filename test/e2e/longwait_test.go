package e2e

import "testing"

// TestLongWait checks that ranks that wait long in a collective sleep, whether they lead their
// cluster or follow. (Native MPI spins, so there is nothing to compare with.)
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
