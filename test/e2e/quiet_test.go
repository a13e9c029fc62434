package e2e

import "testing"

// TestQuiet: what MMPI has running in a process leaves the cores to the program when there is
// nothing to do.
func TestQuiet(t *testing.T) {
	for _, job := range []Job{
		{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI)}},
		{Clusters: []Cluster{A(2, OpenMPI), B(1, MPICH)}},
	} {
		b := New(t)
		b.OK(b.Zipped(job, compileFor(b, job.Clusters, "c/quiet.c")))
	}
}
