package netgauge

// MPIModules describes the modules that move bytes by MPI. They run inside an MPI job, on its
// ranks: Open is nil here, and package mpimod sets it in an MPI program. Over a zipped job they
// measure the zipped path itself.
func MPIModules() []Module {
	return []Module{
		{Name: "mpi", About: "MPI_Send and MPI_Recv, on the ranks of a job (--cluster, --lab, --mode)",
			Offers: Reliable | Many},
		{Name: "mpi_nb", About: "MPI_Isend, MPI_Irecv and MPI_Wait", Offers: Reliable | Nonblocking | Many},
		{Name: "mpi_put", About: "MPI_Put, then a flag that says it is there (one-sided, with MPI_Win_flush)",
			Offers: Reliable | Many, MaxMessage: 2 << 20},
	}
}
