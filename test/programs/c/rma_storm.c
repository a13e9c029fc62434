/* Many operations on windows at once, each of few bytes: by several threads on one window and on
 * windows of their own, and atomic ones by all ranks on one. With a number it makes so many of
 * each, and prints the time of each kind on standard error.
 *
 *   rma_storm [operations of a thread] */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, CELLS = 64, BURST = 10 };

static int turns = 200, timed;
static MPI_Win shared, own[THREADS];
static long *cells, *mine[THREADS];

static double begun;
static void begin(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  begun = MPI_Wtime();
}
static void ended(const char *what) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (timed && me == 0) fprintf(stderr, "%-40s %8.3f ms\n", what, 1e3 * (MPI_Wtime() - begun));
}

/* Gets in one window and one epoch: each thread waits for its own. */
static void *gets(void *arg) {
  int t = (int)(long)arg;
  for (int i = 0; i < turns; i++) {
    long v = -1;
    int target = (me + 1 + i % np) % np;
    MPI_Get(&v, 1, MPI_LONG, target, t, 1, MPI_LONG, shared);
    MPI_Win_flush(target, shared);
    SAME(v, 1000 * target + t, "got by a thread");
  }
  return NULL;
}

/* Puts and gets with locks, in a window of each thread. */
static void *locks(void *arg) {
  int t = (int)(long)arg;
  for (int i = 0; i < turns; i++) {
    long out = 10 * i + t, in = -1;
    int target = (me + 1 + i % np) % np;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, own[t]);
    MPI_Put(&out, 1, MPI_LONG, target, me, 1, MPI_LONG, own[t]); /* no other rank uses that element */
    MPI_Win_flush(target, own[t]);
    MPI_Get(&in, 1, MPI_LONG, target, me, 1, MPI_LONG, own[t]);
    MPI_Win_unlock(target, own[t]);
    SAME(in, out, "got what was put under a lock");
  }
  return NULL;
}

static void by_threads(void *work(void *), const char *what) {
  pthread_t threads[THREADS];
  begin();
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)(long)t);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  ended(what);
}

/* Reads and adds, without waiting for each: no two operations get the same number. */
static void bursts(void) {
  long one[BURST], *was = malloc(sizeof *was * BURST * turns);
  for (int i = 0; i < BURST; i++) one[i] = 1;
  begin();
  MPI_Win_lock_all(0, shared);
  for (int i = 0; i < turns; i++)
    MPI_Get_accumulate(one, BURST, MPI_LONG, was + BURST * i, BURST, MPI_LONG, np - 1, CELLS - BURST, BURST, MPI_LONG,
                       MPI_SUM, shared);
  MPI_Win_unlock_all(shared);
  ended("get_accumulate without waiting");
  long sum[2] = {0, 0}, all[2];
  for (int i = 0; i < BURST * turns; i++) sum[i % 2] += was[i];
  MPI_Allreduce(sum, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  long n = (long)np * turns;
  for (int i = 0; i < 2; i++) SAME(all[i], BURST / 2 * (n * (n - 1) / 2), "sum of what was read");
  for (int i = 1; i < turns; i++) CHECK(was[BURST * i] > was[BURST * (i - 1)], "in order");
  free(was);
}

/* Does the same with a flush after each, and with locks. */
static void tickets(void) {
  long one = 1, ticket = -1, sum = 0, total, n = (long)np * turns;
  begin();
  MPI_Win_lock_all(0, shared);
  for (int i = 0; i < turns; i++) {
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, CELLS - 20, MPI_SUM, shared);
    MPI_Win_flush(0, shared);
    sum += ticket;
  }
  MPI_Win_unlock_all(shared);
  ended("fetch_and_op and flush");
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  SAME(total, n * (n - 1) / 2, "sum of the tickets");
  begin();
  for (int i = 0; i < turns; i++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared);
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, CELLS - 21, MPI_SUM, shared);
    MPI_Win_unlock(0, shared);
  }
  ended("lock, fetch_and_op, unlock");
  begin();
  MPI_Win_lock_all(0, shared);
  for (int i = 0; i < turns; i++) {
    long was = 1, new, seen;
    do { /* a lock of the program's own */
      new = 1, seen = 0;
      MPI_Compare_and_swap(&new, &seen, &was, MPI_LONG, 0, CELLS - 22, shared);
      MPI_Win_flush(0, shared);
    } while (was);
    new = 0;
    MPI_Accumulate(&new, 1, MPI_LONG, 0, CELLS - 22, 1, MPI_LONG, MPI_REPLACE, shared);
    MPI_Win_flush(0, shared);
  }
  MPI_Win_unlock_all(shared);
  ended("compare_and_swap until it holds");
}

int main(int argc, char **argv) {
  int got;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  SAME(got, MPI_THREAD_MULTIPLE, "the level granted");
  if (argc > 1) turns = atoi(argv[1]), timed = 1;
  MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &shared);
  for (int i = 0; i < CELLS; i++) cells[i] = i < THREADS ? 1000 * me + i : 0;
  for (int t = 0; t < THREADS; t++)
    MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &mine[t], &own[t]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, shared);
  by_threads(gets, "get and flush by threads");
  MPI_Win_unlock_all(shared);
  by_threads(locks, "lock, put, get, unlock by threads");
  bursts();
  tickets();
  for (int t = 0; t < THREADS; t++) MPI_Win_free(&own[t]);
  MPI_Win_free(&shared);
  line("done");
  return finish();
}
