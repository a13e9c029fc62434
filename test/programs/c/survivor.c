/* survivor FIRST STATUS: the ranks from FIRST on are killed. The others notice that by an error of
 * a receive, finish MPI and end with STATUS. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int me, first = atoi(argv[1]), x;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me >= first) raise(SIGKILL);
  int failed = MPI_Recv(&x, 1, MPI_INT, first, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  printf("rank %d goes on: %d\n", me, failed);
  MPI_Finalize();
  return atoi(argv[2]);
}
