/* Windows with MPI_Win_fence. Put, get and accumulate between all pairs; all ways to make a window;
 * attributes; sizes from 0 to more than fits one message; operations of one epoch to one target in
 * order; errors. */
#include "check.h"

#if MPI_VERSION >= 4
#define BIG(X) MPI_##X##_c
#else
#define BIG(X) MPI_##X
#endif

enum { N = 37 };

static MPI_Comm comm;

static void *attribute(MPI_Win w, int key) {
  void *value = NULL;
  int flag = 0;
  MPI_Win_get_attr(w, key, &value, &flag);
  CHECK(flag, "attribute %d", key);
  return value;
}

static void attributes(MPI_Win w, void *base, MPI_Aint bytes, int unit, int flavor) {
  if (flavor != MPI_WIN_FLAVOR_DYNAMIC) CHECK(attribute(w, MPI_WIN_BASE) == base, "base");
  SAME(*(MPI_Aint *)attribute(w, MPI_WIN_SIZE), bytes, "size");
  SAME(*(int *)attribute(w, MPI_WIN_DISP_UNIT), unit, "unit");
  SAME(*(int *)attribute(w, MPI_WIN_CREATE_FLAVOR), flavor, "flavor");
  int model = *(int *)attribute(w, MPI_WIN_MODEL);
  CHECK(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE, "model %d", model);
  MPI_Group g, h;
  int relation;
  MPI_Win_get_group(w, &g), MPI_Comm_group(comm, &h);
  MPI_Group_compare(g, h, &relation);
  SAME(relation, MPI_IDENT, "the window's group");
  MPI_Group_free(&g), MPI_Group_free(&h);
}

/* Lets each rank put to, get from and add to all ranks. */
static void pairs(MPI_Win w, int *mine) {
  int out[N], in[N];
  for (int i = 0; i < np * N; i++) mine[i] = -1;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, w);
  for (int r = 0; r < np; r++) {
    for (int i = 0; i < N; i++) out[i] = me * 1000 + r * 100 + i;
    MPI_Put(out, N, MPI_INT, r, me * N, N, MPI_INT, w);
    memset(out, 0xee, sizeof out); /* MPI does not allow this, which makes it a test */
    for (int i = 0; i < N; i++) out[i] = me * 1000 + r * 100 + i;
    MPI_Win_fence(0, w);
  }
  for (int r = 0; r < np; r++)
    for (int i = 0; i < N; i++) SAME(mine[r * N + i], r * 1000 + me * 100 + i, "put");
  MPI_Win_fence(0, w);
  for (int r = 0; r < np; r++) {
    memset(in, 0, sizeof in);
    MPI_Get(in, N, MPI_INT, r, me * N, N, MPI_INT, w);
    MPI_Win_fence(0, w);
    for (int i = 0; i < N; i++) SAME(in[i], me * 1000 + r * 100 + i, "get");
  }
  for (int i = 0; i < N; i++) out[i] = i + me;
  for (int r = 0; r < np; r++) MPI_Accumulate(out, N, MPI_INT, r, 0, N, MPI_INT, MPI_SUM, w);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  uint64_t sum = 0;
  for (int i = 0; i < N; i++) sum = digest(sum, &mine[i], sizeof mine[i]);
  line("after accumulate %016llx", (unsigned long long)sum);
}

/* Makes one long transfer in each direction of the ring, and one of no bytes. */
static void ring(long bytes) {
  char *mine = malloc(bytes + 1), *out = malloc(bytes + 1), *in = malloc(bytes + 1);
  MPI_Win w;
  int next = (me + 1) % np, last = (me + np - 1) % np;
  fill(out, bytes, me), memset(mine, 0, bytes + 1), memset(in, 0, bytes + 1);
  MPI_Win_create(mine, bytes, 1, MPI_INFO_NULL, comm, &w);
  MPI_Win_fence(0, w);
  MPI_Put(out, (int)bytes, MPI_BYTE, next, 0, (int)bytes, MPI_BYTE, w);
  MPI_Put(out, 0, MPI_BYTE, next, 0, 0, MPI_BYTE, w);
  MPI_Put(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, 0, MPI_BYTE, w);
  MPI_Win_fence(0, w);
  CHECK(filled(mine, bytes, last), "put of %ld bytes", bytes);
  MPI_Win_fence(0, w);
  MPI_Get(in, (int)bytes, MPI_BYTE, last, 0, (int)bytes, MPI_BYTE, w);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  CHECK(filled(in, bytes, (last + np - 1) % np), "get of %ld bytes", bytes);
  MPI_Win_free(&w);
  CHECK(w == MPI_WIN_NULL, "the freed window");
  free(mine), free(out), free(in);
}

/* Checks that accumulates of one origin to one place are done in order; replace is one of them. */
static void order(void) {
  long *mine;
  MPI_Win w;
  MPI_Win_allocate(np * sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &w);
  for (int r = 0; r < np; r++) mine[r] = 0;
  MPI_Win_fence(0, w);
  for (int r = 0; r < np; r++)
    for (long i = 1; i <= 100; i++) {
      long ten = 10;
      MPI_Accumulate(&i, 1, MPI_LONG, r, me, 1, MPI_LONG, MPI_REPLACE, w);
      MPI_Accumulate(&ten, 1, MPI_LONG, r, me, 1, MPI_LONG, MPI_PROD, w);
    }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  for (int r = 0; r < np; r++) SAME(mine[r], 1000, "replaced, then multiplied");
  MPI_Win_free(&w);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Win w;
  int *memory = malloc(np * N * sizeof *memory), *given;

  BIG(Win_create)(memory, np * N * sizeof *memory, sizeof *memory, MPI_INFO_NULL, comm, &w);
  attributes(w, memory, np * N * sizeof *memory, sizeof *memory, MPI_WIN_FLAVOR_CREATE);
  pairs(w, memory);
  pairs(w, memory);
  MPI_Win_free(&w);

  BIG(Win_allocate)(np * N * sizeof *given, sizeof *given, MPI_INFO_NULL, comm, &given, &w);
  attributes(w, given, np * N * sizeof *given, sizeof *given, MPI_WIN_FLAVOR_ALLOCATE);
  pairs(w, given);
  MPI_Win_free(&w);

  /* Ranks may have different sizes and units; only the last one has memory here. */
  int mine = me == np - 1, sum = me + 1;
  memory[0] = 0;
  MPI_Win_create(mine ? memory : NULL, mine ? sizeof *memory : 0, mine ? 4 : 1 + me, MPI_INFO_NULL, comm, &w);
  MPI_Win_fence(0, w);
  MPI_Accumulate(&sum, 1, MPI_INT, np - 1, 0, 1, MPI_INT, MPI_SUM, w);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  if (mine) SAME(memory[0], np * (np + 1) / 2, "sum at the last");
  MPI_Win_free(&w);

  ring(0), ring(1), ring(50000), ring(3000001);
  order();

  /* Several windows at once, one of a communicator with the ranks in reverse order. */
  MPI_Comm back;
  MPI_Win v;
  int a = -1, b = -1;
  MPI_Comm_split(comm, 0, -me, &back);
  MPI_Win_create(&a, sizeof a, 1, MPI_INFO_NULL, comm, &w);
  MPI_Win_create(&b, sizeof b, 1, MPI_INFO_NULL, back, &v);
  MPI_Comm_free(&back); /* the window does not need it */
  MPI_Win_fence(0, w), MPI_Win_fence(0, v);
  MPI_Put(&me, 1, MPI_INT, (me + 1) % np, 0, 1, MPI_INT, w);
  MPI_Put(&me, 1, MPI_INT, me, 0, 1, MPI_INT, v);
  MPI_Win_fence(0, v), MPI_Win_fence(0, w);
  SAME(a, (me + np - 1) % np, "first window");
  SAME(b, np - 1 - me, "second window");
  MPI_Win_free(&w), MPI_Win_free(&v);

  /* In a part that may be inside one cluster: the first half. */
  MPI_Comm half;
  MPI_Comm_split(comm, me < np / 2, 0, &half);
  int size, rank, *cell;
  MPI_Comm_size(half, &size), MPI_Comm_rank(half, &rank);
  /* Open MPI 4.1 cannot create a window of one rank */
  MPI_Win_allocate(sizeof *cell, 1, MPI_INFO_NULL, half, &cell, &w);
  MPI_Win_fence(0, w);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, w);
  MPI_Win_fence(0, w);
/* Debian's MPICH 4.0.2 loses puts between two ranks of a host, natively too, so only the calls are
 * tested there */
#ifndef MPICH_VERSION
  SAME(*cell, (rank + size - 1) % size, "put in half the world");
#endif
  MPI_Win_free(&w);
  MPI_Comm_free(&half);

  free(memory);
  MPI_Comm_free(&comm);
  return finish();
}
