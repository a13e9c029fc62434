/* Ranks whose program goes by MPI_VERSION call different functions: where that is 4 a barrier,
 * else a receive that no send matches. Where all versions are the same, ranks go by whether they
 * are odd. The job stands still. */
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
