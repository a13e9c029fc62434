/* Not a program but a library, preloaded into hpcc (RandomAccess/MPIRandomAccess.c and its LCG
 * twin, version 1.5.0) on more than four ranks. There hpcc keeps four receives from any source
 * posted, processes the one that MPI_Testany and MPI_Waitany return, and stops at the last rank's
 * "finished" message as if it were the last message. MPI matches messages to receives in the order
 * of posting, but leaves open which of several complete receives those functions return: updates
 * that arrived before "finished" may still lie in the other three buffers, where hpcc cancels the
 * receives (too late, they are complete) and ignores their content. Here the receives are returned
 * in the order of posting, which is one of the orders that MPI allows and the one that hpcc
 * needs. */
#include <mpi.h>

/* The oldest receive. hpcc posts a receive again as soon as it has been returned, so each is the
 * oldest in turn. */
static int oldest;

int MPI_Testany(int n, MPI_Request *r, int *index, int *flag, MPI_Status *status) {
  int error = PMPI_Test(&r[oldest], flag, status);
  if (*flag) *index = oldest, oldest = (oldest + 1) % n;
  return error;
}

int MPI_Waitany(int n, MPI_Request *r, int *index, MPI_Status *status) {
  *index = oldest, oldest = (oldest + 1) % n;
  return PMPI_Wait(&r[*index], status);
}

/* hpcc cancels its receives at the end of a phase; the next phase posts from the first one on. */
int MPI_Cancel(MPI_Request *r) {
  oldest = 0;
  return PMPI_Cancel(r);
}
