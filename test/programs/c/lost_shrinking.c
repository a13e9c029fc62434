/* A cluster is lost while all processes shrink a communicator: its processes have taken part in the
 * first agreement, and not in the second one. They are not in the new communicator. */
#include "lost.h"

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int size;
  MPI_Comm alive = MPI_COMM_NULL;
  MPI_Request request;
  meet();
  if (dying) {
    CLASS(MPIX_Comm_ishrink(MPI_COMM_WORLD, &alive, &request), MPI_SUCCESS);
    usleep(200000); /* the vote arrives, and no call of MPI goes on with the rest */
    perish();
  }
  CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive), MPI_SUCCESS);
  MPI_Comm_size(alive, &size);
  SAME(size, np - victims, "survivors");
  CLASS(MPI_Barrier(alive), MPI_SUCCESS);
  return finish_lost(alive);
}
