package e2e

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

// TestChildrenAreRefused checks that a child process of a rank gets an error from MPI, however it
// was made, and that no frame of the child reaches another rank: with level sealed it would reuse a
// nonce of the rank.
func TestChildrenAreRefused(t *testing.T) {
	optional.Processor(t, "MADV_WIPEONFORK, by which a child knows that it is none of the job")
	for _, level := range []string{"checked", "sealed"} {
		for _, job := range []Job{
			{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI)}},
			{Clusters: []Cluster{A(1, OpenMPI), B(2, MPICH)}},
		} {
			t.Run(level+" "+job.Clusters[1].MPI, func(t *testing.T) {
				b := New(t)
				job.Flags = []string{"--level", level}
				r := b.OK(b.Zipped(job, compileFor(b, job.Clusters, "c/children.c")))
				if n := strings.Count(r.Stdout, " are refused\n"); n != 9 {
					t.Errorf("%d lines of children, want 9:\n%s", n, r.Stdout)
				}
				// for each rank and way: three calls of one child and one of another child
				if n := strings.Count(r.Stderr, ": it has no part in the job: "); n != 3*3*4 {
					t.Errorf("%d calls are refused, want %d:\n%s", n, 3*3*4, r.Stderr)
				}
			})
		}
	}
}
