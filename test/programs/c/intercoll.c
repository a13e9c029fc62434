/* Collectives between two groups, blocking and nonblocking, several at once, roots in both groups,
 * types with gaps, operators that do not commute, counts of zero. Every result is compared with
 * MPI's definition, and printed. With an argument those with a root are nonblocking too: natively
 * (Open MPI 4.1, 3 ranks) the program hung there, for an unknown reason. */
#include "check.h"

enum { N = 5 };
static MPI_Comm world;
static int mine, others, rank;
static int my_world[64], other_world[64]; /* world ranks */

static int shape(int which, int r) {
  switch (which) {
  case 0: return r >= (np + 1) / 2;
  case 1: return r % 2 == 0;
  default: return r != np - 1;
  }
}

static int value(int from, int to, int i) { return from * 10000 + to * 100 + i; }

static void same(const char *what, const int *got, int n, int (*want)(int i)) {
  for (int i = 0; i < n; i++) {
    if (got[i] == want(i)) continue;
    failed(__FILE__, __LINE__, "%s: element %d is %d, want %d", what, i, got[i], want(i));
    return;
  }
  line("%s: %016llx", what, (unsigned long long)digest(0, got, (size_t)n * sizeof *got));
}

/* a*x+b, composed: associative, does not commute. */
typedef struct affine {
  int64_t a, b;
} affine;
static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
  affine *x = in, *y = inout;
  (void)type;
  for (int i = 0; i < *n; i++) y[i] = (affine){(x[i].a * y[i].a) % 1000003, (x[i].b * y[i].a + y[i].b) % 1000003};
}
static affine map_of(int w, int i) { return (affine){w + 2 + i, 3 * w + i + 1}; }
static affine all_of(const int *w, int n, int i) {
  affine sum = map_of(w[0], i);
  for (int k = 1; k < n; k++) {
    affine next = map_of(w[k], i);
    int one = 1;
    compose(&sum, &next, &one, NULL);
    sum = next;
  }
  return sum;
}

static int root_world, first_other;
static int want_bcast(int i) { return value(root_world, 0, i); }
static int want_gather(int i) { return value(other_world[i / N], me, i % N); }
static int want_gatherv(int i) {
  return i % (2 * N) < other_world[i / (2 * N)] % N ? value(other_world[i / (2 * N)], me, i % (2 * N)) : -1;
}
static int want_scatter(int i) { return value(root_world, me, i); }
static int want_all(int i) { return value(other_world[i / N], 0, i % N); }
static int want_to_all(int i) { return value(other_world[i / N], me, i % N); }
static int want_sum(int i) {
  int s = 0;
  for (int k = 0; k < others; k++) s += value(other_world[k], 0, first_other + i);
  return s;
}

/* Runs the rooted collectives: the root is rank r of group g. */
static void rooted(MPI_Comm c, int group, int g, int r, int nonblocking) {
  static int buf[64 * N * 2], out[64 * N * 2], counts[64], displs[64];
  MPI_Request req = MPI_REQUEST_NULL;
  int root = g != group ? r : r == rank ? MPI_ROOT : MPI_PROC_NULL, n = others;
  root_world = g == group ? my_world[r] : other_world[r];
#define RUN(X, IX, ...)                  \
  do {                                   \
    if (nonblocking) {                   \
      IX(__VA_ARGS__, c, &req);          \
      MPI_Wait(&req, MPI_STATUS_IGNORE); \
    } else X(__VA_ARGS__, c);            \
  } while (0)
  for (int i = 0; i < N; i++) buf[i] = root == MPI_ROOT ? value(me, 0, i) : -1;
  if (root == MPI_PROC_NULL) RUN(MPI_Bcast, MPI_Ibcast, NULL, 0, MPI_INT, root);
  else RUN(MPI_Bcast, MPI_Ibcast, buf, N, MPI_INT, root);
  if (root >= 0) same("bcast", buf, N, want_bcast);

  for (int i = 0; i < N; i++) buf[i] = value(me, root_world, i);
  memset(out, 0xff, sizeof out);
  RUN(MPI_Gather, MPI_Igather, buf, N, MPI_INT, out, N, MPI_INT, root);
  if (root == MPI_ROOT) same("gather", out, n * N, want_gather);

  memset(out, 0xff, sizeof out);
  for (int k = 0; k < n; k++) counts[k] = other_world[k] % N, displs[k] = k * 2 * N;
  RUN(MPI_Gatherv, MPI_Igatherv, buf, me % N, MPI_INT, out, counts, displs, MPI_INT, root);
  if (root == MPI_ROOT) same("gatherv", out, n * 2 * N, want_gatherv);

  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) buf[k * N + i] = value(me, other_world[k], i);
  memset(out, 0xff, sizeof out);
  RUN(MPI_Scatter, MPI_Iscatter, buf, N, MPI_INT, out, N, MPI_INT, root);
  if (root >= 0) same("scatter", out, N, want_scatter);
  for (int k = 0; k < n; k++) counts[k] = other_world[k] % N, displs[k] = k * N;
  memset(out, 0xff, sizeof out);
  RUN(MPI_Scatterv, MPI_Iscatterv, buf, counts, displs, MPI_INT, out, me % N, MPI_INT, root);
  if (root >= 0) same("scatterv", out, me % N, want_scatter);

  for (int i = 0; i < N; i++) buf[i] = value(me, 0, i);
  memset(out, 0xff, sizeof out);
  first_other = 0;
  RUN(MPI_Reduce, MPI_Ireduce, buf, out, N, MPI_INT, MPI_SUM, root);
  if (root == MPI_ROOT) same("reduce", out, N, want_sum);
}

static void affine_reductions(MPI_Comm c, int group, int nonblocking) {
  MPI_Datatype pair;
  MPI_Op op;
  MPI_Request req;
  affine in[3], out[3];
  MPI_Type_contiguous(2, MPI_INT64_T, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(compose, 0, &op);
  for (int i = 0; i < 3; i++) in[i] = map_of(me, i);
  memset(out, 0, sizeof out);
  RUN(MPI_Reduce, MPI_Ireduce, in, out, 3, pair, op, group == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
  for (int i = 0; i < 3 && group == 0 && rank == 0; i++) {
    affine want = all_of(other_world, others, i);
    CHECK(want.a == out[i].a && want.b == out[i].b, "reduce: %ld %ld, want %ld %ld", out[i].a, out[i].b, want.a,
          want.b);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
}

static void everyone(MPI_Comm c, int nonblocking) {
  static int buf[64 * N * 2], out[64 * N * 64], counts[64], displs[64], rcounts[64], rdispls[64];
  MPI_Request req = MPI_REQUEST_NULL;
  int n = others;
  for (int i = 0; i < N; i++) buf[i] = value(me, 0, i);
  memset(out, 0xff, sizeof out);
  RUN(MPI_Allgather, MPI_Iallgather, buf, N, MPI_INT, out, N, MPI_INT);
  same("allgather", out, n * N, want_all);
  memset(out, 0xff, sizeof out);
  for (int k = 0; k < n; k++) rcounts[k] = 1 + other_world[k] % 3, rdispls[k] = k * N;
  RUN(MPI_Allgatherv, MPI_Iallgatherv, buf, 1 + me % 3, MPI_INT, out, rcounts, rdispls, MPI_INT);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) SAME(out[k * N + i], i < rcounts[k] ? want_all(k * N + i) : -1, "allgatherv");
  line("allgatherv: %016llx", (unsigned long long)digest(0, out, (size_t)n * N * sizeof *out));

  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) buf[k * N + i] = value(me, other_world[k], i);
  memset(out, 0xff, sizeof out);
  RUN(MPI_Alltoall, MPI_Ialltoall, buf, N, MPI_INT, out, N, MPI_INT);
  same("alltoall", out, n * N, want_to_all);
  memset(out, 0xff, sizeof out);
  for (int k = 0; k < n; k++) {
    counts[k] = (me + other_world[k]) % (N + 1), displs[k] = k * N;
    rcounts[k] = counts[k], rdispls[k] = k * N;
  }
  RUN(MPI_Alltoallv, MPI_Ialltoallv, buf, counts, displs, MPI_INT, out, rcounts, rdispls, MPI_INT);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) SAME(out[k * N + i], i < rcounts[k] ? want_to_all(k * N + i) : -1, "alltoallv");
  /* From one kind of element into another: every second int. */
  MPI_Datatype gaps, types[64], ints[64];
  MPI_Type_vector(1, 1, 2, MPI_INT, &gaps);
  MPI_Datatype wide;
  MPI_Type_create_resized(gaps, 0, 2 * sizeof(int), &wide);
  MPI_Type_commit(&wide);
  for (int k = 0; k < n; k++)
    types[k] = wide, ints[k] = MPI_INT, displs[k] *= sizeof(int), rdispls[k] *= 2 * sizeof(int);
  memset(out, 0xff, sizeof out);
  RUN(MPI_Alltoallw, MPI_Ialltoallw, buf, counts, displs, ints, out, rcounts, rdispls, types);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) {
      SAME(out[2 * (k * N + i)], i < rcounts[k] ? want_to_all(k * N + i) : -1, "alltoallw");
      SAME(out[2 * (k * N + i) + 1], -1, "gap of alltoallw");
    }
  MPI_Type_free(&wide);
  MPI_Type_free(&gaps);

  for (int i = 0; i < N; i++) buf[i] = value(me, 0, i);
  memset(out, 0xff, sizeof out);
  first_other = 0;
  RUN(MPI_Allreduce, MPI_Iallreduce, buf, out, N, MPI_INT, MPI_SUM);
  same("allreduce", out, N, want_sum);

  /* Both groups have mine*others elements. */
  int total = mine * others;
  for (int i = 0; i < total; i++) buf[i] = value(me, 0, i);
  memset(out, 0xff, sizeof out);
  first_other = rank * others;
  RUN(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, buf, out, others, MPI_INT, MPI_SUM);
  same("reduce_scatter_block", out, others, want_sum);
  memset(out, 0xff, sizeof out);
  for (int k = 0; k < mine; k++) counts[k] = k == 0 ? total : 0; /* all to the first rank */
  first_other = 0;
  RUN(MPI_Reduce_scatter, MPI_Ireduce_scatter, buf, out, counts, MPI_INT, MPI_SUM);
  same("reduce_scatter", out, counts[rank], want_sum);
  CHECK(out[counts[rank]] == -1, "reduce_scatter wrote too far");
#undef RUN
}

/* Runs several collectives at once, with messages between them, completed in another order. */
static void at_once(MPI_Comm c, int group, int nonblocking_roots) {
  int a[N], sum = 0, token = -1, x = me, all[64];
  MPI_Request r[6];
  int root = group == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, peer = rank < others ? rank : MPI_PROC_NULL;
  for (int i = 0; i < N; i++) a[i] = root == MPI_ROOT ? 5 + i : 0;
  MPI_Irecv(&token, 1, MPI_INT, peer, 3, c, &r[0]);
  if (nonblocking_roots) MPI_Ibcast(a, N, MPI_INT, root, c, &r[1]);
  else MPI_Bcast(a, N, MPI_INT, root, c), r[1] = MPI_REQUEST_NULL;
  MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c, &r[2]);
  MPI_Isend(&x, 1, MPI_INT, peer, 3, c, &r[3]);
  MPI_Ibarrier(c, &r[4]);
  MPI_Iallgather(&x, 1, MPI_INT, all, 1, MPI_INT, c, &r[5]);
  MPI_Waitall(3, r + 3, MPI_STATUSES_IGNORE);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
  int want = 0;
  for (int k = 0; k < others; k++) {
    want += other_world[k];
    SAME(all[k], other_world[k], "iallgather among others");
  }
  SAME(sum, want, "iallreduce among others");
  if (root >= 0) SAME(a[N - 1], 5 + N - 1, "ibcast among others");
  if (peer != MPI_PROC_NULL) SAME(token, other_world[peer], "message among collectives");
}

static void each(int which, int all) {
  int group = shape(which, me), lead[2] = {-1, -1};
  MPI_Comm local, c;
  for (int w = np - 1; w >= 0; w--) lead[shape(which, w)] = w;
  mine = others = 0;
  for (int w = 0; w < np; w++) *(shape(which, w) == group ? &my_world[mine++] : &other_world[others++]) = w;
  MPI_Comm_split(world, group, me, &local);
  MPI_Comm_rank(local, &rank);
  MPI_Intercomm_create(local, 0, world, lead[!group], 1, &c);
  line("shape %d", which);
  for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
    MPI_Barrier(c);
    for (int g = 0; g < 2; g++)
      for (int r = 0; r < (g == group ? mine : others); r++) rooted(c, group, g, r, nonblocking && all);
    affine_reductions(c, group, nonblocking && all);
    everyone(c, nonblocking);
  }
  at_once(c, group, all);

  /* Large: more than an eager message for each. */
  enum { LARGE = 200000 };
  double *x = malloc(LARGE * sizeof *x), *y = malloc(LARGE * sizeof *y), sum = 0;
  for (int i = 0; i < LARGE; i++) x[i] = me + i % 7;
  MPI_Allreduce(x, y, LARGE, MPI_DOUBLE, MPI_SUM, c);
  for (int k = 0; k < others; k++) sum += other_world[k] + (LARGE - 1) % 7;
  CHECK(y[LARGE - 1] == sum, "large allreduce: %g, want %g", y[LARGE - 1], sum);
  free(x), free(y);

  int scan = 0, class_;
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Scan(&me, &scan, 1, MPI_INT, MPI_SUM, c), &class_);
  SAME(class_, MPI_ERR_COMM, "class of a scan");
  MPI_Comm_free(&local);
  MPI_Comm_free(&c);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  for (int which = 0; which < 3; which++) each(which, argc > 1);
  MPI_Comm_free(&world);
  return finish();
}
