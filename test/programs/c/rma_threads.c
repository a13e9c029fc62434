/* Windows under MPI_THREAD_MULTIPLE: several threads of every rank put, get, accumulate, lock,
 * flush, fence, post, start, make and free at once, each on windows of its own, and all on one
 * window. The results are known beforehand, so the program needs no native run (Open MPI 4.1 makes
 * no such window natively where processes may not read each other's memory).
 *
 *   rma_threads [inside]     of all processes, or of those of each host (zipped: inside a
 * cluster) */
#include "check.h"
#include <limits.h>
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 12, N = 4000, COUNTERS = 8, TURNS = 4 * ROUNDS * THREADS };

static MPI_Comm everyone; /* the processes that take part, their number and this process's rank */
static int size, rank;

/* A thread's own windows: of longs for locks, and one for fences and groups. */
static struct own {
  MPI_Comm comm;
  MPI_Win locks, epochs;
  long *counters, *cells; /* cells: a block of N for each rank */
} own[THREADS];
static MPI_Win shared, several;
static long *mine; /* of the shared window: for each thread a counter and one more */
static long *sums; /* of the other window: one for each way to add */

/* Fetches and adds from all ranks, in an epoch that stays open: each ticket is drawn once. */
static void tickets(struct own *o) {
  long one = 1, ticket = -1, sum = 0, total = 0;
  MPI_Win_lock_all(0, o->locks);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, size - 1, 0, MPI_SUM, o->locks);
    MPI_Win_flush(size - 1, o->locks);
    sum += ticket;
  }
  MPI_Win_unlock_all(o->locks);
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, o->comm);
  long draws = (long)size * ROUNDS;
  SAME(total, draws * (draws - 1) / 2, "sum of the tickets");
}

/* Reads, changes and writes: the result is correct only if the lock excludes others. */
static void exclusive(struct own *o, int t) {
  for (int i = 0; i < ROUNDS; i++) {
    int target = (t + i) % size;
    long v = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, o->locks);
    MPI_Get(&v, 1, MPI_LONG, target, 1, 1, MPI_LONG, o->locks);
    MPI_Win_flush(target, o->locks);
    v += rank + 1;
    MPI_Put(&v, 1, MPI_LONG, target, 1, 1, MPI_LONG, o->locks);
    MPI_Win_unlock(target, o->locks);
  }
  long sum = 0, part;
  MPI_Barrier(o->comm);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, o->locks);
  part = o->counters[1];
  MPI_Win_unlock(rank, o->locks);
  MPI_Allreduce(&part, &sum, 1, MPI_LONG, MPI_SUM, o->comm);
  SAME(sum, (long)ROUNDS * size * (size + 1) / 2, "sum under exclusive locks");
}

/* Lets each rank put a long block into the next rank's memory between fences, and read it back. */
static void fences(struct own *o, int t) {
  int next = (rank + 1) % size, left = (rank + size - 1) % size;
  long *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
  for (int round = 0; round < ROUNDS / 3; round++) {
    fill(out, N * sizeof *out, 1000 * t + 100 * round + rank);
    MPI_Win_fence(0, o->epochs);
    MPI_Put(out, N, MPI_LONG, next, (MPI_Aint)rank * N, N, MPI_LONG, o->epochs);
    MPI_Win_fence(0, o->epochs);
    CHECK(filled(o->cells + left * N, N * sizeof *in, 1000 * t + 100 * round + left),
          "thread %d round %d: from the left", t, round);
    MPI_Get(in, N, MPI_LONG, next, (MPI_Aint)rank * N, N, MPI_LONG, o->epochs);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, o->epochs);
    CHECK(filled(in, N * sizeof *in, 1000 * t + 100 * round + rank), "thread %d round %d: read back", t, round);
    MPI_Barrier(o->comm);
  }
  free(out), free(in);
}

/* Accesses the next rank, and exposes memory to the previous one. */
static void groups(struct own *o, int t) {
  int next = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Group all, to, from;
  MPI_Comm_group(o->comm, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &left, &from);
  for (int round = 0; round < ROUNDS; round++) {
    long value = 10000 * t + 100 * round + rank;
    int over = 0;
    MPI_Win_post(from, 0, o->epochs);
    MPI_Win_start(to, 0, o->epochs);
    MPI_Put(&value, 1, MPI_LONG, next, 5, 1, MPI_LONG, o->epochs);
    MPI_Win_complete(o->epochs);
    if (round % 2) MPI_Win_wait(o->epochs);
    else
      while (!over) MPI_Win_test(o->epochs, &over);
    SAME(o->cells[5], 10000 * t + 100 * round + left, "put by the one before");
  }
  MPI_Group_free(&all), MPI_Group_free(&to), MPI_Group_free(&from);
}

/* Uses one window and one epoch from all threads, with requests and messages in between. */
static void together(struct own *o, int t) {
  int next = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < ROUNDS; i++) {
    int target = (rank + t + i) % size, x = i, y = -1;
    long add = 1 + t, was = -1, set = 1000 * t + 10 * i + rank, got = -1;
    MPI_Request r;
    MPI_Accumulate(&add, 1, MPI_LONG, target, 2 * t, 1, MPI_LONG, MPI_SUM, shared);
    MPI_Win_flush(target, shared);
    MPI_Get_accumulate(NULL, 0, MPI_LONG, &was, 1, MPI_LONG, target, 2 * t, 1, MPI_LONG, MPI_NO_OP, shared);
    MPI_Win_flush_local(target, shared);
    CHECK(was >= add && was <= 2 * add * size * ROUNDS, "fetched %ld", was);
    MPI_Sendrecv(&x, 1, MPI_INT, next, t, &y, 1, MPI_INT, left, t, everyone, MPI_STATUS_IGNORE);
    SAME(y, i, "received");
    /* no other thread uses that element */
    MPI_Rput(&set, 1, MPI_LONG, next, 2 * t + 1, 1, MPI_LONG, shared, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_flush(next, shared);
    MPI_Rget(&got, 1, MPI_LONG, next, 2 * t + 1, 1, MPI_LONG, shared, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    SAME(got, set, "put and got back");
  }
  (void)o;
}

/* Uses one window from all threads, each with the lock of another target at a time. */
static void targets(int t) {
  for (int k = t; k < TURNS; k += THREADS) {
    int target = k % (size * THREADS); /* no two threads of a process have the same one */
    long v = -1, add = rank + 1, was = -1;
    if (target >= size) continue;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, several);
    MPI_Get(&v, 1, MPI_LONG, target, 0, 1, MPI_LONG, several);
    MPI_Win_flush(target, several);
    v += add;
    MPI_Put(&v, 1, MPI_LONG, target, 0, 1, MPI_LONG, several);
    MPI_Win_unlock(target, several);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, several);
    MPI_Get_accumulate(&add, 1, MPI_LONG, &was, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, several);
    MPI_Win_unlock(target, several);
    CHECK(was >= 0 && v >= add, "under a lock: %ld and %ld", was, v);
  }
}

/* An attribute of a window that is being freed is deleted while the handle is still that window. */
static int passing_key = MPI_KEYVAL_INVALID;
static int gone(MPI_Win w, int key, void *value, void *extra) {
  MPI_Group g;
  int n = -1;
  (void)key, (void)extra;
  MPI_Win_get_group(w, &g);
  MPI_Group_size(g, &n);
  MPI_Group_free(&g);
  SAME(n, size, "processes of a window that is being freed");
  *(int *)value = 1;
  return MPI_SUCCESS;
}

/* Makes and frees windows while other threads use and make theirs. */
static void passing(struct own *o, int t) {
  int next = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < ROUNDS; i++) {
    long *cell, value = 100 * t + i + 1000 * rank;
    int asked = 0;
    MPI_Win w;
    MPI_Win_allocate(sizeof *cell, sizeof *cell, MPI_INFO_NULL, o->comm, &cell, &w);
    MPI_Win_set_attr(w, passing_key, &asked);
    MPI_Win_lock_all(0, w);
    MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, w);
    MPI_Win_unlock_all(w);
    MPI_Barrier(o->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
    SAME(*cell, 100 * t + i + 1000 * left, "put into a window that is about to go");
    MPI_Win_unlock(rank, w);
    MPI_Win_free(&w);
    SAME(asked, 1, "attributes deleted");
  }
}

/* Frees windows of all processes in one thread, while the others get the handles for their own
 * windows, whose units exceed an int: those libmmpi leaves to the library. */
static volatile int passed;
static void handles(struct own *o, int t) {
  for (int i = 0; t == 0 && i < 4 * ROUNDS; i++) {
    long *cell;
    MPI_Win w;
    MPI_Win_allocate(3 * sizeof *cell, sizeof *cell, MPI_INFO_NULL, o->comm, &cell, &w);
    MPI_Win_free(&w);
  }
  passed += t == 0;
#if MPI_VERSION >= 4
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40100000 /* asserts that the window is gone */
  const MPI_Aint unit = INT_MAX;
#else
  const MPI_Aint unit = (MPI_Aint)INT_MAX + 1;
#endif
  while (!passed) {
    long cell;
    MPI_Aint *bytes = NULL;
    int flag = 0;
    MPI_Win w;
    MPI_Win_create_c(&cell, sizeof cell, unit, MPI_INFO_NULL, MPI_COMM_SELF, &w);
    MPI_Win_get_attr(w, MPI_WIN_SIZE, &bytes, &flag);
    SAME(flag ? *bytes : -1, (MPI_Aint)sizeof cell, "size of an own window");
    MPI_Win_free(&w);
  }
#endif
}

static void *work(void *arg) {
  int t = (int)(long)arg;
  tickets(&own[t]);
  together(&own[t], t);
  exclusive(&own[t], t);
  fences(&own[t], t);
  groups(&own[t], t);
  together(&own[t], t);
  targets(t);
  passing(&own[t], t);
  handles(&own[t], t);
  return NULL;
}

int main(int argc, char **argv) {
  int got;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  SAME(got, MPI_THREAD_MULTIPLE, "the level granted");
  if (argc > 1) MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &everyone);
  else MPI_Comm_dup(MPI_COMM_WORLD, &everyone);
  MPI_Comm_rank(everyone, &rank);
  MPI_Comm_size(everyone, &size);
  for (int t = 0; t < THREADS; t++) {
    struct own *o = &own[t];
    MPI_Comm_dup(everyone, &o->comm);
    MPI_Win_allocate(COUNTERS * sizeof *o->counters, sizeof *o->counters, MPI_INFO_NULL, o->comm, &o->counters,
                     &o->locks);
    MPI_Win_allocate((MPI_Aint)size * N * sizeof *o->cells, sizeof *o->cells, MPI_INFO_NULL, o->comm, &o->cells,
                     &o->epochs);
    memset(o->counters, 0, COUNTERS * sizeof *o->counters);
  }
  MPI_Win_allocate(2 * THREADS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, everyone, &mine, &shared);
  memset(mine, 0, 2 * THREADS * sizeof *mine);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, gone, &passing_key, NULL);
  MPI_Win_allocate(2 * sizeof *sums, sizeof *sums, MPI_INFO_NULL, everyone, &sums, &several);
  sums[0] = sums[1] = 0;
  MPI_Barrier(everyone);
  MPI_Win_lock_all(0, shared);
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)(long)t);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  MPI_Win_unlock_all(shared);
  MPI_Barrier(everyone);
  for (int t = 0; t < THREADS; t++) {
    long sum = 0;
    MPI_Reduce(&mine[2 * t], &sum, 1, MPI_LONG, MPI_SUM, 0, everyone);
    if (rank == 0) SAME(sum, 2L * ROUNDS * size * (1 + t), "sum of a thread's accumulates");
    MPI_Win_free(&own[t].locks), MPI_Win_free(&own[t].epochs);
    MPI_Comm_free(&own[t].comm);
  }
  /* the number of times that each rank adds its number, and the sum of the numbers */
  long times = 0, all = (long)size * (size + 1) / 2;
  for (int k = 0; k < TURNS; k++) times += k % (size * THREADS) == rank;
  SAME(sums[0], times * all, "sum under exclusive locks of several targets");
  SAME(sums[1], times * all, "sum of accumulates under shared locks of several targets");
  MPI_Win_free_keyval(&passing_key);
  MPI_Win_free(&several);
  MPI_Win_free(&shared);
  MPI_Comm_free(&everyone);
  return finish();
}
