/* Heat along a rod, on clusters that may be lost. Each process keeps a copy of its piece and one of
 * the piece of its ward, a process of another cluster. When a cluster is lost the others shrink the
 * communicator, assemble the rod of the last common copy, divide it again and go on.
 *
 *   survive [STEP RANKS]    the last RANKS processes end by SIGKILL before step STEP */
#include "../../include/mmpi-ft.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4096, STEPS = 2000, EVERY = 100, AHEAD = 1, TOWARDS_0 = 2, TOWARDS_N = 3 };

/* A copy of a piece of the rod: cells first to first + n - 1, before step `step`. */
typedef struct copy {
  int step, first, n;
  double cell[CELLS];
} copy;

static MPI_Comm comm; /* the living processes */
static int rank, size;
static double rod[CELLS + 2], next[CELLS + 2]; /* this process's piece, between two neighbours' cells */
static int first, n;
/* the last two copies of this process's piece, and of its ward's */
static copy mine[2], wards[2];
static int saved = -1; /* the step of the last copy that is complete here */

static double start_at(int cell) { return cell % 97 + (cell < CELLS / 3 ? 50 : 0); }

static void divide(void) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  first = (int)((long)CELLS * rank / size);
  n = (int)((long)CELLS * (rank + 1) / size) - first;
}

/* Each function below returns MPI_SUCCESS, or the code of an error that a lost cluster causes. */

/* Copies this process's piece, and gets the copy of the ward's. With clusters of the same size half
 * of all ranks further is another cluster. */
static int save(int step) {
  copy *own = &mine[step / EVERY % 2], *ward = &wards[step / EVERY % 2];
  int to = (rank + (size + 1) / 2) % size, from = (rank + size - (size + 1) / 2) % size;
  own->step = step, own->first = first, own->n = n;
  memcpy(own->cell, rod + 1, sizeof(double) * (size_t)n);
  int rc = MPI_Sendrecv(own, sizeof *own, MPI_BYTE, to, AHEAD, ward, sizeof *ward, MPI_BYTE, from, AHEAD, comm,
                        MPI_STATUS_IGNORE);
  if (!rc) rc = MPI_Barrier(comm); /* the copies are complete everywhere, or the last ones are used */
  if (!rc) saved = step;
  return rc;
}

static int exchange(void) {
  int low = rank ? rank - 1 : MPI_PROC_NULL, high = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  rod[0] = rod[1], rod[n + 1] = rod[n]; /* the ends of the rod are insulated */
  int rc = MPI_Sendrecv(&rod[1], 1, MPI_DOUBLE, low, TOWARDS_0, &rod[n + 1], 1, MPI_DOUBLE, high, TOWARDS_0, comm,
                        MPI_STATUS_IGNORE);
  return rc ? rc
            : MPI_Sendrecv(&rod[n], 1, MPI_DOUBLE, high, TOWARDS_N, &rod[0], 1, MPI_DOUBLE, low, TOWARDS_N, comm,
                           MPI_STATUS_IGNORE);
}

static int step_once(void) {
  int rc = exchange();
  for (int i = 1; i <= n && !rc; i++) next[i] = rod[i] + 0.25 * (rod[i - 1] - 2 * rod[i] + rod[i + 1]);
  if (!rc) memcpy(rod + 1, next + 1, sizeof(double) * (size_t)n);
  return rc;
}

static void put(const copy *c, int step, double *whole, double *times) {
  for (int i = 0; c->step == step && i < c->n; i++) whole[c->first + i] = c->cell[i], times[c->first + i] = 1;
}

/* Assembles the rod of the last copy that all living processes have, and divides it again. *step
 * becomes the step of the copy. */
static int restore(int *step) {
  static double whole[2 * CELLS]; /* the cells, and for each cell how many processes have it */
  double *times = whole + CELLS;
  memset(whole, 0, sizeof whole);
  int rc = MPI_Allreduce(&saved, step, 1, MPI_INT, MPI_MIN, comm), g = *step / EVERY % 2;
  if (rc) return rc;
  put(&wards[g], *step, whole, times);
  put(&mine[g], *step, whole, times);
  if ((rc = MPI_Allreduce(MPI_IN_PLACE, whole, 2 * CELLS, MPI_DOUBLE, MPI_SUM, comm))) return rc;
  divide();
  for (int i = 0; i < n; i++) {
    if (!times[first + i]) {
      fprintf(stderr, "a piece is lost with both of its copies\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    rod[1 + i] = whole[first + i] / times[first + i];
  }
  return save(*step);
}

/* Goes on without the processes that have failed. */
static void recover(int *step) {
  int rc;
  do {
    MPI_Comm alive, old = comm;
    MPIX_Comm_revoke(old); /* the others leave their calls, too */
    if (MPIX_Comm_shrink(old, &alive)) MPI_Abort(MPI_COMM_WORLD, 1);
    comm = alive;
    if (old != MPI_COMM_WORLD) MPI_Comm_free(&old);
    rc = restore(step);
  } while (rc);
  if (rank == 0) printf("%d processes go on from step %d\n", size, *step);
}

/* Compares this process's piece with that of a computation by one process. */
static int wrong(void) {
  static double a[CELLS + 2], b[CELLS + 2];
  int bad = 0;
  for (int i = 0; i < CELLS; i++) a[i + 1] = start_at(i);
  for (int s = 0; s < STEPS; s++) {
    a[0] = a[1], a[CELLS + 1] = a[CELLS];
    for (int i = 1; i <= CELLS; i++) b[i] = a[i] + 0.25 * (a[i - 1] - 2 * a[i] + a[i + 1]);
    memcpy(a + 1, b + 1, sizeof(double) * CELLS);
  }
  for (int i = 0; i < n; i++) bad += rod[1 + i] != a[1 + first + i];
  return bad;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  comm = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN); /* the communicators of the survivors inherit it */
  divide();
  int fatal = argc > 2 ? atoi(argv[1]) : -1, doomed = argc > 2 && rank >= size - atoi(argv[2]);
  for (int i = 0; i < n; i++) rod[1 + i] = start_at(first + i);
  int bad = 0, all_bad = 0;
  for (int step = 0, done = 0; !done;) {
    if (doomed && step == fatal) raise(SIGKILL);
    int rc = step % EVERY || step == saved ? MPI_SUCCESS : save(step);
    if (!rc && step < STEPS) {
      if (!(rc = step_once())) step++;
    } else if (!rc) {
      bad = wrong();
      done = !(rc = MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, comm));
    }
    if (rc) recover(&step);
  }
  if (rank == 0) printf("after %d steps %d processes have %s result\n", STEPS, size, all_bad ? "a wrong" : "the right");
  MPI_Finalize();
  return all_bad != 0;
}
