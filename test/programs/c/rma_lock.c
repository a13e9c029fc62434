/* Windows with locks, while targets are in other calls or compute: counters, mutual exclusion,
 * compare and swap, accumulates against each other, flush, lock_all, requests. */
#include "check.h"

enum { ROUNDS = 20, N = 5000 };

static MPI_Win w;
static long *mine;

/* Synchronizes all ranks; none of them has to be in a call of the window. */
static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

static long get(int rank, int at) {
  long v = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
  MPI_Get(&v, 1, MPI_LONG, rank, at, 1, MPI_LONG, w);
  MPI_Win_unlock(rank, w);
  return v;
}

/* Clears this rank's own part, which it may access only under its lock. */
static void clear(void) {
  meet();
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, w);
  for (int i = 0; i < N; i++) mine[i] = 0;
  MPI_Win_unlock(me, w);
  meet();
}

/* Checks that every ticket is drawn once. */
static void tickets(void) {
  static int drawn[64 * ROUNDS];
  long one = 1, ticket;
  clear();
  memset(drawn, 0, sizeof drawn);
  MPI_Win_lock_all(0, w);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, np - 1, 3, MPI_SUM, w);
    MPI_Win_flush(np - 1, w);
    CHECK(ticket >= 0 && ticket < np * ROUNDS, "ticket %ld", ticket);
    if (ticket >= 0 && ticket < np * ROUNDS) drawn[ticket]++;
  }
  MPI_Win_unlock_all(w);
  MPI_Allreduce(MPI_IN_PLACE, drawn, np * ROUNDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < np * ROUNDS; i++) SAME(drawn[i], 1, "times a ticket was drawn");
  line("counter %ld", get(np - 1, 3));
}

/* Reads, changes and writes a value under an exclusive lock, of the first rank and of the last. */
static void exclusive(void) {
  clear();
  for (int i = 0; i < ROUNDS; i++) {
    int rank = i % 2 ? np - 1 : 0;
    long v = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w);
    MPI_Get(&v, 1, MPI_LONG, rank, 7, 1, MPI_LONG, w);
    MPI_Win_flush(rank, w);
    v += me + 1;
    MPI_Put(&v, 1, MPI_LONG, rank, 7, 1, MPI_LONG, w);
    MPI_Win_unlock(rank, w);
  }
  meet();
  line("under exclusive locks %ld %ld", get(0, 7), get(np - 1, 7));
}

/* Implements a lock with compare and swap. */
static void spin_lock(void) {
  long zero = 0, one = 1, was;
  clear();
  MPI_Win_lock_all(0, w);
  for (int i = 0; i < 3; i++) {
    do {
      MPI_Compare_and_swap(&one, &zero, &was, MPI_LONG, 0, 1, w);
      MPI_Win_flush(0, w);
    } while (was);
    long v;
    MPI_Get(&v, 1, MPI_LONG, 0, 2, 1, MPI_LONG, w);
    MPI_Win_flush(0, w);
    v += 1 + me;
    MPI_Put(&v, 1, MPI_LONG, 0, 2, 1, MPI_LONG, w);
    MPI_Win_flush(0, w);
    MPI_Compare_and_swap(&zero, &one, &was, MPI_LONG, 0, 1, w);
    MPI_Win_flush(0, w);
    SAME(was, 1, "the lock that I hold");
  }
  MPI_Win_unlock_all(w);
  meet();
  line("under a lock of compare and swap %ld", get(0, 2));
}

/* Checks long accumulates from all to all: no element loses one. */
static void contention(void) {
  static long out[N], in[N];
  clear();
  for (int i = 0; i < N; i++) out[i] = i + me;
  for (int round = 0; round < 3; round++)
    for (int r = 0; r < np; r++) {
      MPI_Win_lock(MPI_LOCK_SHARED, r, 0, w);
      MPI_Accumulate(out, N, MPI_LONG, r, 0, N, MPI_LONG, MPI_SUM, w);
      MPI_Get_accumulate(out, N, MPI_LONG, in, N, MPI_LONG, r, 0, N, MPI_LONG, MPI_SUM, w);
      MPI_Win_flush_local(r, w);
      for (int i = 0; i < N; i++) CHECK(in[i] >= i + me, "fetched %ld", in[i]);
      MPI_Win_unlock(r, w);
    }
  meet();
  MPI_Win_lock(MPI_LOCK_SHARED, me, 0, w);
  for (int i = 0; i < N; i++) SAME(mine[i], 6L * (np * i + np * (np - 1) / 2), "sum");
  MPI_Win_unlock(me, w);
}

/* Mixes requests with other operations. */
static void requests(void) {
  static long out[N], in[N], old[N];
  MPI_Request r[5];
  MPI_Status status[5];
  int next = (me + 1) % np, x = me, y = -1;
  clear();
  for (int i = 0; i < N; i++) out[i] = 100 * me + i;
  MPI_Win_lock_all(0, w);
  MPI_Rput(out, N, MPI_LONG, next, 0, N, MPI_LONG, w, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Win_flush(next, w);
  meet();
  MPI_Rget(in, N, MPI_LONG, next, 0, N, MPI_LONG, w, &r[0]);
  MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &r[1]);
  MPI_Isend(&x, 1, MPI_INT, next, 9, MPI_COMM_WORLD, &r[2]);
  MPI_Rget(in, 0, MPI_LONG, MPI_PROC_NULL, 0, 0, MPI_LONG, w, &r[3]);
  MPI_Rput(out, 0, MPI_LONG, next, 0, 0, MPI_LONG, w, &r[4]);
  SAME(MPI_Waitall(5, r, status), MPI_SUCCESS, "Waitall");
  SAME(y, (me + np - 1) % np, "received meanwhile");
  for (int i = 0; i < N; i++) SAME(in[i], out[i], "got");
  meet();
  MPI_Rget_accumulate(out, N, MPI_LONG, old, N, MPI_LONG, next, 0, N, MPI_LONG, MPI_MAX, w, &r[0]);
  MPI_Raccumulate(out, N, MPI_LONG, next, 0, N, MPI_LONG, MPI_SUM, w, &r[1]);
  int left = 2, flag;
  while (left) {
    int at;
    MPI_Testany(2, r, &at, &flag, MPI_STATUS_IGNORE);
    if (flag && at != MPI_UNDEFINED) left--;
  }
  for (int i = 0; i < N; i++) SAME(old[i], out[i], "fetched");
  MPI_Win_flush_all(w);
  MPI_Get_accumulate(NULL, 0, MPI_LONG, in, N, MPI_LONG, next, 0, N, MPI_LONG, MPI_NO_OP, w);
  MPI_Win_flush_local_all(w);
  for (int i = 0; i < N; i++) SAME(in[i], 2 * out[i], "after accumulate");
  MPI_Win_sync(w);
  MPI_Win_unlock_all(w);
}

/* Lets the target compute, or be in a call of another kind, until the origin ends it: the target is
 * served meanwhile. */
static void absent(void) {
  int flag = 0, token = 0;
  clear();
  if (me == 0) {
    while (!flag) { /* computes, and tests rarely */
      for (volatile int i = 0; i < 100000; i++) {
      }
      MPI_Iprobe(np - 1, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&token, 1, MPI_INT, np - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(token, 17, "token");
  } else if (me == np - 1) {
    for (long i = 1; i <= 10; i++) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w);
      MPI_Accumulate(&i, 1, MPI_LONG, 0, 11, 1, MPI_LONG, MPI_SUM, w);
      MPI_Win_unlock(0, w);
    }
    token = 17;
    MPI_Send(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  }
  meet();
  line("absent target %ld", get(0, 11));
}

/* Checks MPI_MODE_NOCHECK, by which the program promises that no conflicting lock is requested:
 * ranks in turn, or all together. */
static void unchecked(void) {
  long one = 1, v = -1;
  clear();
  for (int turn = 0; turn < np; turn++) {
    if (turn == me) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK, w);
      MPI_Get(&v, 1, MPI_LONG, 0, 5, 1, MPI_LONG, w);
      MPI_Win_flush(0, w);
      SAME(v, turn, "turn");
      v++;
      MPI_Put(&v, 1, MPI_LONG, 0, 5, 1, MPI_LONG, w);
      MPI_Win_unlock(0, w);
    }
    meet();
  }
  MPI_Win_lock_all(MPI_MODE_NOCHECK, w);
  for (int r = 0; r < np; r++) MPI_Accumulate(&one, 1, MPI_LONG, r, 6, 1, MPI_LONG, MPI_SUM, w);
  MPI_Win_flush_all(w);
  MPI_Accumulate(&one, 1, MPI_LONG, 0, 6, 1, MPI_LONG, MPI_SUM, w);
  MPI_Win_unlock_all(w);
  meet();
  line("unchecked locks %ld %ld %ld", get(0, 5), get(0, 6), get(np - 1, 6));
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Win_allocate(N * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
  tickets();
  exclusive();
  spin_lock();
  contention();
  requests();
  absent();
  unchecked();
  meet();
  MPI_Win_free(&w);
  return finish();
}
