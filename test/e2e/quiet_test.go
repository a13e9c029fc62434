package e2e

import "testing"

// TestIdleEngineUsesNoCore checks that MMPI's threads in a process leave the cores to the program
// while there is nothing to do.
func TestIdleEngineUsesNoCore(t *testing.T) {
	for _, job := range []Job{
		{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI)}},
		{Clusters: []Cluster{A(2, OpenMPI), B(1, MPICH)}},
	} {
		b := New(t)
		b.OK(b.Zipped(job, compileFor(b, job.Clusters, "c/quiet.c")))
	}
}
