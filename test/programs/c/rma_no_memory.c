// A window for which one process has no memory: MPI_Win_allocate returns an error in all processes,
// and the job goes on.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  void *base;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Aint bytes = rank == size - 1 ? (MPI_Aint)1 << 60 : 8;
  int failed = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) != MPI_SUCCESS;
  printf("%d: %s\n", rank, failed ? "an error" : "a window");
  MPI_Barrier(MPI_COMM_WORLD);
  int sum = 0;
  MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!rank) printf("%d of %d failed\n", sum, size);
  MPI_Finalize();
  return 0;
}
