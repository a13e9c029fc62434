/* Conjugate gradients on the 2-D Poisson equation, split by rows over all ranks; it checks its own
 * result.
 *
 *   cg [N [TOLERANCE]]        grid of N x N points (default 96), relative residual (default 1e-10)
 *
 * The right-hand side is made from a known solution u, so the error of what the solver finds is
 * known exactly. Each iteration exchanges one row with the neighbours (point to point) and sums two
 * numbers over all ranks (Allreduce). Prints "verified" and exits with 0 only if the residual and
 * the error are small enough on every rank.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* my rows are first .. first+rows-1; each vector has one halo row on both sides */
static int n, rank, size, first, rows;

static double *vector(void) {
  double *v = calloc((size_t)(rows + 2) * n, sizeof *v);
  if (!v) MPI_Abort(MPI_COMM_WORLD, 3);
  return v;
}

static double dot(const double *x, const double *y) {
  double s = 0, all;
  for (long i = n; i < (long)(rows + 1) * n; i++) s += x[i] * y[i];
  MPI_Allreduce(&s, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void exchange(double *x) {
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Request q[4];
  MPI_Status status[4]; /* MPICH's MPI_STATUSES_IGNORE makes gcc 12 warn */
  MPI_Irecv(x, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &q[0]);
  MPI_Irecv(x + (long)(rows + 1) * n, n, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &q[1]);
  MPI_Isend(x + n, n, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &q[2]);
  MPI_Isend(x + (long)rows * n, n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &q[3]);
  MPI_Waitall(4, q, status);
}

/* y = A x, the five-point Laplacian with zero boundary */
static void apply(double *x, double *y) {
  exchange(x);
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < n; j++) {
      long k = (long)i * n + j;
      double s = 4 * x[k] - x[k - n] - x[k + n];
      if (j > 0) s -= x[k - 1];
      if (j < n - 1) s -= x[k + 1];
      y[k] = s;
    }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  n = argc > 1 ? atoi(argv[1]) : 96;
  double tolerance = argc > 2 ? atof(argv[2]) : 1e-10;
  if (n < size || tolerance <= 0) {
    if (rank == 0)
      fprintf(stderr, "cg: the grid needs at least one row per rank, and the tolerance must be positive\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  first = (int)((long)n * rank / size);
  rows = (int)((long)n * (rank + 1) / size) - first;

  double *u = vector(), *b = vector(), *x = vector(), *r = vector(), *p = vector(), *q = vector();
  const double h = 3.14159265358979323846 / (n + 1);
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < n; j++) { /* a smooth part and a rough one, the same whatever the number of ranks */
      unsigned v = (unsigned)(first + i) * 2654435761u ^ (unsigned)(j + 1) * 2246822519u;
      v = (v ^ v >> 15) * 3266489917u;
      u[(long)i * n + j] = sin(h * (first + i)) * sin(2 * h * (j + 1)) + 0.5 * ((v >> 8) * 0x1p-24 - 0.5);
    }
  apply(u, b);
  memcpy(r, b, sizeof(double) * (size_t)(rows + 2) * n);
  memcpy(p, r, sizeof(double) * (size_t)(rows + 2) * n);

  double start = MPI_Wtime(), rr = dot(r, r), norm = sqrt(rr);
  int iterations = 0, limit = 20 * n;
  while (sqrt(rr) > tolerance * norm && iterations < limit) {
    apply(p, q);
    double alpha = rr / dot(p, q);
    for (long i = n; i < (long)(rows + 1) * n; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    double next = dot(r, r), beta = next / rr;
    for (long i = n; i < (long)(rows + 1) * n; i++) p[i] = r[i] + beta * p[i];
    rr = next;
    iterations++;
  }
  double seconds = MPI_Wtime() - start;

  /* The check: the true residual, computed afresh, and the distance from the known solution. */
  apply(x, q);
  double worst[2] = {0, 0}, all[2];
  for (long i = n; i < (long)(rows + 1) * n; i++) {
    worst[0] = fmax(worst[0], fabs(b[i] - q[i]));
    worst[1] = fmax(worst[1], fabs(u[i] - x[i]));
  }
  MPI_Allreduce(worst, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  /* An error e has a residual A e, and the smallest eigenvalue of A is about 2 h^2: this bounds the
   * one by the other. */
  int good = all[0] <= 10 * tolerance * norm && all[1] <= 10 * tolerance * norm / (2 * h * h) && all[1] < 1e-3;
  if (rank == 0) {
    printf("cg: %d x %d points on %d ranks, %d iterations\n", n, n, size, iterations);
    printf("cg: largest residual %.1e, largest error %.1e: %s\n", all[0], all[1], good ? "verified" : "WRONG");
    fprintf(stderr, "cg: %.3f s, %.1f us per iteration\n", seconds, iterations ? 1e6 * seconds / iterations : 0.0);
  }
  free(u), free(b), free(x), free(r), free(p), free(q);
  MPI_Finalize();
  return good ? 0 : 1;
}
