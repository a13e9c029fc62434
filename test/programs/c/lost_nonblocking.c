/* MPIX_Comm_iagree and MPIX_Comm_ishrink, which are in progress while a cluster is lost. */
#include "lost.h"

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int flag = 6 | (me == 0), second = 5, size, inherited = 0;
  MPI_Request requests[2], shrink;
  MPI_Comm alive = MPI_COMM_NULL;
  MPI_Errhandler handler;
  MPI_Barrier(MPI_COMM_WORLD);
  if (dying) usleep(50000), perish();
  CLASS(MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &requests[0]), MPI_SUCCESS);
  CLASS(MPIX_Comm_iagree(MPI_COMM_WORLD, &second, &requests[1]), MPI_SUCCESS);
  CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  SAME(flag, np - victims > 1 ? 6 : 7, "agreed value");
  SAME(second, 5, "agreed value");
  CLASS(MPIX_Comm_ishrink(MPI_COMM_WORLD, &alive, &shrink), MPI_SUCCESS);
  for (int done = 0; !done;) CLASS(MPI_Test(&shrink, &done, MPI_STATUS_IGNORE), MPI_SUCCESS);
  MPI_Comm_size(alive, &size);
  SAME(size, np - victims, "survivors");
  MPI_Comm_get_errhandler(alive, &handler);
  inherited = handler == MPI_ERRORS_RETURN;
  SAME(inherited, 1, "the inherited error handler");
  MPI_Errhandler_free(&handler);
  return finish_lost(alive);
}
