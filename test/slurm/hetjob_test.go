package slurm

import (
	"fmt"
	"strings"
	"testing"
)

// TestHetjob checks that the groups of a heterogeneous job can be clusters, of one MPI library or
// of two, started by srun with the options of each library.
func TestHetjob(t *testing.T) {
	long(t)
	s := site(t)
	a := s.Cluster("a")
	groups := []string{"-N", "1", "-n", "2", ":", "-N", "1", "-n", "2"}
	const both = "--cluster a=2,mpi=openmpi --cluster b=2,mpi=mpich"
	run := func(clusters, program, then string) (state, output string) {
		t.Helper()
		return a.Submit(s.Zipper()+" run --stats "+clusters+" -- '"+s.path(program)+then, groups...).Wait()
	}
	for _, clusters := range []string{"", both} {
		state, output := run(clusters, "cg-{mpi}'", "")
		solved(t, state, output)
	}
	// The exit status is the one that mpirun would return, also where srun changes it.
	for _, tc := range []struct {
		program string
		status  int
	}{
		{"exit 3 0", 3}, {"exit 3 1", 3}, {"exit 3 2", 3}, {"exit 3 3", 3},
		{"abort 5 1", 5}, {"abort 5 3", 5},
		{"kill 9 1", 137}, {"kill 9 3", 137},
	} {
		state, output := run(both, "badluck-{mpi}' "+tc.program, "\necho status $?")
		if state != "COMPLETED" || !strings.Contains(output, fmt.Sprintf("status %d\n", tc.status)) {
			t.Errorf("%s: %s:\n%s", tc.program, state, output)
		} else {
			t.Logf("%s:\n%s", tc.program, output)
		}
	}
}
