package slurm

import "testing"

// TestHetjob: the groups of a heterogeneous job are clusters by themselves, of one MPI library or of
// two, started by srun with what each library needs.
func TestHetjob(t *testing.T) {
	long(t)
	s := site(t)
	a := s.Cluster("a")
	groups := []string{"-N", "1", "-n", "2", ":", "-N", "1", "-n", "2"}
	for _, clusters := range []string{"", "--cluster a=2,mpi=openmpi --cluster b=2,mpi=mpich"} {
		state, output := a.Submit(s.Zipper()+" run --stats "+clusters+" -- '"+s.path("cg-{mpi}")+"'", groups...).Wait()
		solved(t, state, output)
	}
}
