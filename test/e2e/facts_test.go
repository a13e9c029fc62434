package e2e

import "testing"

// TestOtherTrueIsRefused checks that a cluster whose Fortran compiler has another value of .true.
// is refused with the reason, and that one without Fortran is not.
func TestOtherTrueIsRefused(t *testing.T) {
	b := New(t)
	fortran := b.Compile(OpenMPI, "test/programs/fortran/logical.f90")
	other := b.Compile(MPICH, "test/programs/c/other_true.c", "-rdynamic")
	run := func(first, second string) Result {
		return b.Run(nil, nil, b.Zipper, "run", "--cluster", "a=1,mpi=openmpi,program="+first, "--cluster",
			"b=1,mpi=mpich,program="+second)
	}
	b.Fails(run(fortran, other), 1, "the values of Fortran's .true. differ")
	unknown := b.Compile(OpenMPI, "test/programs/c/other_true.c") // MMPI does not find its function
	b.OK(run(unknown, other))
}
