/* The ocean of a coupled pair: it has much heat, and gives the air its mean temperature each
 * step. */
#include "coupled.h"

#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm own, air;
  meet(0, &own, &air);
  int rank, size;
  MPI_Comm_rank(own, &rank);
  MPI_Comm_size(own, &size);
  double t = 20 + rank, above = 0;
  for (int step = 0; step < STEPS; step++) {
    double mean = 0;
    MPI_Allreduce(&t, &mean, 1, MPI_DOUBLE, MPI_SUM, own);
    mean /= size;
    /* The first processes of both codes exchange what the others need. */
    if (rank == 0) MPI_Sendrecv(&mean, 1, MPI_DOUBLE, 0, 0, &above, 1, MPI_DOUBLE, 0, 0, air, MPI_STATUS_IGNORE);
    MPI_Bcast(&above, 1, MPI_DOUBLE, 0, own);
    t += 0.01 * (above - t) + 0.1 * (mean - t);
  }
  double sum;
  MPI_Reduce(&t, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, own);
  if (rank == 0) printf("ocean: %d processes, %.3f degrees\n", size, sum / size);
  MPI_Comm_free(&air);
  MPI_Comm_free(&own);
  MPI_Finalize();
  return 0;
}
