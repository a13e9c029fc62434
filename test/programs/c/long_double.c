/* Long doubles, alone and in other types, in every kind of communication. Their format may differ
 * between the clusters (x87 extended and binary128): then each value must arrive as the nearest one
 * that the receiver can represent, and a result must be the same everywhere. */
#include "check.h"
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

enum { N = 40, EXACT = 30 }; /* of N values the first EXACT are the same in both formats */

static int *digits; /* the significant bits of a long double at each rank */

/* Returns x rounded to the 64 bits of x87's format, if x is not exact. */
static long double rounded(long double x) {
  int e;
  if (LDBL_MANT_DIG <= 64 || !isfinite(x) || x == 0) return x;
  long double f = frexpl(x, &e);
  return ldexpl(rintl(ldexpl(f, 64)), e - 64);
}

/* Returns value i of a rank, which is exact in both formats for i < EXACT. */
static long double value(int rank, int i) {
  uint64_t m = mix((uint64_t)rank * 1000 + (uint64_t)i);
  int e = (int)(m % 20000) - 10000;
  switch (i) {
  case 0: return 0.0L;
  case 1: return -0.0L;
  case 2: return INFINITY;
  case 3: return -(long double)INFINITY;
  case 4: return NAN;
  case 5: return LDBL_MIN;
  case 6: return ldexpl(1, -16445);                           /* the least denormal of x87 */
  case 7: return -ldexpl((long double)(m >> 1 | 1), -16445);  /* a denormal */
  case 8: return ldexpl((long double)UINT64_MAX, 16384 - 64); /* the greatest number of x87 */
  case 9: return 1 + rank;
  }
  long double x = ldexpl((long double)(m | 1), e);
  if (i % 2) x = -x;
  return i < EXACT ? x : x + ldexpl((long double)(mix(m) | 1), e - 64);
}

/* Returns value i of rank `from` as this rank must receive it, by way of the ranks between. */
static long double wanted(int from, int i) {
  long double x = value(from, i);
  return digits[from] == 64 ? rounded(x) : x;
}

static int equal(long double a, long double b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b && signbit(a) == signbit(b);
}
#define EQUAL(got, want, what)                                                                     \
  do {                                                                                             \
    long double got_ = (got), want_ = (want);                                                      \
    if (!equal(got_, want_)) failed(__FILE__, __LINE__, "%s is %La, want %La", what, got_, want_); \
  } while (0)

typedef struct record {
  char before;
  long double value;
  short after;
  long double _Complex both;
} record;

typedef struct pair {
  long double value;
  int index;
} pair;

static MPI_Datatype record_type, strided, nested;

static void make_types(void) {
  int lengths[4] = {1, 1, 1, 1};
  MPI_Aint at[4] = {offsetof(record, before), offsetof(record, value), offsetof(record, after), offsetof(record, both)};
  MPI_Datatype types[4] = {MPI_CHAR, MPI_LONG_DOUBLE, MPI_SHORT, MPI_C_LONG_DOUBLE_COMPLEX}, one;
  MPI_Type_create_struct(4, lengths, at, types, &one);
  MPI_Type_create_resized(one, 0, sizeof(record), &record_type);
  MPI_Type_free(&one);
  MPI_Type_commit(&record_type);
  MPI_Type_vector(N / 2, 1, 2, MPI_LONG_DOUBLE, &strided); /* the even elements of N */
  MPI_Type_commit(&strided);
  MPI_Type_contiguous(2, record_type, &one);
  MPI_Type_vector(2, 1, 2, one, &nested); /* records 0, 1, 4 and 5 of 6 */
  MPI_Type_free(&one);
  MPI_Type_commit(&nested);
}

static void free_types(void) {
  MPI_Type_free(&record_type);
  MPI_Type_free(&strided);
  MPI_Type_free(&nested);
}

static void set(long double *x, int n) {
  for (int i = 0; i < n; i++) x[i] = value(me, i % N);
}

static record record_of(int rank, int i) {
  return (record){(char)(rank + i), value(rank, i), (short)(rank - i), value(rank, (i + 1) % N) + 0 * I};
}

static void set_records(record *r, int n) {
  memset(r, 0, (size_t)n * sizeof *r);
  for (int i = 0; i < n; i++) {
    r[i] = record_of(me, 10 + i);
    ((long double *)&r[i].both)[0] = value(me, 12 + i), ((long double *)&r[i].both)[1] = value(me, 30 + i);
  }
}

static void check_record(const record *r, int from, int i, const char *what) {
  SAME(r->before, (char)(from + 10 + i), what);
  SAME(r->after, (short)(from - 10 - i), what);
  EQUAL(r->value, wanted(from, 10 + i), what);
  EQUAL(creall(r->both), wanted(from, 12 + i), what);
  EQUAL(cimagl(r->both), wanted(from, 30 + i), what);
}

/* ---- point to point ---- */

enum { PLAIN, READY_LATER, SYNCHRONOUS, BUFFERED, PERSISTENT, MODES };

static void send_in(int mode, const void *buf, int n, MPI_Datatype type, int to) {
  MPI_Request q;
  switch (mode) {
  case SYNCHRONOUS: MPI_Issend(buf, n, type, to, mode, MPI_COMM_WORLD, &q); break;
  case BUFFERED: MPI_Bsend(buf, n, type, to, mode, MPI_COMM_WORLD); return;
  case PERSISTENT:
    MPI_Send_init(buf, n, type, to, mode, MPI_COMM_WORLD, &q);
    MPI_Start(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Request_free(&q);
    return;
  default: MPI_Isend(buf, n, type, to, mode, MPI_COMM_WORLD, &q);
  }
  MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void receive_in(int mode, void *buf, int n, MPI_Datatype type, int from) {
  MPI_Request q;
  MPI_Message m;
  MPI_Status s;
  int got;
  switch (mode) {
  case READY_LATER:
    MPI_Mprobe(from, mode, MPI_COMM_WORLD, &m, &s);
    MPI_Mrecv(buf, n, type, &m, &s);
    break;
  case PERSISTENT:
    MPI_Recv_init(buf, n, type, from, mode, MPI_COMM_WORLD, &q);
    MPI_Start(&q);
    MPI_Wait(&q, &s);
    MPI_Request_free(&q);
    break;
  case BUFFERED: MPI_Recv(buf, n, type, MPI_ANY_SOURCE, mode, MPI_COMM_WORLD, &s); break;
  default: MPI_Irecv(buf, n, type, from, mode, MPI_COMM_WORLD, &q); MPI_Wait(&q, &s);
  }
  MPI_Get_count(&s, type, &got);
  SAME(got, n, "the number of received elements");
}

static void messages(void) {
  long double in[N], out[N];
  record some[6], got[6];
  set(out, N);
  set_records(some, 6);
  for (int from = 0; from < np; from++)
    for (int to = 0; to < np; to++) {
      for (int mode = 0; mode < MODES && from != to; mode++) {
        if (me == from) {
          send_in(mode, out, N, MPI_LONG_DOUBLE, to);
          send_in(mode, out, N / 2, MPI_C_LONG_DOUBLE_COMPLEX, to);
          send_in(mode, out, 1, strided, to);
          send_in(mode, some, 6, record_type, to);
          send_in(mode, some, 1, nested, to);
        } else if (me == to) {
          memset(in, 0, sizeof in), memset(got, 0, sizeof got);
          receive_in(mode, in, N, MPI_LONG_DOUBLE, from);
          for (int i = 0; i < N; i++) EQUAL(in[i], wanted(from, i), "a long double");
          memset(in, 0, sizeof in);
          receive_in(mode, in, N / 2, MPI_C_LONG_DOUBLE_COMPLEX, from);
          for (int i = 0; i < N; i++) EQUAL(in[i], wanted(from, i), "a part of a complex number");
          memset(in, 0, sizeof in);
          receive_in(mode, in, 1, strided, from);
          for (int i = 0; i < N; i++) EQUAL(in[i], i % 2 ? 0 : wanted(from, i), "an element of a vector");
          receive_in(mode, got, 6, record_type, from);
          for (int i = 0; i < 6; i++) check_record(&got[i], from, i, "a record");
          memset(got, 0, sizeof got);
          receive_in(mode, got, 1, nested, from);
          for (int i = 0; i < 6; i++)
            if (i % 4 < 2) check_record(&got[i], from, i, "a nested record");
        }
        MPI_Barrier(MPI_COMM_WORLD); /* a receive from any source takes no other message */
      }
    }
}

static void exchanges(void) {
  long double x[N], y[N];
  pair p[3], q[3];
  int right = (me + 1) % np, left = (me + np - 1) % np;
  set(x, N);
  MPI_Sendrecv_replace(x, N, MPI_LONG_DOUBLE, right, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) EQUAL(x[i], wanted(left, i), "a replaced value");
  memset(p, 0, sizeof p);
  for (int i = 0; i < 3; i++) p[i] = (pair){value(me, 35 + i), 1000 * me + i};
  MPI_Sendrecv(p, 3, MPI_LONG_DOUBLE_INT, right, 2, q, 3, MPI_LONG_DOUBLE_INT, left, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; i++) {
    EQUAL(q[i].value, wanted(left, 35 + i), "the value of a pair");
    SAME(q[i].index, 1000 * left + i, "the index of a pair");
  }
  /* bytes stay bytes */
  fill(x, sizeof x, (uint64_t)me);
  MPI_Sendrecv(x, sizeof x, MPI_BYTE, right, 3, y, sizeof y, MPI_BYTE, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(filled(y, sizeof y, (uint64_t)left), "bytes from %d", left);
}

/* Sends data that MPI_Pack has packed: an int, long doubles and a record. */
static void packed(void) {
  long double x[N], y[N];
  record r[2], s[2];
  char out[4000], in[4000];
  int right = (me + 1) % np, left = (me + np - 1) % np, at = 0, tag = me * 7, got = 0, size, n;
  MPI_Status status;
  set(x, N);
  set_records(r, 2);
  MPI_Pack_size(N, MPI_LONG_DOUBLE, MPI_COMM_WORLD, &size);
  CHECK(size >= (int)sizeof x, "%d", size);
  MPI_Pack(&tag, 1, MPI_INT, out, sizeof out, &at, MPI_COMM_WORLD);
  MPI_Pack(x, N, MPI_LONG_DOUBLE, out, sizeof out, &at, MPI_COMM_WORLD);
  MPI_Pack(r, 2, record_type, out, sizeof out, &at, MPI_COMM_WORLD);
  MPI_Sendrecv(out, at, MPI_PACKED, right, 4, in, sizeof in, MPI_PACKED, left, 4, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_PACKED, &n);
  SAME(n, at, "the size of packed data");
  at = 0;
  MPI_Unpack(in, n, &at, &got, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Unpack(in, n, &at, y, N, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
  MPI_Unpack(in, n, &at, s, 2, record_type, MPI_COMM_WORLD);
  SAME(at, n, "the end of packed data");
  SAME(got, left * 7, "a packed int");
  for (int i = 0; i < N; i++) EQUAL(y[i], wanted(left, i), "a packed value");
  for (int i = 0; i < 2; i++) check_record(&s[i], left, i, "a packed record");
}

#if MPI_VERSION >= 4
static void partitions(void) {
  enum { PARTS = 4 };
  long double x[N], y[N];
  int right = (me + 1) % np, left = (me + np - 1) % np, there;
  MPI_Request q[2];
  MPI_Psend_init(x, PARTS, N / PARTS, MPI_LONG_DOUBLE, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
  MPI_Precv_init(y, PARTS / 2, N / PARTS * 2, MPI_LONG_DOUBLE, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
  for (int round = 0; round < 2; round++) {
    set(x, N);
    memset(y, 0, sizeof y);
    MPI_Startall(2, q);
    for (int i = PARTS - 1; i >= 0; i--) MPI_Pready(i, q[0]);
    do MPI_Parrived(q[1], 1, &there);
    while (!there);
    for (int i = N / 2; i < N; i++) EQUAL(y[i], wanted(left, i), "a value of a partition");
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++) EQUAL(y[i], wanted(left, i), "a value of partitions");
  }
  MPI_Request_free(&q[0]);
  MPI_Request_free(&q[1]);
}
#endif

/* ---- collectives ---- */

static void moves(void) {
  long double *all = malloc((size_t)np * N * sizeof *all), *to = malloc((size_t)np * N * sizeof *to), x[N];
  int *counts = malloc((size_t)np * sizeof(int)), *displs = malloc((size_t)np * sizeof(int));
  record r[2], *rs = malloc((size_t)np * 2 * sizeof *rs);
  MPI_Request q;
  for (int i = 0; i < np; i++) counts[i] = N - i % 3, displs[i] = i * N;
  for (int root = 0; root < np; root++) {
    set(x, N);
    if (me != root) memset(x, 0, sizeof x);
    MPI_Bcast(x, N, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) EQUAL(x[i], wanted(root, i), "a broadcast value");
    set_records(r, 2);
    MPI_Ibcast(r, 2, record_type, root, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) check_record(&r[i], root, i, "a broadcast record");
    set(x, N);
    MPI_Gather(x, N, MPI_LONG_DOUBLE, all, N, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
    for (int i = 0; i < np * N && me == root; i++) EQUAL(all[i], wanted(i / N, i % N), "a gathered value");
    MPI_Gatherv(x, counts[me], MPI_LONG_DOUBLE, all, counts, displs, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
    for (int i = 0; i < np * N && me == root; i++)
      if (i % N < counts[i / N]) EQUAL(all[i], wanted(i / N, i % N), "a gathered value");
    for (int i = 0; i < np * N; i++) all[i] = value(me, i % N);
    MPI_Scatter(all, N, MPI_LONG_DOUBLE, x, N, MPI_LONG_DOUBLE, root, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) EQUAL(x[i], wanted(root, i), "a scattered value");
  }
  set(x, N);
  MPI_Allgather(x, N, MPI_LONG_DOUBLE, all, N, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < np * N; i++) EQUAL(all[i], wanted(i / N, i % N), "a value of an allgather");
  for (int i = 0; i < N; i++) all[me * N + i] = value(me, i);
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs, MPI_LONG_DOUBLE, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  for (int i = 0; i < np * N; i++)
    if (i % N < counts[i / N]) EQUAL(all[i], i / N == me ? value(me, i % N) : wanted(i / N, i % N), "a value in place");
  for (int i = 0; i < np * N; i++) to[i] = value(me, i % N);
  MPI_Alltoall(to, N, MPI_LONG_DOUBLE, all, N, MPI_LONG_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < np * N; i++) EQUAL(all[i], wanted(i / N, i % N), "a value of an alltoall");
  MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, N, MPI_LONG_DOUBLE, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  for (int i = 0; i < np * N; i++) EQUAL(to[i], wanted(i / N, i % N), "a value of an alltoall in place");
  set_records(r, 2);
  MPI_Allgather(r, 2, record_type, rs, 2, record_type, MPI_COMM_WORLD);
  for (int i = 0; i < np * 2; i++) check_record(&rs[i], i / 2, i % 2, "a record of an allgather");
  free(all), free(to), free(counts), free(displs), free(rs);
}

/* An operator that does not commute: the function f(g(x)) of two functions x -> a x + b, which are
 * complex numbers (a, b). */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
  long double *f = in, *g = inout;
  (void)type;
  for (int i = 0; i < 2 * *n; i += 2) {
    g[i + 1] = f[i] * g[i + 1] + f[i + 1];
    g[i] *= f[i];
  }
}

/* Returns the operand of a reduction, which is exact in both formats, as are the results. */
static long double operand(int rank, int i) {
  return ldexpl((long double)(int)(mix((uint64_t)rank * 77 + (uint64_t)i) % 1000) + 1, i * 100 - 2000);
}

static long double sum_to(int end, int i) {
  long double s = 0;
  for (int r = 0; r < end; r++) s += operand(r, i);
  return s;
}

static void reductions(void) {
  long double x[N], y[N], *all = malloc((size_t)np * N * sizeof *all), *part = malloc((size_t)np * N * sizeof *part);
  int *counts = malloc((size_t)np * sizeof(int));
  MPI_Request q;
  MPI_Op op;
  for (int i = 0; i < N; i++) x[i] = operand(me, i);
  for (int root = 0; root < np; root++) {
    MPI_Reduce(x, y, N, MPI_LONG_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; i < N && me == root; i++) EQUAL(y[i], sum_to(np, i), "a sum");
  }
  MPI_Allreduce(x, y, N, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) EQUAL(y[i], sum_to(np, i), "a sum everywhere");
  MPI_Iallreduce(x, y, N, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++)
    for (int r = 0; r < np; r++) CHECK(y[i] >= operand(r, i), "maximum %d", i);
  memcpy(y, x, sizeof y);
  MPI_Allreduce(MPI_IN_PLACE, y, N / 2, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) EQUAL(y[i], sum_to(np, i), "a part of a complex sum");
  MPI_Scan(x, y, N, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) EQUAL(y[i], sum_to(me + 1, i), "a prefix sum");
  MPI_Exscan(x, y, N, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N && me; i++) EQUAL(y[i], sum_to(me, i), "a sum of those before");
  for (int i = 0; i < np * N; i++) all[i] = operand(me, i % N);
  for (int i = 0; i < np; i++) counts[i] = i % 2 ? N : N - 1;
  MPI_Reduce_scatter_block(all, part, N, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) EQUAL(part[i], sum_to(np, i), "a scattered sum");
  MPI_Reduce_scatter(all, part, counts, MPI_LONG_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  for (int i = 0; i < counts[me]; i++)
    for (int r = 0, at = me * N - (me + 1) / 2 + i; r < np; r++) CHECK(part[i] <= operand(r, at % N), "minimum %d", i);
  pair p[4], best[4];
  memset(p, 0, sizeof p);
  for (int i = 0; i < 4; i++) p[i] = (pair){i < 2 ? operand(me, i) : 5, me};
  MPI_Allreduce(p, best, 4, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  for (int i = 0; i < 4; i++) {
    int at = 0;
    for (int r = 1; i < 2 && r < np; r++)
      if (operand(r, i) > operand(at, i)) at = r;
    SAME(best[i].index, at, "the rank with the maximum");
    EQUAL(best[i].value, i < 2 ? operand(at, i) : 5, "the maximum");
  }
  MPI_Op_create(compose, 0, &op);
  x[0] = 2, x[1] = me + 1;
  MPI_Allreduce(x, y, 1, MPI_C_LONG_DOUBLE_COMPLEX, op, MPI_COMM_WORLD);
  long double want = 0;
  for (int r = np - 1; r >= 0; r--) want = 2 * want + r + 1;
  EQUAL(y[0], ldexpl(1, np), "a factor");
  EQUAL(y[1], want, "a result in the order of rank");
  MPI_Op_free(&op);
  free(all), free(part), free(counts);
}

/* Checks that inexact results have the same bits on all ranks, as far as their formats have the
 * bits. */
static void same_everywhere(void) {
  enum { PARTS = 3 };
  long double x[N], y[N];
  double mine[N][PARTS], *all = malloc((size_t)np * sizeof mine);
  for (int i = 0; i < N; i++) x[i] = 1 / (long double)(3 + me * N + i);
  MPI_Allreduce(x, y, N, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) {
    long double rest = rounded(y[i]);
    for (int k = 0; k < PARTS; k++) rest -= mine[i][k] = (double)rest;
  }
  MPI_Allgather(mine, N * PARTS, MPI_DOUBLE, all, N * PARTS, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int r = 0; r < np; r++)
    CHECK(!memcmp(all + r * N * PARTS, mine, sizeof mine), "the result differs from that of rank %d", r);
  free(all);
}

/* ---- windows ---- */

static void windows(void) {
  enum { PAIRS = 2 };
  struct memory {
    long double values[N], sums[N], swapped[1];
    pair pairs[PAIRS];
    record records[2];
  } * w, got;
  MPI_Win win;
  MPI_Win_allocate(sizeof *w, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w, &win);
  long double x[N], old[N];
  record r[2];
  int right = (me + 1) % np, left = (me + np - 1) % np;
  memset(w, 0, sizeof *w);
  w->swapped[0] = 3 + me;
  MPI_Win_fence(0, win);
  set(x, N);
  set_records(r, 2);
  MPI_Put(x, N, MPI_LONG_DOUBLE, right, offsetof(struct memory, values), N, MPI_LONG_DOUBLE, win);
  MPI_Put(r, 2, record_type, right, offsetof(struct memory, records), 2, record_type, win);
  for (int i = 0; i < N; i++) old[i] = operand(me, i);
  for (int t = 0; t < np; t++)
    MPI_Accumulate(old, N, MPI_LONG_DOUBLE, t, offsetof(struct memory, sums), N, MPI_LONG_DOUBLE, MPI_SUM, win);
  pair p[PAIRS];
  memset(p, 0, sizeof p);
  for (int i = 0; i < PAIRS; i++) p[i] = (pair){operand(me, i), me};
  for (int t = 0; t < np; t++)
    MPI_Accumulate(p, PAIRS, MPI_LONG_DOUBLE_INT, t, offsetof(struct memory, pairs), PAIRS, MPI_LONG_DOUBLE_INT,
                   MPI_MAXLOC, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < N; i++) {
    EQUAL(w->values[i], wanted(left, i), "a value that was put");
    EQUAL(w->sums[i], sum_to(np, i), "an accumulated sum");
  }
  for (int i = 0; i < 2; i++) check_record(&w->records[i], left, i, "a record that was put");
  for (int i = 0; i < PAIRS; i++) {
    int at = 0;
    for (int k = 1; k < np; k++)
      if (operand(k, i) > operand(at, i)) at = k;
    SAME(w->pairs[i].index, at, "the accumulated rank");
    EQUAL(w->pairs[i].value, operand(at, i), "the accumulated maximum");
  }
  for (int i = 0; i < N; i++) w->values[i] = value(me, i);
  set_records(w->records, 2);
  MPI_Win_fence(0, win);
  memset(&got, 0, sizeof got);
  MPI_Get(got.values, N, MPI_LONG_DOUBLE, right, offsetof(struct memory, values), N, MPI_LONG_DOUBLE, win);
  MPI_Get(got.records, 2, record_type, right, offsetof(struct memory, records), 2, record_type, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < N; i++) EQUAL(got.values[i], wanted(right, i), "a value that was got");
  for (int i = 0; i < 2; i++) check_record(&got.records[i], right, i, "a record that was got");
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
  long double four = 4, was = 0, more = value(me, 9);
  MPI_Request q;
  MPI_Fetch_and_op(&four, &was, MPI_LONG_DOUBLE, right, offsetof(struct memory, swapped), MPI_PROD, win);
  MPI_Win_flush(right, win);
  EQUAL(was, 3 + right, "the value before a product");
  MPI_Get_accumulate(&more, 1, MPI_LONG_DOUBLE, &was, 1, MPI_LONG_DOUBLE, right, offsetof(struct memory, swapped), 1,
                     MPI_LONG_DOUBLE, MPI_REPLACE, win);
  MPI_Win_flush(right, win);
  EQUAL(was, 4 * (3 + right), "the product");
  MPI_Rget(got.records, 1, record_type, right, offsetof(struct memory, records) + sizeof(record), 1, record_type, win,
           &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Win_flush(right, win); /* without it MPICH 4.0 has not stored all of it */
  check_record(&got.records[0], right, 1, "a record by request");
  MPI_Win_unlock(right, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
  EQUAL(w->swapped[0], value(left, 9), "the replaced value");
  MPI_Win_unlock(me, win);
  MPI_Win_free(&win);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int bits = LDBL_MANT_DIG, room = 1 << 20, version = MPI_VERSION, least;
  digits = malloc((size_t)np * sizeof *digits);
  MPI_Allgather(&bits, 1, MPI_INT, digits, 1, MPI_INT, MPI_COMM_WORLD);
  void *buffer = malloc((size_t)room);
  MPI_Buffer_attach(buffer, room);
  make_types();
  messages();
  exchanges();
  packed();
  MPI_Allreduce(&version, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
  if (least >= 4) partitions();
#endif
  moves();
  reductions();
  same_everywhere();
  windows();
  free_types();
  MPI_Buffer_detach(&buffer, &room);
  free(buffer), free(digits);
  line("long doubles have arrived");
  return finish();
}
