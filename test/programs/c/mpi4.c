/* MPI 4: persistent collectives of all kinds, started in another order by every process, round
 * after round, their types, operator and communicators freed after the initialization; and
 * big-count forms with arrays. An MPI 3 library prints the same by nonblocking and short forms.
 */
#include "check.h"

#if MPI_VERSION >= 4
#define PERSISTENT 1
#define P(X, IX, ...) MPI_##X##_init(__VA_ARGS__, MPI_INFO_NULL, r)
#define P_C(X, IX, ...) MPI_##X##_init_c(__VA_ARGS__, MPI_INFO_NULL, r)
#define C(X) MPI_##X##_c
typedef MPI_Count count_, bytes_;
typedef MPI_Aint place_;
#else
#define PERSISTENT 0
#define P(X, IX, ...) MPI_##IX(__VA_ARGS__, r)
#define P_C P
#define C(X) MPI_##X
typedef int count_;
typedef MPI_Aint bytes_;
typedef int place_;
#endif

enum { N = 700, KINDS = 26, ROUNDS = 8, MOST = 8 };
static int *in[KINDS], *out[KINDS];
static int counts[MOST], displs[MOST], wide[MOST]; /* wide: in bytes */
static count_ big[MOST];
static place_ places[MOST], offsets[MOST];
static MPI_Datatype pairs[MOST];
static MPI_Datatype gap; /* every second int */
static MPI_Op maps;
static MPI_Comm all, ring, other;

/* Composes maps x → ax + b, an operation that is associative, not commutative: (a, b) · (c, d) =
 * (ac, ad + b). */
static void compose(void *a, void *b, int *n, MPI_Datatype *type) {
  unsigned *x = a, *y = b;
  (void)type;
  for (int i = 0; i + 1 < 2 * *n; i += 2) {
    unsigned first = x[i] * y[i] % 9973, second = (x[i] * y[i + 1] + x[i + 1]) % 9973;
    y[i] = first, y[i + 1] = second;
  }
}

/* Begins collective k, or initializes it with MPI 4. */
static int issue(int k, MPI_Request *r) {
  int *i = in[k], *o = out[k], root = k % np;
  switch (k) {
  case 0: return P(Barrier, Ibarrier, all);
  case 1: return P(Bcast, Ibcast, me == root ? i : o, 40, gap, root, all);
  case 2: return P(Gather, Igather, i, 30, gap, o, 30, MPI_INT, root, all);
  case 3: return P(Gatherv, Igatherv, i, counts[me], gap, o, counts, displs, MPI_INT, root, all);
  case 4: return P(Scatter, Iscatter, i, 30, MPI_INT, o, 30, gap, root, all);
  case 5: return P(Scatterv, Iscatterv, i, counts, displs, MPI_INT, o, counts[me], gap, root, all);
  case 6: return P(Allgather, Iallgather, i, 50, MPI_INT, o, 50, MPI_INT, all);
  case 7: return P(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o, counts, displs, MPI_INT, all);
  case 8: return P(Alltoall, Ialltoall, i, 20, gap, o, 20, gap, all);
  case 9: return P(Alltoallv, Ialltoallv, i, counts, displs, MPI_INT, o, counts, displs, MPI_INT, all);
  case 10: return P(Alltoallw, Ialltoallw, i, counts, wide, pairs, o, counts, wide, pairs, all);
  case 11: return P(Reduce, Ireduce, i, o, 33, MPI_INT, MPI_SUM, root, all);
  case 12: return P(Allreduce, Iallreduce, i, o, 33, pairs[0], maps, all);
  case 13: return P(Scan, Iscan, i, o, 33, pairs[0], maps, all);
  case 14: return P(Exscan, Iexscan, i, o, 33, MPI_INT, MPI_BXOR, all);
  case 15: return P(Reduce_scatter, Ireduce_scatter, i, o, counts, MPI_INT, MPI_MAX, all);
  case 16: return P(Reduce_scatter_block, Ireduce_scatter_block, i, o, 12, MPI_INT, MPI_MIN, all);
  case 17: return P(Neighbor_allgather, Ineighbor_allgather, i, 9, gap, o, 9, MPI_INT, ring);
  case 18: return P(Neighbor_alltoall, Ineighbor_alltoall, i, 9, MPI_INT, o, 9, gap, ring);
  case 19:
    return P(Neighbor_alltoallv, Ineighbor_alltoallv, i, counts, displs, MPI_INT, o, counts, displs, MPI_INT, ring);
  case 20: return P(Allreduce, Iallreduce, i, o, 21, MPI_INT, MPI_SUM, other);
  case 21: return P(Allgather, Iallgather, i, 10, gap, o, 10, MPI_INT, other);
  case 22: return P_C(Gatherv, Igatherv, i, counts[me], MPI_INT, o, big, places, MPI_INT, root, all);
  case 23: return P_C(Allreduce, Iallreduce, i, o, 33, MPI_INT, MPI_SUM, all);
  case 24: return P_C(Alltoallw, Ialltoallw, i, big, offsets, pairs, o, big, offsets, pairs, all);
  default: return P_C(Neighbor_allgatherv, Ineighbor_allgatherv, i, 11, MPI_INT, o, big, places, MPI_INT, ring);
  }
}

static void prepare(int round) {
  for (int k = 0; k < KINDS; k++) {
    fill(in[k], 2 * N * MOST * sizeof **in, mix(round * 1000 + k * 10) + (uint64_t)me);
    for (int i = 0; i < 2 * N * MOST; i++) in[k][i] &= 0xffff;
    memset(out[k], 0x11, 2 * N * MOST * sizeof **out);
    if (k == 7) memcpy(out[k], in[k], 2 * N * MOST * sizeof **out);
  }
}

static void persistent(void) {
  MPI_Request r[KINDS];
  for (int k = 0; k < KINDS && PERSISTENT; k++) SAME(issue(k, &r[k]), MPI_SUCCESS, "initialization");
  if (PERSISTENT) { /* the requests need none of these any more */
    MPI_Type_free(&gap);
    for (int p = 0; p < MOST; p++) MPI_Type_free(&pairs[p]);
    MPI_Op_free(&maps);
    MPI_Comm_free(&ring), MPI_Comm_free(&other), MPI_Comm_free(&all);
  }
  for (int round = 0; round < ROUNDS; round++) {
    int left = KINDS, some, which[KINDS], flag;
    prepare(round);
    uint64_t order = round * 100 + me * PERSISTENT, h = 0; /* MPI 3: the same order at all ranks */
    int begun[KINDS] = {0};
    for (int i = 0; i < KINDS; i++) {
      int k = below(&order, KINDS);
      while (begun[k]) k = (k + 1) % KINDS;
      begun[k] = 1;
#if PERSISTENT
      if (round % 2 && i + 1 == KINDS) MPI_Startall(1, &r[k]);
      else MPI_Start(&r[k]);
#else
      issue(k, &r[k]);
#endif
    }
    if (round % 4 == 0) MPI_Waitall(KINDS, r, MPI_STATUSES_IGNORE);
    else if (round % 4 == 1)
      for (; left > 0; left -= some) MPI_Waitsome(KINDS, r, &some, which, MPI_STATUSES_IGNORE);
    else if (round % 4 == 2)
      for (flag = 0; !flag;) MPI_Testall(KINDS, r, &flag, MPI_STATUSES_IGNORE);
    else
      for (int k = KINDS - 1; k >= 0; k--) MPI_Wait(&r[k], MPI_STATUS_IGNORE);
    for (int k = 0; k < KINDS; k++) {
      CHECK((r[k] != MPI_REQUEST_NULL) == PERSISTENT, "request of kind %d after round %d", k, round);
      h = digest(h, out[k], 2 * N * MOST * sizeof **out);
      if (round == 0) line("kind %d: %016llx", k, (unsigned long long)digest(0, out[k], 2 * N * MOST * sizeof **out));
    }
    line("round %d: %016llx", round, (unsigned long long)h);
  }
  for (int k = 0; k < KINDS && PERSISTENT; k++) {
    MPI_Request_free(&r[k]);
    CHECK(r[k] == MPI_REQUEST_NULL, "Request_free");
  }
}

static void show(const char *what) {
  line("%s: %016llx", what, (unsigned long long)digest(0, out[0], 2 * N * MOST * sizeof **out));
  memset(out[0], 0x11, 2 * N * MOST * sizeof **out);
}

static void arrays(void) {
  int *i = in[0], *o = out[0], root = np - 1;
  MPI_Request r;
  MPI_Aint at[MOST];
  for (int p = 0; p < MOST; p++) at[p] = wide[p];
  prepare(77);
  C(Gatherv)(i, counts[me], gap, o, big, places, MPI_INT, root, all), show("gatherv");
  C(Scatterv)(i, big, places, MPI_INT, o, counts[me], gap, root, all), show("scatterv");
  C(Allgatherv)(i, counts[me], gap, o, big, places, MPI_INT, all), show("allgatherv");
  C(Alltoallv)(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, o, big, places, MPI_INT, all), show("alltoallv in place");
  C(Alltoallw)(i, big, offsets, pairs, o, big, offsets, pairs, all), show("alltoallw");
  C(Reduce_scatter)(i, o, big, MPI_INT, MPI_SUM, all), show("reduce_scatter");
  C(Neighbor_allgatherv)(i, 11, MPI_INT, o, big, places, MPI_INT, ring), show("neighbor_allgatherv");
  C(Neighbor_alltoallv)(i, big, places, MPI_INT, o, big, places, MPI_INT, ring), show("neighbor_alltoallv");
  C(Neighbor_alltoallw)(i, big, at, pairs, o, big, at, pairs, ring), show("neighbor_alltoallw");
  C(Allgatherv)(i, 11, MPI_INT, o, big, places, MPI_INT, other), show("allgatherv, two groups");
  C(Ialltoallv)(i, big, places, gap, o, big, places, gap, all, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), show("ialltoallv");
  C(Iscatterv)
  (i, big, places, MPI_INT, o, counts[me], gap, root, all, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), show("iscatterv");
}

/* Checks types that big-count functions have made, between neighbours and to all. */
static void types(void) {
  enum { TYPES = 6 };
  MPI_Datatype t[TYPES], of[2] = {MPI_INT, MPI_INT};
  count_ lengths[2] = {2, 3}, at[2] = {0, 4};
  bytes_ from[2] = {0, 16};
  C(Type_contiguous)(3, MPI_INT, &t[0]);
  C(Type_vector)(4, 1, 2, MPI_INT, &t[1]);
  C(Type_indexed)(2, lengths, at, MPI_INT, &t[2]);
  C(Type_create_hvector)(4, 1, 8, MPI_INT, &t[3]);
  C(Type_create_resized)(MPI_INT, 0, 8, &t[4]);
  C(Type_create_struct)(2, lengths, from, of, &t[5]);
  prepare(78);
  for (int k = 0; k < TYPES; k++) {
    MPI_Status s;
    int n = 0;
    MPI_Type_commit(&t[k]);
    SAME(MPI_Sendrecv(in[0], 5, t[k], (me + 1) % np, k, out[0], 5, t[k], (me + np - 1) % np, k, all, &s), MPI_SUCCESS,
         "Sendrecv");
    MPI_Get_count(&s, t[k], &n);
    SAME(n, 5, "elements");
    MPI_Bcast(out[0], 7, t[k], np - 1, all);
    show("a type of big counts");
    MPI_Type_free(&t[k]);
  }
}

/* Packs elements with gaps and long doubles into one message to the next process, which unpacks
 * them. */
static void packing(void) {
  enum { ROOM = 4000, NUMBERS = 20 };
  static char packed[ROOM], arrived[ROOM];
  long double numbers[NUMBERS], got[NUMBERS];
  count_ size = 0, at = 0, most;
  C(Pack_size)(30, gap, all, &most), size += most;
  C(Pack_size)(NUMBERS, MPI_LONG_DOUBLE, all, &most), size += most;
  CHECK(size <= ROOM, "size of packed data");
  prepare(79);
  for (int i = 0; i < NUMBERS; i++) numbers[i] = (long double)(me + 1) * i / 3;
  SAME(C(Pack)(in[0], 30, gap, packed, size, &at, all), MPI_SUCCESS, "Pack");
  SAME(C(Pack)(numbers, NUMBERS, MPI_LONG_DOUBLE, packed, size, &at, all), MPI_SUCCESS, "Pack");
  int from = (me + np - 1) % np, n;
  MPI_Status s;
  MPI_Sendrecv(packed, (int)at, MPI_PACKED, (me + 1) % np, 9, arrived, ROOM, MPI_PACKED, from, 9, all, &s);
  MPI_Get_count(&s, MPI_PACKED, &n);
  at = 0;
  SAME(C(Unpack)(arrived, n, &at, out[0], 30, gap, all), MPI_SUCCESS, "Unpack");
  SAME(C(Unpack)(arrived, n, &at, got, NUMBERS, MPI_LONG_DOUBLE, all), MPI_SUCCESS, "Unpack");
  SAME((int)at, n, "position after the last element");
  for (int i = 0; i < NUMBERS; i++) CHECK(got[i] == (long double)(from + 1) * i / 3, "long double %d", i);
  show("packed");
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int before = 0;
  MPI_Comm half;
  CHECK(np <= MOST, "too many processes");
  for (int k = 0; k < KINDS; k++)
    in[k] = malloc(2 * N * MOST * sizeof **in), out[k] = malloc(2 * N * MOST * sizeof **out);
  for (int p = 0; p < MOST; p++, before += 40) {
    counts[p] = big[p] = 11, displs[p] = places[p] = before, offsets[p] = wide[p] = before * (int)sizeof(int);
    MPI_Type_contiguous(2, MPI_INT, &pairs[p]);
    MPI_Type_commit(&pairs[p]);
  }
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gap);
  MPI_Type_commit(&gap);
  MPI_Op_create(compose, 0, &maps);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
#if MPI_VERSION >= 4
  MPI_Request r;
  MPI_Info info;
  MPI_Comm_free(&all);
  MPI_Info_create(&info);
  MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &all, &r);
  MPI_Info_free(&info);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
#endif
  int near[2] = {(me + np - 1) % np, (me + 1) % np};
  MPI_Dist_graph_create_adjacent(all, 2, near, MPI_UNWEIGHTED, 2, near, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  MPI_Comm_split(all, me % 2, 0, &half);
  MPI_Intercomm_create(half, 0, all, 1 - me % 2, 5, &other);
  MPI_Comm_free(&half);
  arrays();
  types();
  packing();
  for (int p = 0; p < MOST; p++) big[p] = 11;
  persistent();
  return finish();
}
