package native

import (
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// TestRankIsSetWhereItIsKnown checks that zipper exec sets the rank in MPI_COMM_WORLD, in its own
// variables and in those of the launcher, or no rank where the launcher's numbers do not fit the
// layout.
func TestRankIsSetWhereItIsKnown(t *testing.T) {
	layout := []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 2}, {Name: "c", Size: 1}}
	order := []jobenv.Cluster{{Name: "b", Size: 1}, {Name: "a", Size: 2}, {Name: "b", Size: 1}, {Name: "c", Size: 1}}
	for name, c := range map[string]struct {
		cluster   string
		order     []jobenv.Cluster
		env, want string
	}{
		"Open MPI": {"b", nil, "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=n",
			"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=5 PMIX_NAMESPACE=n ZIPPER_LAUNCHER=n ZIPPER_NATIVE_RANK=1 " +
				"ZIPPER_NATIVE_SIZE=2 ZIPPER_RANK=3 ZIPPER_SIZE=5"},
		"MPICH": {"a", order, "PMI_RANK=0 PMI_SIZE=2", "PMI_RANK=1 PMI_SIZE=5 ZIPPER_LAUNCHER= ZIPPER_NATIVE_RANK=0 " +
			"ZIPPER_NATIVE_SIZE=2 ZIPPER_RANK=1 ZIPPER_SIZE=5"},
		"mpirun under srun": {"b", nil, "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMI_RANK=7 PMI_SIZE=9",
			"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=5 PMI_RANK=7 PMI_SIZE=9 ZIPPER_LAUNCHER= ZIPPER_NATIVE_RANK=0 " +
				"ZIPPER_NATIVE_SIZE=2 ZIPPER_RANK=2 ZIPPER_SIZE=5"},
		"srun with PMIx": {"b", order, "PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2",
			"PMIX_RANK=1 SLURM_STEP_NUM_TASKS=2 ZIPPER_RANK=3 ZIPPER_SIZE=5"},
		"no launcher, one rank":   {"c", nil, "A=1", "A=1 ZIPPER_RANK=4 ZIPPER_SIZE=5"},
		"no launcher, more ranks": {"a", nil, "A=1", "A=1"},
		"another size":            {"a", nil, "PMI_RANK=0 PMI_SIZE=3", "PMI_RANK=0 PMI_SIZE=3"},
		"no size":                 {"a", nil, "PMIX_RANK=1", "PMIX_RANK=1"},
		"beyond the size":         {"a", nil, "PMI_RANK=2 PMI_SIZE=2", "PMI_RANK=2 PMI_SIZE=2"},
		"no number":               {"a", nil, "PMI_RANK=x PMI_SIZE=2", "PMI_RANK=x PMI_SIZE=2"},
		"of another process": {"a", nil, "PMI_RANK=0 PMI_SIZE=3 ZIPPER_RANK=1 ZIPPER_SIZE=5 ZIPPER_LAUNCHER=n",
			"PMI_RANK=0 PMI_SIZE=3"},
		"another launcher since": {"a", nil, "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=m " +
			"ZIPPER_LAUNCHER=n ZIPPER_NATIVE_RANK=0 ZIPPER_NATIVE_SIZE=2",
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=5 PMIX_NAMESPACE=m ZIPPER_LAUNCHER=m ZIPPER_NATIVE_RANK=1 " +
				"ZIPPER_NATIVE_SIZE=2 ZIPPER_RANK=1 ZIPPER_SIZE=5"},
	} {
		job := jobenv.Job{Cluster: c.cluster, Layout: layout, Order: c.order}
		got := strings.Fields(c.env)
		for range 2 { // a second zipper exec changes nothing
			got = place(got, job)
			slices.Sort(got)
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("%s: %s, want %s", name, g, c.want)
			}
		}
	}
}
