/* The survivors of a lost cluster wait for a file, whose name is the second argument, and go on
 * then. */
#include "lost.h"

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int flag = 7;
  MPI_Comm alive;
  meet();
  perish();
  await_loss(MPI_COMM_WORLD);
  printf("rank %d knows the loss\n", me);
  fflush(stdout);
  while (access(phase, F_OK)) usleep(10000);
  CLASS(MPIX_Comm_failure_ack(MPI_COMM_WORLD), MPI_SUCCESS);
  CLASS(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_SUCCESS);
  CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive), MPI_SUCCESS);
  CLASS(MPI_Barrier(alive), MPI_SUCCESS);
  return finish_lost(alive);
}
