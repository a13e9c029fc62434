/* Two clusters of one rank are lost, the second one while the others recover from the loss of the
 * first. The phase is the number of milliseconds between the losses. */
#include "lost.h"

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int size = np, want = np - 2, delay = atoi(phase), rounds = 0;
  MPI_Comm comm, alive;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  if (me == np - 1) perish();
  if (me == np - 2) {
    usleep(1000 * (unsigned)delay);
    raise(SIGKILL);
  }
  while (size > want || MPI_Barrier(comm)) {
    MPIX_Comm_revoke(comm);
    CLASS(MPIX_Comm_shrink(comm, &alive), MPI_SUCCESS);
    MPI_Comm_free(&comm);
    comm = alive;
    MPI_Comm_size(comm, &size);
    CHECK(size >= want && size < np && ++rounds < 1000);
    if (size > want) usleep(1000);
  }
  SAME(size, want, "survivors");
  return finish_lost(comm);
}
