/* Ranks call different functions, by the MPI_VERSION with which the program was compiled: a barrier
 * if it is 4, otherwise a receive that no send matches. If all versions are equal, odd ranks differ
 * from even ones. The job hangs. */
#include "check.h"

int main(int argc, char **argv) {
  int version = MPI_VERSION, least, most, x;
  start(&argc, &argv);
  MPI_Allreduce(&version, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&version, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (least < most ? version == most : me % 2) MPI_Barrier(MPI_COMM_WORLD);
  else MPI_Recv(&x, 1, MPI_INT, (me + 1) % np, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return finish();
}
