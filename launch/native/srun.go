package native

import (
	"fmt"
	"os"
	"strconv"

	"github.com/leidenzipper/zipper/launch/spec"
)

// sruns are the values of srun's --mpi for each library: the interface by which its processes find
// their ranks.
var sruns = map[spec.MPI]string{spec.OpenMPI: "pmix", spec.MPICH: "pmi2"}

// SrunMPI returns srun's --mpi for a library; SLURM_MPI_TYPE, which srun reads by itself, wins.
func SrunMPI(m spec.MPI) string {
	if t := os.Getenv("SLURM_MPI_TYPE"); t != "" {
		return t
	}
	return sruns[m]
}

// srun returns the command line after srun's own name, for a group of a heterogeneous job. mpirun
// cannot start processes in groups other than its own.
func (n Command) srun() []string {
	input := "none"
	if n.Stdin {
		input = "0"
	}
	a := []string{"--het-group=" + n.Group, "--mpi=" + SrunMPI(n.MPI), "--overlap", "--kill-on-bad-exit=1", "--input=" +
		input}
	a = append(a, n.Extra...)
	a = append(a, "-n", strconv.Itoa(n.Ranks))
	return append(a, n.Words...)
}

// srunFits refuses a program that srun has started with the interface of another library: srun's
// --mpi decides about that, and not the cluster. get reads the environment.
func srunFits(get func(string) string, started, program spec.MPI) error {
	// mpirun's daemons are in steps as well.
	bySrun := get("SLURM_STEP_ID") != "" && get("OMPI_COMM_WORLD_RANK") == "" && get("MPI_LOCALRANKID") == ""
	if !bySrun || started != spec.MPICH || program != spec.OpenMPI {
		return nil
	}
	return fmt.Errorf("srun --mpi=pmi2 is for %v, and this program is one of %v: start it with srun --mpi=%s", started,
		program, sruns[program])
}
