/* Windows on communicators inside a cluster (natively: of all ranks), while a rank that is waited
 * for must go on with MPI_COMM_WORLD: a receive from anybody that is posted has to match, and a
 * nonblocking collective to move on, although its process waits in a call of the window.
 *
 *   rma_inside [shared | KEY=VALUE]     windows of shared memory; an info key for them, which native libraries ignore
 *   rma_inside asks                     only what hangs in native libraries: asking without ever waiting
 */
#include "check.h"

enum { N = 3000, ROUNDS = 5 };
static MPI_Comm inside;
static int who, size, first; /* first: this is rank 0, and there is a rank 1 */
static MPI_Info info = MPI_INFO_NULL;
static int shared;

static MPI_Win window(long n, long **cells) {
  MPI_Win w;
  if (shared) MPI_Win_allocate_shared(n * sizeof **cells, sizeof **cells, info, inside, cells, &w);
  else MPI_Win_allocate(n * sizeof **cells, sizeof **cells, info, inside, cells, &w);
  memset(*cells, 0, n * sizeof **cells);
  MPI_Barrier(inside);
  return w;
}

/* Returns the rank in MPI_COMM_WORLD of rank r of `inside`. */
static int in_world(int r) {
  int rank;
  MPI_Group world, all;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(inside, &all);
  MPI_Group_translate_ranks(all, 1, &r, world, &rank);
  MPI_Group_free(&world), MPI_Group_free(&all);
  return rank;
}

/* Lets rank 0 wait for a post of rank 1, which first needs its message to be received by rank 0's
 * receive from MPI_ANY_SOURCE. */
static void start_waits(void) {
  long *cell;
  int x = 41, y = -1, zero = 0, one = 1;
  MPI_Win w = window(N, &cell);
  MPI_Request r;
  MPI_Group all, other;
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

/* Lets all ranks start and post, in a ring. */
static void ring(void) {
  long *cell;
  int next = (who + 1) % size, left = (who + size - 1) % size;
  MPI_Win w = window(1, &cell);
  MPI_Group all, to, from;
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

/* The ways in which rank 0 takes the lock of rank 1. */
enum manner { ONE, ALL };
static void take(enum manner how, int type, MPI_Win w) {
  if (how == ALL) MPI_Win_lock_all(0, w);
  else MPI_Win_lock(type, 1, 0, w);
}
static void leave(enum manner how, MPI_Win w) {
  if (how == ALL) MPI_Win_unlock_all(w);
  else MPI_Win_unlock(1, w);
}

/* Lets rank 1 hold its own lock until rank 0's earlier operations have completed: its receive from
 * MPI_ANY_SOURCE and its part in a barrier of all. Rank 0 waits for the lock. */
static void lock_waits(enum manner how) {
  long *cell, add = 5, got = -1;
  int x = 42, y = -1;
  MPI_Win w = window(N, &cell);
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

/* Lets rank 0 operate on rank 1, which waits for all of MPI_COMM_WORLD meanwhile, and then for a
 * message from MPI_ANY_SOURCE. */
static void target_waits(enum manner how) {
  long *cell;
  MPI_Win w = window(N, &cell);
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

/* Lets rank 1 test repeatedly, without waiting in a call, whether rank 0 has put a value. Rank 0
 * does so once rank 1 has received its message by a receive from MPI_ANY_SOURCE. */
static void tests(void) {
  long *cell, value = 9;
  int x = 43, y = -1, other = 1 - who, over = 0;
  MPI_Win w = window(N, &cell);
  MPI_Request r;
  MPI_Group all, peer;
  MPI_Comm_group(inside, &all);
  if (who < 2) MPI_Group_incl(all, 1, &other, &peer);
  if (who == 0) {
    MPI_Ssend(&x, 1, MPI_INT, in_world(1), 70, MPI_COMM_WORLD);
    MPI_Win_start(peer, 0, w);
    MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, w);
    MPI_Win_complete(w);
  } else if (who == 1) {
    MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 70, MPI_COMM_WORLD, &r);
    MPI_Win_post(peer, 0, w);
    while (!over) MPI_Win_test(w, &over);
    SAME(cell[0], value, "put");
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    SAME(y, x, "the message");
  }
  if (who < 2) MPI_Group_free(&peer);
  MPI_Group_free(&all);
  MPI_Win_free(&w);
}

/* Does the same with a read of rank 1's own memory, which completes at once; Open MPI 4.1 and MPICH
 * 4.0 make no progress in it. */
static void looks(void) {
  long *cell, one = 1, nothing = 0, seen;
  int x = 44, y = -1;
  MPI_Win w = window(N, &cell);
  MPI_Request r;
  MPI_Win_lock_all(0, w);
  for (long turn = 1; turn <= 2 * ROUNDS; turn++) {
    if (who == 0) {
      MPI_Ssend(&x, 1, MPI_INT, in_world(1), 71, MPI_COMM_WORLD);
      MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, w);
      MPI_Win_flush(1, w);
    } else if (who == 1) {
      MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 71, MPI_COMM_WORLD, &r);
      do {
        if (turn % 2) {
          MPI_Fetch_and_op(&nothing, &seen, MPI_LONG, 1, 0, MPI_NO_OP, w);
          MPI_Win_flush(1, w);
        } else {
          MPI_Request q;
          MPI_Rget(&seen, 1, MPI_LONG, 1, 0, 1, MPI_LONG, w, &q);
          MPI_Wait(&q, MPI_STATUS_IGNORE);
        }
      } while (seen < turn);
      SAME(seen, turn, "times added");
      MPI_Wait(&r, MPI_STATUS_IGNORE);
      SAME(y, x, "the message");
    }
  }
  MPI_Win_unlock_all(w);
  MPI_Win_free(&w);
}

/* Moves long blocks with fences and with locks, and checks a window's attributes. */
static void all_to_all(void) {
  long *cells, *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in), *base = NULL;
  int flag, members;
  MPI_Win w = window((long)size * N, &cells);
  MPI_Group g;
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

static void all(void) {
  if (size > 1) start_waits();
  ring();
  for (enum manner how = ONE; how <= ALL; how++) {
    lock_waits(how);
    target_waits(how);
  }
  all_to_all();
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  char *value = argc > 1 ? strchr(argv[1], '=') : NULL;
  shared = argc > 1 && !strcmp(argv[1], "shared");
  if (value) {
    *value = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, argv[1], value + 1);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &inside);
  MPI_Comm_rank(inside, &who);
  MPI_Comm_size(inside, &size);
  first = who == 0 && size > 1;
  if (argc < 2 || strcmp(argv[1], "asks")) all();
  else if (size > 1) tests(), looks();
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  MPI_Comm_free(&inside);
  return finish();
}
