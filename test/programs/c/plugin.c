/* A plug-in that uses MPI, which plugin_host.c opens and closes. With CONSTRUCTOR it starts MPI
 * while the loader opens it and holds its lock. */
#include <mpi.h>
#include <stdio.h>

static void begin(void) {
  int there;
  MPI_Initialized(&there);
  if (!there) MPI_Init(NULL, NULL);
}

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void construct(void) { begin(); }
#endif

/* Takes part in one collective of the job. The first call starts MPI, if it has not been started,
 * and the last one ends it. */
int take_part(int round, int last) {
  int rank, size, sum = 0;
  begin();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("round %d: %d of %d, sum %d\n", round, rank, size, sum);
  if (last) MPI_Finalize();
  return sum == size * (size - 1) / 2;
}
