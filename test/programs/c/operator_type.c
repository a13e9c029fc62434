/* The datatype that a user's operator gets: the handle of the call, with its name, attribute and
 * constructor, in every kind of reduction, also if the program has freed the type and the operator
 * meanwhile. The library must not duplicate the type, because that would call the program's copy
 * function. With an argument also in persistent reductions. */
#include "check.h"
#include <stddef.h>

/* A 2x2 matrix, whose product does not commute, beside a tag that is no part of the type. */
typedef struct {
  double a;
  long tag;
  double b, c;
} matrix; /* {a b; 0 c} */

static MPI_Datatype type;
static int key, calls, copies, deletions;

static int copied(MPI_Datatype old, int k, void *extra, void *value, void *out, int *flag) {
  (void)old, (void)k, (void)extra;
  copies++;
  *(void **)out = value, *flag = 1;
  return MPI_SUCCESS;
}

static int deleted(MPI_Datatype old, int k, void *value, void *extra) {
  (void)old, (void)k, (void)value, (void)extra;
  deletions++;
  return MPI_SUCCESS;
}

static void product(void *in, void *inout, int *n, MPI_Datatype *t) {
  matrix *f = in, *g = inout;
  char name[MPI_MAX_OBJECT_NAME];
  void *value = NULL;
  int length, flag = 0, ints, addresses, types, combiner;
  calls++;
  CHECK(*t == type, "the operator got another handle");
  MPI_Type_get_name(*t, name, &length);
  CHECK(!strcmp(name, "matrix"), "the name is '%s'", name);
  MPI_Type_get_attr(*t, key, &value, &flag);
  CHECK(flag && value == &key, "flag %d", flag);
  MPI_Type_get_envelope(*t, &ints, &addresses, &types, &combiner);
  SAME(combiner, MPI_COMBINER_RESIZED, "combiner");
  for (int i = 0; i < *n; i++) {
    matrix r = {f[i].a * g[i].a, g[i].tag, f[i].a * g[i].b + f[i].b * g[i].c, f[i].c * g[i].c};
    g[i] = r;
  }
}

static void make(void) {
  MPI_Datatype whole;
  int lengths[2] = {1, 2};
  MPI_Aint at[2] = {offsetof(matrix, a), offsetof(matrix, b)};
  MPI_Type_create_hindexed(2, lengths, at, MPI_DOUBLE, &whole);
  MPI_Type_create_resized(whole, 0, sizeof(matrix), &type);
  MPI_Type_free(&whole);
  MPI_Type_commit(&type);
  MPI_Type_set_name(type, "matrix");
  MPI_Type_set_attr(type, key, &key);
}

static matrix of(int rank, int i) { return (matrix){1, -1, rank + i % 7, rank % 2 ? 1 : -1}; }
static matrix fold(int end, int i) {
  matrix m = of(0, i);
  for (int p = 1; p < end; p++) {
    matrix x = of(p, i);
    m = (matrix){m.a * x.a, 0, m.a * x.b + m.b * x.c, m.c * x.c};
  }
  return m;
}
static int wrong(const matrix *m, int n, int end, int first) {
  int bad = 0;
  for (int i = 0; i < n; i++) {
    matrix want = fold(end, first + i);
    bad += m[i].a != want.a || m[i].b != want.b || m[i].c != want.c;
  }
  return bad;
}

static void reductions(int n, MPI_Op op) {
  matrix *in = calloc((size_t)n * np, sizeof *in), *out = calloc((size_t)n * np, sizeof *out);
  int *counts = calloc(np, sizeof *counts);
  MPI_Request q;
  for (int i = 0; i < n * np; i++) in[i] = of(me, i);
  for (int p = 0; p < np; p++) counts[p] = n;
  MPI_Allreduce(in, out, n, type, op, MPI_COMM_WORLD);
  SAME(wrong(out, n, np, 0), 0, "Allreduce");
  MPI_Iallreduce(in, out, n, type, op, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  SAME(wrong(out, n, np, 0), 0, "Iallreduce");
  for (int root = 0; root < np; root++) {
    MPI_Ireduce(in, out, n, type, op, root, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    if (root == me) SAME(wrong(out, n, np, 0), 0, "Ireduce");
  }
  MPI_Iscan(in, out, n, type, op, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  SAME(wrong(out, n, me + 1, 0), 0, "Iscan");
  MPI_Iexscan(in, out, n, type, op, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  if (me) SAME(wrong(out, n, me, 0), 0, "Iexscan");
  MPI_Ireduce_scatter(in, out, counts, type, op, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  SAME(wrong(out, n, np, n * me), 0, "Ireduce_scatter");
  MPI_Ireduce_scatter_block(in, out, n, type, op, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  SAME(wrong(out, n, np, n * me), 0, "Ireduce_scatter_block");
  free(in), free(out), free(counts);
}

#if MPI_VERSION >= 4
/* Checks a persistent reduction whose type and operator are freed before its second start. */
static void persistent(int n) {
  matrix *in = calloc(n, sizeof *in), *out = calloc(n, sizeof *out);
  MPI_Op op;
  MPI_Request q;
  int before = deletions;
  for (int i = 0; i < n; i++) in[i] = of(me, i);
  make();
  MPI_Datatype gone = type;
  MPI_Op_create(product, 0, &op);
  MPI_Allreduce_init(in, out, n, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
  for (int round = 0; round < 3; round++) {
    MPI_Start(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    SAME(wrong(out, n, np, 0), 0, "Allreduce_init");
    if (round == 0) MPI_Op_free(&op), MPI_Type_free(&gone);
  }
  MPI_Request_free(&q);
  SAME(deletions - before, 1, "deletions of the attribute");
  free(in), free(out);
}
#endif

/* Frees the type and the operator while the reduction is in progress. The handle is still that of
 * the call, and the attribute is deleted once, when the type ends. */
static void freed(int n) {
  matrix *in = calloc(n, sizeof *in), *out = calloc(n, sizeof *out);
  MPI_Op op;
  MPI_Request q;
  int before = deletions;
  for (int i = 0; i < n; i++) in[i] = of(me, i);
  make();
  MPI_Op_create(product, 0, &op);
  MPI_Iallreduce(in, out, n, type, op, MPI_COMM_WORLD, &q);
  MPI_Datatype gone = type;
  MPI_Op_free(&op);
  MPI_Type_free(&gone);
  CHECK(gone == MPI_DATATYPE_NULL && op == MPI_OP_NULL);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  SAME(wrong(out, n, np, 0), 0, "Iallreduce of a type that was freed");
  SAME(deletions - before, 1, "deletions of the attribute");
  free(in), free(out);
}

/* Checks a receive into a type with gaps that is freed at once: it is not duplicated either. */
static void receive(void) {
  matrix in = {0}, out = of(me, 5);
  MPI_Request q;
  int before = deletions;
  make();
  MPI_Datatype gone = type;
  MPI_Irecv(&in, 1, type, (me + np - 1) % np, 3, MPI_COMM_WORLD, &q);
  MPI_Send(&out, 1, type, (me + 1) % np, 3, MPI_COMM_WORLD);
  MPI_Type_free(&gone);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  matrix want = of((me + np - 1) % np, 5);
  CHECK(in.a == want.a && in.b == want.b && in.c == want.c && in.tag == 0);
  SAME(deletions - before, 1, "deletions of the attribute");
}

int main(int argc, char **argv) {
  static const int sizes[] = {1, 7, 300, 5000};
  MPI_Op op;
  start(&argc, &argv);
  MPI_Type_create_keyval(copied, deleted, &key, NULL);
  make();
  MPI_Op_create(product, 0, &op);
  for (int s = 0; s < 4; s++) reductions(sizes[s], op);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  freed(9);
  freed(5000);
  receive();
#if MPI_VERSION >= 4
  if (argc > 1) persistent(9), persistent(5000);
#endif
  SAME(copies, 0, "calls of the copy function");
  CHECK(calls > 0);
  MPI_Type_free_keyval(&key);
  line("the operator got the program's type");
  return finish();
}
