/* Reductions: user-defined operators, commutative and not, on basic and derived types; MINLOC and
 * MAXLOC on all pair types; floating point and complex types with exactly representable values;
 * Reduce_local.
 */
#include "check.h"
#include <complex.h>

/* Composition of maps x -> a x + b modulo a prime: associative, not commutative. */
typedef struct {
  int a, b;
} map;
enum { P = 10007 };
static map compose(map f, map g) { return (map){(int)((long)f.a * g.a % P), (int)(((long)g.a * f.b + g.b) % P)}; }
static map map_of(int rank, int i) { return (map){(rank * 31 + i * 7) % (P - 1) + 1, (rank * 17 + i) % P}; }
static void op_compose(void *in, void *inout, int *n, MPI_Datatype *type) {
  map *f = in, *g = inout;
  (void)type;
  for (int i = 0; i < *n; i++) g[i] = compose(f[i], g[i]);
}
/* Composes the maps of a derived type with a gap, of which one element is two ints of three. */
static void op_compose_gap(void *in, void *inout, int *n, MPI_Datatype *type) {
  int *f = in, *g = inout;
  MPI_Aint lb, extent;
  MPI_Type_get_extent(*type, &lb, &extent);
  if (extent != 3 * sizeof(int)) failed(__FILE__, __LINE__, "extent %ld in the operator", (long)extent);
  for (int i = 0; i < *n; i++, f += 3, g += 3) {
    map r = compose((map){f[0], f[2]}, (map){g[0], g[2]});
    g[0] = r.a, g[2] = r.b;
  }
}
static void op_modular_sum(void *in, void *inout, int *n, MPI_Datatype *type) {
  int *f = in, *g = inout;
  (void)type;
  for (int i = 0; i < *n; i++) g[i] = (f[i] + g[i]) % P;
}
static map fold(int first, int last, int i) {
  map m = map_of(first, i);
  for (int p = first + 1; p <= last; p++) m = compose(m, map_of(p, i));
  return m;
}

static void user_operators(void) {
  MPI_Datatype pair, gap, gap0;
  MPI_Op op, op_gap, sum;
  int lengths[2] = {1, 1}, displs[2] = {0, 2};
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_indexed(2, lengths, displs, MPI_INT, &gap0);
  MPI_Type_create_resized(gap0, 0, 3 * sizeof(int), &gap);
  MPI_Type_commit(&pair), MPI_Type_commit(&gap);
  MPI_Op_create(op_compose, 0, &op);
  MPI_Op_create(op_compose_gap, 0, &op_gap);
  MPI_Op_create(op_modular_sum, 1, &sum);
  int commutes = -1;
  MPI_Op_commutative(op, &commutes);
  SAME(commutes, 0, "Op_commutative");
  MPI_Op_commutative(sum, &commutes);
  SAME(commutes, 1, "Op_commutative");
  static const int sizes[] = {1, 3, 700, 20000};
  for (int s = 0; s < 4; s++) {
    int n = sizes[s];
    map *a = malloc(n * np * sizeof *a), *b = malloc(n * np * sizeof *b);
    uint64_t h = 0;
#define WANT(what, first, last, at, count)                                                                   \
  do {                                                                                                       \
    for (int i = 0; i < (count); i++) {                                                                      \
      map w = fold(first, last, (at) + i);                                                                   \
      if (b[i].a != w.a || b[i].b != w.b) {                                                                  \
        failed(__FILE__, __LINE__, what " of %d: [%d] is %d,%d want %d,%d", n, i, b[i].a, b[i].b, w.a, w.b); \
        break;                                                                                               \
      }                                                                                                      \
    }                                                                                                        \
    h = digest(h, b, (count) * sizeof *b);                                                                   \
  } while (0)
#define AGAIN(len)                                        \
  do {                                                    \
    for (int i = 0; i < (len); i++) a[i] = map_of(me, i); \
    memcpy(b, a, (len) * sizeof *b);                      \
  } while (0)
    for (int root = 0; root < np; root++) {
      AGAIN(n);
      MPI_Reduce(a, b, n, pair, op, root, MPI_COMM_WORLD);
      if (me == root) WANT("reduce", 0, np - 1, 0, n);
      AGAIN(n);
      MPI_Reduce(me == root ? MPI_IN_PLACE : b, me == root ? b : NULL, n, pair, op, root, MPI_COMM_WORLD);
      if (me == root) WANT("reduce in place", 0, np - 1, 0, n);
    }
    AGAIN(n);
    MPI_Allreduce(a, b, n, pair, op, MPI_COMM_WORLD);
    WANT("allreduce", 0, np - 1, 0, n);
    AGAIN(n);
    MPI_Allreduce(MPI_IN_PLACE, b, n, pair, op, MPI_COMM_WORLD);
    WANT("allreduce in place", 0, np - 1, 0, n);
    AGAIN(n);
    MPI_Scan(a, b, n, pair, op, MPI_COMM_WORLD);
    WANT("scan", 0, me, 0, n);
    AGAIN(n);
    MPI_Scan(MPI_IN_PLACE, b, n, pair, op, MPI_COMM_WORLD);
    WANT("scan in place", 0, me, 0, n);
    AGAIN(n);
    MPI_Exscan(a, b, n, pair, op, MPI_COMM_WORLD);
    if (me > 0) WANT("exscan", 0, me - 1, 0, n);
    AGAIN(n);
    MPI_Exscan(MPI_IN_PLACE, b, n, pair, op, MPI_COMM_WORLD);
    if (me > 0) WANT("exscan in place", 0, me - 1, 0, n);
    AGAIN(n * np);
    MPI_Reduce_scatter_block(a, b, n, pair, op, MPI_COMM_WORLD);
    WANT("reduce_scatter_block", 0, np - 1, me * n, n);
    int *counts = malloc(np * sizeof *counts), before = 0;
    for (int p = 0; p < np; p++) counts[p] = p % 2 ? n : n / 2; /* some may be 0 */
    for (int p = 0; p < me; p++) before += counts[p];
    AGAIN(n * np);
    MPI_Reduce_scatter(a, b, counts, pair, op, MPI_COMM_WORLD);
    WANT("reduce_scatter", 0, np - 1, before, counts[me]);
    AGAIN(n * np);
    MPI_Reduce_scatter(MPI_IN_PLACE, b, counts, pair, op, MPI_COMM_WORLD);
    WANT("reduce_scatter in place", 0, np - 1, before, counts[me]);
    free(counts);
    line("composition of %d: %016llx", n, (unsigned long long)h);
    free(a), free(b);

    int *c = malloc(3 * n * sizeof *c), *d = malloc(3 * n * sizeof *d);
    for (int i = 0; i < n; i++) c[3 * i] = map_of(me, i).a, c[3 * i + 1] = -5, c[3 * i + 2] = map_of(me, i).b;
    for (int i = 0; i < 3 * n; i++) d[i] = -9;
    MPI_Allreduce(c, d, n, gap, op_gap, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
      map w = fold(0, np - 1, i);
      if (d[3 * i] != w.a || d[3 * i + 2] != w.b) {
        failed(__FILE__, __LINE__, "allreduce of a type with gaps at %d", i);
        break;
      }
    }
    MPI_Scan(c, d, n, gap, op_gap, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
      map w = fold(0, me, i);
      if (d[3 * i] != w.a || d[3 * i + 2] != w.b) {
        failed(__FILE__, __LINE__, "scan of a type with gaps at %d", i);
        break;
      }
    }
    MPI_Allreduce(c, d, n, MPI_INT, sum, MPI_COMM_WORLD);
    MPI_Reduce(me == 0 ? MPI_IN_PLACE : c, c, n, MPI_INT, sum, 0, MPI_COMM_WORLD);
    if (me == 0) CHECK(!memcmp(c, d, n * sizeof *c), "reduce and allreduce with a user operator differ");
    free(c), free(d);
  }
  int x[2] = {5, 6}, y[2] = {P - 1, 1};
  MPI_Reduce_local(x, y, 2, MPI_INT, sum);
  CHECK(y[0] == 4 && y[1] == 7, "Reduce_local");
  /* An operator and a type may be freed while a nonblocking reduction uses them. */
  map v = map_of(me, 3), w;
  MPI_Request r;
  MPI_Iallreduce(&v, &w, 1, pair, op, MPI_COMM_WORLD, &r);
  MPI_Op_free(&op), MPI_Op_free(&op_gap), MPI_Op_free(&sum);
  CHECK(op == MPI_OP_NULL, "Op_free left the handle");
  MPI_Type_free(&pair), MPI_Type_free(&gap), MPI_Type_free(&gap0);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  map want = fold(0, np - 1, 3);
  CHECK(w.a == want.a && w.b == want.b, "reduction with a freed operator");
}

#define LOCATIONS(T, M)                                                           \
  do {                                                                            \
    struct {                                                                      \
      T v;                                                                        \
      int i;                                                                      \
    } a[40], b[40];                                                               \
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);                               \
    for (int i = 0; i < 40; i++) a[i].v = (T)((me * 5 + i * 3) % 7), a[i].i = me; \
    for (int o = 0; o < 2; o++) {                                                 \
      MPI_Allreduce(a, b, 40, M, o ? MPI_MAXLOC : MPI_MINLOC, MPI_COMM_WORLD);    \
      for (int i = 0; i < 40; i++) {                                              \
        int at = 0;                                                               \
        for (int p = 1; p < np; p++) {                                            \
          int x = (p * 5 + i * 3) % 7, y = (at * 5 + i * 3) % 7;                  \
          if (o ? x > y : x < y) at = p;                                          \
        }                                                                         \
        SAME(b[i].i, at, #M);                                                     \
        SAME(b[i].v, (at * 5 + i * 3) % 7, #M);                                   \
      }                                                                           \
      MPI_Scan(a, b, 40, M, o ? MPI_MAXLOC : MPI_MINLOC, MPI_COMM_WORLD);         \
      for (int i = 0; i < 40; i++) {                                              \
        int at = 0;                                                               \
        for (int p = 1; p <= me; p++) {                                           \
          int x = (p * 5 + i * 3) % 7, y = (at * 5 + i * 3) % 7;                  \
          if (o ? x > y : x < y) at = p;                                          \
        }                                                                         \
        SAME(b[i].i, at, "scan " #M);                                             \
      }                                                                           \
    }                                                                             \
    line(#M);                                                                     \
  } while (0)

#define SUMS(T, M)                                                                                         \
  do {                                                                                                     \
    T a[33], b[33];                                                                                        \
    for (int i = 0; i < 33; i++) a[i] = (T)(me + i % 5), b[i] = 0;                                         \
    MPI_Allreduce(a, b, 33, M, MPI_SUM, MPI_COMM_WORLD);                                                   \
    for (int i = 0; i < 33; i++) CHECK(b[i] == (T)(np * (np - 1) / 2 + np * (i % 5)), #M " sum at %d", i); \
    MPI_Reduce(a, b, 33, M, MPI_PROD, np - 1, MPI_COMM_WORLD);                                             \
    if (me == np - 1)                                                                                      \
      for (int i = 0; i < 33; i++) {                                                                       \
        T w = 1;                                                                                           \
        for (int p = 0; p < np; p++) w *= (T)(p + i % 5);                                                  \
        CHECK(b[i] == w, #M " product at %d", i);                                                          \
      }                                                                                                    \
    line(#M);                                                                                              \
  } while (0)

int main(int argc, char **argv) {
  start(&argc, &argv);
  user_operators();
  LOCATIONS(int, MPI_2INT);
  LOCATIONS(float, MPI_FLOAT_INT);
  LOCATIONS(double, MPI_DOUBLE_INT);
  LOCATIONS(long, MPI_LONG_INT);
  LOCATIONS(short, MPI_SHORT_INT);
  LOCATIONS(long double, MPI_LONG_DOUBLE_INT);
  SUMS(signed char, MPI_SIGNED_CHAR);
  SUMS(unsigned char, MPI_UNSIGNED_CHAR);
  SUMS(short, MPI_SHORT);
  SUMS(unsigned short, MPI_UNSIGNED_SHORT);
  SUMS(unsigned, MPI_UNSIGNED);
  SUMS(long, MPI_LONG);
  SUMS(unsigned long, MPI_UNSIGNED_LONG);
  SUMS(long long, MPI_LONG_LONG);
  SUMS(float, MPI_FLOAT);
  SUMS(double, MPI_DOUBLE);
  SUMS(long double, MPI_LONG_DOUBLE);
  SUMS(int8_t, MPI_INT8_T);
  SUMS(uint16_t, MPI_UINT16_T);
  SUMS(int64_t, MPI_INT64_T);
  SUMS(float complex, MPI_C_FLOAT_COMPLEX);
  SUMS(double complex, MPI_C_DOUBLE_COMPLEX);
  return finish();
}
