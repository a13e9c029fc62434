/* Windows under MPI_THREAD_MULTIPLE: several threads of every rank put, get, accumulate, lock, flush, fence, post and start at once, each on windows of
 * its own, and all on one window. What comes out is known beforehand, so the program needs no native run (Open MPI 4.1 makes no such window
 * natively where processes may not read each other's memory).
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 12, N = 4000, COUNTERS = 8 };

/* A thread's own windows: of longs for locks, and one for fences and groups. */
static struct own {
  MPI_Comm comm;
  MPI_Win locks, epochs;
  long *counters, *cells; /* cells: a block of N for each rank */
} own[THREADS];
static MPI_Win shared;
static long *mine; /* of the shared window: for each thread a counter and one more */

/* Fetch and add by all ranks, in an epoch that is open all the time: each ticket is drawn once. */
static void tickets(struct own *o) {
  long one = 1, ticket = -1, sum = 0, total = 0;
  MPI_Win_lock_all(0, o->locks);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, np - 1, 0, MPI_SUM, o->locks);
    MPI_Win_flush(np - 1, o->locks);
    sum += ticket;
  }
  MPI_Win_unlock_all(o->locks);
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, o->comm);
  long draws = (long)np * ROUNDS;
  SAME(total, draws * (draws - 1) / 2, "sum of the tickets");
}

/* Read, change, write: right only if the lock excludes others. */
static void exclusive(struct own *o, int t) {
  for (int i = 0; i < ROUNDS; i++) {
    int rank = (t + i) % np;
    long v = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, o->locks);
    MPI_Get(&v, 1, MPI_LONG, rank, 1, 1, MPI_LONG, o->locks);
    MPI_Win_flush(rank, o->locks);
    v += me + 1;
    MPI_Put(&v, 1, MPI_LONG, rank, 1, 1, MPI_LONG, o->locks);
    MPI_Win_unlock(rank, o->locks);
  }
  long sum = 0, part;
  MPI_Barrier(o->comm);
  MPI_Win_lock(MPI_LOCK_SHARED, me, 0, o->locks);
  part = o->counters[1];
  MPI_Win_unlock(me, o->locks);
  MPI_Allreduce(&part, &sum, 1, MPI_LONG, MPI_SUM, o->comm);
  SAME(sum, (long)ROUNDS * np * (np + 1) / 2, "sum under exclusive locks");
}

/* Long blocks: everybody puts into its block of the next rank between fences and reads it back. */
static void fences(struct own *o, int t) {
  int next = (me + 1) % np, left = (me + np - 1) % np;
  long *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
  for (int round = 0; round < ROUNDS / 3; round++) {
    fill(out, N * sizeof *out, 1000 * t + 100 * round + me);
    MPI_Win_fence(0, o->epochs);
    MPI_Put(out, N, MPI_LONG, next, (MPI_Aint)me * N, N, MPI_LONG, o->epochs);
    MPI_Win_fence(0, o->epochs);
    CHECK(filled(o->cells + left * N, N * sizeof *in, 1000 * t + 100 * round + left), "thread %d round %d: from the left", t, round);
    MPI_Get(in, N, MPI_LONG, next, (MPI_Aint)me * N, N, MPI_LONG, o->epochs);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, o->epochs);
    CHECK(filled(in, N * sizeof *in, 1000 * t + 100 * round + me), "thread %d round %d: read back", t, round);
    MPI_Barrier(o->comm);
  }
  free(out), free(in);
}

/* To the next rank, exposed to the one before. */
static void groups(struct own *o, int t) {
  int next = (me + 1) % np, left = (me + np - 1) % np;
  MPI_Group all, to, from;
  MPI_Comm_group(o->comm, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &left, &from);
  for (int round = 0; round < ROUNDS; round++) {
    long value = 10000 * t + 100 * round + me;
    int over = 0;
    MPI_Win_post(from, 0, o->epochs);
    MPI_Win_start(to, 0, o->epochs);
    MPI_Put(&value, 1, MPI_LONG, next, 5, 1, MPI_LONG, o->epochs);
    MPI_Win_complete(o->epochs);
    if (round % 2) MPI_Win_wait(o->epochs);
    else while (!over) MPI_Win_test(o->epochs, &over);
    SAME(o->cells[5], 10000 * t + 100 * round + left, "put by the one before");
  }
  MPI_Group_free(&all), MPI_Group_free(&to), MPI_Group_free(&from);
}

/* All threads in one window and one epoch, with requests and messages in between. */
static void together(struct own *o, int t) {
  int next = (me + 1) % np, left = (me + np - 1) % np;
  for (int i = 0; i < ROUNDS; i++) {
    int rank = (me + t + i) % np, x = i, y = -1;
    long add = 1 + t, was = -1, set = 1000 * t + 10 * i + me, got = -1;
    MPI_Request r;
    MPI_Accumulate(&add, 1, MPI_LONG, rank, 2 * t, 1, MPI_LONG, MPI_SUM, shared);
    MPI_Win_flush(rank, shared);
    MPI_Get_accumulate(NULL, 0, MPI_LONG, &was, 1, MPI_LONG, rank, 2 * t, 1, MPI_LONG, MPI_NO_OP, shared);
    MPI_Win_flush_local(rank, shared);
    CHECK(was >= add && was <= add * np * ROUNDS, "fetched %ld", was);
    MPI_Sendrecv(&x, 1, MPI_INT, next, t, &y, 1, MPI_INT, left, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(y, i, "received");
    MPI_Rput(&set, 1, MPI_LONG, next, 2 * t + 1, 1, MPI_LONG, shared, &r); /* nobody else has that one */
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_flush(next, shared);
    MPI_Rget(&got, 1, MPI_LONG, next, 2 * t + 1, 1, MPI_LONG, shared, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    SAME(got, set, "put and got back");
  }
  (void)o;
}

static void *work(void *arg) {
  int t = (int)(long)arg;
  tickets(&own[t]);
  together(&own[t], t);
  exclusive(&own[t], t);
  fences(&own[t], t);
  groups(&own[t], t);
  together(&own[t], t);
  return NULL;
}

int main(int argc, char **argv) {
  int got;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  SAME(got, MPI_THREAD_MULTIPLE, "the level granted");
  for (int t = 0; t < THREADS; t++) {
    struct own *o = &own[t];
    MPI_Comm_dup(MPI_COMM_WORLD, &o->comm);
    MPI_Win_allocate(COUNTERS * sizeof *o->counters, sizeof *o->counters, MPI_INFO_NULL, o->comm, &o->counters, &o->locks);
    MPI_Win_allocate((MPI_Aint)np * N * sizeof *o->cells, sizeof *o->cells, MPI_INFO_NULL, o->comm, &o->cells, &o->epochs);
    memset(o->counters, 0, COUNTERS * sizeof *o->counters);
  }
  MPI_Win_allocate(2 * THREADS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &shared);
  memset(mine, 0, 2 * THREADS * sizeof *mine);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, shared);
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)(long)t);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  MPI_Win_unlock_all(shared);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int t = 0; t < THREADS; t++) {
    long sum = 0;
    MPI_Reduce(&mine[2 * t], &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0) SAME(sum, 2L * ROUNDS * np * (1 + t), "sum of a thread's accumulates");
    MPI_Win_free(&own[t].locks), MPI_Win_free(&own[t].epochs);
    MPI_Comm_free(&own[t].comm);
  }
  MPI_Win_free(&shared);
  return finish();
}
