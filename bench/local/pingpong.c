/* The time of an 8-byte ping-pong between ranks 0 and 1, which belong to one cluster; the others
 * wait. Prints the median of 200 times 2000 round trips, one way, in us. Run by scripts/bench with
 * and without libmmpi: what does it cost a message that crosses nothing? */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 200, ROUND_TRIPS = 2000, BYTES = 8, TAG = 1 };

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  int rank;
  char message[BYTES] = {0};
  static double sample[SAMPLES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int k = 0; rank < 2 && k < SAMPLES; k++) {
    double start = MPI_Wtime();
    for (int i = 0; i < ROUND_TRIPS; i++) {
      if (rank == 0) MPI_Send(message, BYTES, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
      MPI_Recv(message, BYTES, MPI_CHAR, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(message, BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
    }
    sample[k] = (MPI_Wtime() - start) * 1e6 / ROUND_TRIPS / 2;
  }
  if (rank == 0) {
    qsort(sample, SAMPLES, sizeof *sample, compare);
    printf("%.4f\n", sample[SAMPLES / 2]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
