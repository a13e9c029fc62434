/* Power iteration for the largest eigenvalue of a symmetric matrix, with the sum over all processes
 * under way while the next product is begun: a nonblocking collective over both clusters.
 *
 * The matrix is tridiagonal with 2 on the diagonal and -1 beside it, of order n; its largest
 * eigenvalue is 2 + 2 cos(pi / (n + 1)). */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ORDER = 64, STEPS = 6000 };

/* inner is the product's part that needs no neighbour; ends is the rest. */
static void inner(const double *x, double *y, int n) {
  for (int i = 1; i <= n; i++) y[i] = 2 * x[i] - (i > 1 ? x[i - 1] : 0) - (i < n ? x[i + 1] : 0);
}
static void ends(const double *x, double *y, int n) {
  y[1] -= x[0];
  y[n] -= x[n + 1];
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int first = ORDER * rank / size, n = ORDER * (rank + 1) / size - first;
  int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  double *x = calloc(n + 2, sizeof *x), *y = calloc(n + 2, sizeof *y), sums[2], all[2] = {0, 1};
  if (!x || !y) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 1; i <= n; i++) x[i] = 1 + (first + i) % 3;

  MPI_Request sum = MPI_REQUEST_NULL;
  for (int step = 0; step < STEPS; step++) {
    MPI_Request edges[4];
    MPI_Irecv(&x[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &edges[0]);
    MPI_Irecv(&x[n + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &edges[1]);
    MPI_Isend(&x[1], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &edges[2]);
    MPI_Isend(&x[n], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &edges[3]);
    inner(x, y, n); /* while edges and the last step's sums are under way */
    MPI_Waitall(4, edges, MPI_STATUSES_IGNORE);
    ends(x, y, n);
    MPI_Wait(&sum, MPI_STATUS_IGNORE);
    double scale = 1 / sqrt(all[1]); /* of the step before: the length matters to nobody else */
    sums[0] = sums[1] = 0;
    for (int i = 1; i <= n; i++) {
      sums[0] += x[i] * y[i];
      sums[1] += x[i] * x[i];
      x[i] = y[i] * scale;
    }
    MPI_Iallreduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &sum);
  }
  MPI_Wait(&sum, MPI_STATUS_IGNORE);
  if (rank == 0) {
    double found = all[0] / all[1], want = 2 + 2 * cos(acos(-1) / (ORDER + 1));
    printf("largest eigenvalue %.6f by %d processes: %s\n", found, size, fabs(found - want) < 1e-6 ? "right" : "wrong");
  }
  free(x);
  free(y);
  MPI_Finalize();
  return 0;
}
