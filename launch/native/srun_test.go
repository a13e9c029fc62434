package native

import (
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

func TestSrun(t *testing.T) {
	n := Command{MPI: spec.MPICH, Group: "1", Ranks: 3, Extra: []string{"--mem=1G"}, Words: []string{"zipper", "exec"}}
	want := []string{"--het-group=1", "--mpi=pmi2", "--overlap", "--kill-on-bad-exit=1", "--input=none", "--mem=1G",
		"-n", "3", "zipper", "exec"}
	t.Setenv("SLURM_MPI_TYPE", "")
	if got := n.Args(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	t.Setenv("SLURM_MPI_TYPE", "cray_shasta")
	n.MPI, n.Stdin = spec.OpenMPI, true
	if got := n.Args(); got[1] != "--mpi=cray_shasta" || got[4] != "--input=0" {
		t.Errorf("%q", got)
	}
}

// TestSrunWithAnotherInterfaceIsRefused checks that only srun's own --mpi is an error, not that of
// the daemons that it starts for mpirun.
func TestSrunWithAnotherInterfaceIsRefused(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		m, p spec.MPI
		want string
	}{
		{map[string]string{"SLURM_STEP_ID": "0", "PMI_RANK": "0"}, spec.MPICH, spec.OpenMPI, "srun --mpi=pmix"},
		{map[string]string{"SLURM_STEP_ID": "0", "PMI_RANK": "0"}, spec.MPICH, spec.MPICH, ""},
		{map[string]string{"SLURM_STEP_ID": "0", "PMI_RANK": "0", "MPI_LOCALRANKID": "0"}, spec.MPICH, spec.OpenMPI, ""},
		{map[string]string{"PMI_RANK": "0"}, spec.MPICH, spec.OpenMPI, ""},
	} {
		err := srunFits(func(k string) string { return tc.env[k] }, tc.m, tc.p)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc.env, err)
		}
	}
}
