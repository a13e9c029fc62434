/* Not a program but a library, preloaded into hpcc (RandomAccess/MPIRandomAccess.c and its LCG
 * twin, version 1.5.0) on more than four ranks. There hpcc keeps four receives from any source
 * posted, takes what MPI_Testany and MPI_Waitany show, and stops at the last rank's "finished"
 * message as if it were the last message. MPI matches messages to receives in the order of posting,
 * but which one of several complete receives those functions show is left open: updates that came
 * before "finished" may still lie in the other three buffers, where hpcc cancels the receives (too
 * late, they are complete) and forgets what they hold. Here the receives are shown in the order of
 * posting, which is one of the orders that MPI allows and the one that hpcc needs.
 */
#include <mpi.h>

static int oldest; /* hpcc posts a receive again as soon as it has been shown, so each is the oldest in turn */

int MPI_Testany(int n, MPI_Request *r, int *index, int *flag, MPI_Status *status) {
  int error = PMPI_Test(&r[oldest], flag, status);
  if (*flag) *index = oldest, oldest = (oldest + 1) % n;
  return error;
}

int MPI_Waitany(int n, MPI_Request *r, int *index, MPI_Status *status) {
  *index = oldest, oldest = (oldest + 1) % n;
  return PMPI_Wait(&r[*index], status);
}

/* hpcc cancels what is posted at the end of a phase; the next phase posts from the first on. */
int MPI_Cancel(MPI_Request *r) {
  oldest = 0;
  return PMPI_Cancel(r);
}
