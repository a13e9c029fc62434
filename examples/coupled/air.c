/* The air of a coupled pair: it has little heat, and gives the ocean its mean temperature each
 * step. */
#include "coupled.h"

#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm own, ocean;
  meet(1, &own, &ocean);
  int rank, size;
  MPI_Comm_rank(own, &rank);
  MPI_Comm_size(own, &size);
  double t = 5 - rank, below = 0;
  for (int step = 0; step < STEPS; step++) {
    double mean = 0;
    MPI_Allreduce(&t, &mean, 1, MPI_DOUBLE, MPI_SUM, own);
    mean /= size;
    if (rank == 0) MPI_Sendrecv(&mean, 1, MPI_DOUBLE, 0, 0, &below, 1, MPI_DOUBLE, 0, 0, ocean, MPI_STATUS_IGNORE);
    MPI_Bcast(&below, 1, MPI_DOUBLE, 0, own);
    t += 0.2 * (below - t) + 0.1 * (mean - t);
  }
  double sum;
  MPI_Reduce(&t, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, own);
  if (rank == 0) printf("air: %d processes, %.3f degrees\n", size, sum / size);
  MPI_Comm_free(&ocean);
  MPI_Comm_free(&own);
  MPI_Finalize();
  return 0;
}
