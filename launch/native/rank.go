package native

import "github.com/leidenzipper/zipper/launch/spec"

// Rank finds out which MPI's launcher started this process and as which rank.
// ok is false when none did.
func Rank(get func(string) string) (m spec.MPI, rank string, ok bool) {
	if r := get("OMPI_COMM_WORLD_RANK"); r != "" {
		return spec.OpenMPI, r, true
	}
	if r := get("PMI_RANK"); r != "" {
		return spec.MPICH, r, true
	}
	if r := get("PMIX_RANK"); r != "" { // srun --mpi=pmix: either library
		return "", r, true
	}
	return "", "", false
}

// Speaks reports whether this process should say what is wrong: one for each host, because all
// ranks meet the same there, but not on all hosts.
func Speaks(get func(string) string) bool {
	for _, local := range []string{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"} {
		if r := get(local); r != "" {
			return r == "0"
		}
	}
	return true
}
