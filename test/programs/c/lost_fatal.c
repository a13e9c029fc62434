/* With MPI_ERRORS_ARE_FATAL the loss of a cluster ends the job, as an error of MPI does. */
#include "lost.h"

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Barrier(MPI_COMM_WORLD);
  perish();
  await_loss(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  puts("a barrier with a lost cluster has returned");
  return 0;
}
