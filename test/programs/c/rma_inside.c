/* Windows on communicators inside a cluster (natively: of all ranks), while a rank that is waited for must go on with MPI_COMM_WORLD: a receive from anybody that is posted
 * has to match, and a nonblocking collective to move on, although its process waits in a call of the window.
 *
 *   rma_inside [KEY=VALUE]     an info key for the windows, which native libraries ignore
 */
#include "check.h"

enum { N = 3000, ROUNDS = 5 };
static MPI_Comm inside;
static int who, size, first; /* first: rank 0, and there is a rank 1 */
static MPI_Info info = MPI_INFO_NULL;

/* The rank in MPI_COMM_WORLD of rank r inside. */
static int in_world(int r) {
  int rank;
  MPI_Group world, all;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(inside, &all);
  MPI_Group_translate_ranks(all, 1, &r, world, &rank);
  MPI_Group_free(&world), MPI_Group_free(&all);
  return rank;
}

/* Before rank 0 can start, rank 1 wants its message to be received, which rank 0 has asked for from anybody. */
static void start_waits(void) {
  long *cell;
  int x = 41, y = -1, zero = 0, one = 1;
  MPI_Win w;
  MPI_Request r;
  MPI_Group all, other;
  MPI_Win_allocate(N * sizeof *cell, sizeof *cell, info, inside, &cell, &w);
  MPI_Comm_group(inside, &all);
  if (who < 2) MPI_Group_incl(all, 1, who ? &zero : &one, &other);
  for (int round = 0; round < ROUNDS; round++) {
    long value[2] = {100 + round, 7};
    MPI_Barrier(inside);
    if (who == 0) {
      MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 20 + round, MPI_COMM_WORLD, &r);
      MPI_Barrier(inside);
      MPI_Win_start(other, 0, w);
      MPI_Put(value, 2, MPI_LONG, 1, 3, 2, MPI_LONG, w);
      MPI_Win_complete(w);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
      SAME(y, x, "the message");
    } else {
      MPI_Barrier(inside);
    }
    if (who == 1) {
      MPI_Ssend(&x, 1, MPI_INT, in_world(0), 20 + round, MPI_COMM_WORLD);
      MPI_Win_post(other, 0, w);
      MPI_Win_wait(w);
      SAME(cell[3], 100 + round, "put");
      SAME(cell[4], 7, "put");
    }
  }
  if (who < 2) MPI_Group_free(&other);
  MPI_Group_free(&all);
  MPI_Win_free(&w);
}

/* Everybody starts and posts: a ring. */
static void ring(void) {
  long *cell;
  int next = (who + 1) % size, left = (who + size - 1) % size;
  MPI_Win w;
  MPI_Group all, to, from;
  MPI_Win_allocate(sizeof *cell, sizeof *cell, info, inside, &cell, &w);
  MPI_Comm_group(inside, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &left, &from);
  for (long round = 0; round < ROUNDS; round++) {
    long value = 10 * round + who;
    MPI_Win_post(from, 0, w);
    MPI_Win_start(to, 0, w);
    MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, w);
    MPI_Win_complete(w);
    MPI_Win_wait(w);
    SAME(*cell, 10 * round + left, "from the left");
  }
  MPI_Group_free(&all), MPI_Group_free(&to), MPI_Group_free(&from);
  MPI_Win_free(&w);
}

/* How rank 0 takes the lock of rank 1. */
enum manner { ONE, ALL };
static void take(enum manner how, int type, MPI_Win w) {
  if (how == ALL) MPI_Win_lock_all(0, w);
  else MPI_Win_lock(type, 1, 0, w);
}
static void leave(enum manner how, MPI_Win w) {
  if (how == ALL) MPI_Win_unlock_all(w);
  else MPI_Win_unlock(1, w);
}

/* Rank 1 holds its own lock until what rank 0 has begun is over: its receive from anybody and its part in a barrier of all. Rank 0 waits for the lock. */
static void lock_waits(enum manner how) {
  long *cell, add = 5, got = -1;
  int x = 42, y = -1;
  MPI_Win w;
  MPI_Win_allocate(N * sizeof *cell, sizeof *cell, info, inside, &cell, &w);
  memset(cell, 0, N * sizeof *cell);
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Request receive, all;
    MPI_Barrier(inside);
    if (who == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, w);
    if (first) MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 40 + round, MPI_COMM_WORLD, &receive);
    MPI_Barrier(inside);
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    if (first) {
      take(how, MPI_LOCK_EXCLUSIVE, w);
      MPI_Accumulate(&add, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, w);
      MPI_Win_flush(1, w);
      MPI_Get(&got, 1, MPI_LONG, 1, 0, 1, MPI_LONG, w);
      leave(how, w);
      SAME(got, 6 * (round + 1), "sum under the lock");
      MPI_Wait(&receive, MPI_STATUS_IGNORE);
      SAME(y, x, "the message");
    } else if (who == 1) {
      MPI_Ssend(&x, 1, MPI_INT, in_world(0), 40 + round, MPI_COMM_WORLD);
      MPI_Wait(&all, MPI_STATUS_IGNORE);
      cell[0]++;
      MPI_Win_unlock(1, w);
    }
    MPI_Wait(&all, MPI_STATUS_IGNORE);
  }
  MPI_Win_free(&w);
}

/* Rank 0 operates on rank 1, which waits for all of MPI_COMM_WORLD meanwhile, and then for a message from anybody. */
static void target_waits(enum manner how) {
  long *cell;
  MPI_Win w;
  MPI_Win_allocate(N * sizeof *cell, sizeof *cell, info, inside, &cell, &w);
  memset(cell, 0, N * sizeof *cell);
  for (long round = 1; round <= ROUNDS; round++) {
    long out = 10 * round, in = -1, two = 2, was = -1, sum = -1;
    MPI_Barrier(inside);
    for (int step = 0; step < 2; step++) {
      if (first) {
        take(how, MPI_LOCK_SHARED, w);
        MPI_Put(&out, 1, MPI_LONG, 1, 7 + step, 1, MPI_LONG, w);
        MPI_Win_flush(1, w);
        MPI_Get(&in, 1, MPI_LONG, 1, 7 + step, 1, MPI_LONG, w);
        MPI_Win_flush_local(1, w);
        SAME(in, out, "put and got back");
        MPI_Fetch_and_op(&two, &was, MPI_LONG, 1, 3, MPI_SUM, w);
        leave(how, w);
        SAME(was, 4 * (round - 1) + 2 * step, "fetched");
      }
      if (step == 0) MPI_Barrier(MPI_COMM_WORLD);
      else if (first) MPI_Send(&was, 1, MPI_LONG, in_world(1), 60, MPI_COMM_WORLD);
      else if (who == 1) MPI_Recv(&sum, 1, MPI_LONG, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (who == 1) SAME(sum, 4 * round - 2, "the message");
  }
  MPI_Win_free(&w);
}

/* Long blocks by fences and by locks, and what a window says of itself. */
static void all_to_all(void) {
  long *cells, *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in), *base = NULL;
  int flag, members;
  MPI_Win w;
  MPI_Group g;
  MPI_Win_allocate((MPI_Aint)size * N * sizeof *cells, sizeof *cells, info, inside, &cells, &w);
  MPI_Win_get_attr(w, MPI_WIN_BASE, &base, &flag);
  CHECK(flag && base == cells, "WIN_BASE");
  MPI_Win_get_group(w, &g);
  MPI_Group_size(g, &members);
  SAME(members, size, "size of the window's group");
  MPI_Group_free(&g);
  fill(out, N * sizeof *out, who);
  MPI_Win_fence(0, w);
  for (int r = 0; r < size; r++) MPI_Put(out, N, MPI_LONG, r, (MPI_Aint)who * N, N, MPI_LONG, w);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  for (int r = 0; r < size; r++) CHECK(filled(cells + r * N, N * sizeof *in, r), "put by %d", r);
  MPI_Barrier(inside);
  for (int r = 0; r < size; r++) {
    MPI_Request q;
    MPI_Win_lock(MPI_LOCK_SHARED, r, 0, w);
    MPI_Rget(in, N, MPI_LONG, r, (MPI_Aint)who * N, N, MPI_LONG, w, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Win_unlock(r, w);
    CHECK(filled(in, N * sizeof *in, who), "got from %d", r);
  }
  MPI_Win_free(&w);
  free(out), free(in);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  if (argc > 1) {
    char *value = strchr(argv[1], '=');
    *value = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, argv[1], value + 1);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &inside);
  MPI_Comm_rank(inside, &who);
  MPI_Comm_size(inside, &size);
  first = who == 0 && size > 1;
  if (size > 1) start_waits();
  ring();
  for (enum manner how = ONE; how <= ALL; how++) {
    lock_waits(how);
    target_waits(how);
  }
  all_to_all();
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  MPI_Comm_free(&inside);
  return finish();
}
