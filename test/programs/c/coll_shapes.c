/* Collectives on communicators whose ranks are in another order than the world's: reversed,
 * alternating, shuffled, part of the world, so that the ranks of the clusters interleave; with
 * operators that do and do not commute, one element to several segments, every root.
 */
#include "check.h"

/* Maps x -> a x + b modulo a prime under composition: associative, not commutative. */
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

static MPI_Datatype pair;
static MPI_Op op;
static MPI_Comm comm;
static const char *shape;
static int rank, size, n, counts[64], displs[64], total;

/* Checks the elements at..at+count of the composition of ranks first..last. */
static void expect(const char *what, const map *got, int first, int last, int at, int count) {
  for (int i = 0; i < count; i++) {
    map m = map_of(first, at + i);
    for (int p = first + 1; p <= last; p++) m = compose(m, map_of(p, at + i));
    if (got[i].a != m.a || got[i].b != m.b) {
      failed(__FILE__, __LINE__, "%s, %s of %d on rank %d of %d: [%d] is %d,%d want %d,%d", shape, what, n, rank, size,
             i, got[i].a, got[i].b, m.a, m.b);
      return;
    }
  }
}

static void reductions(map *a, map *b) {
  for (int i = 0; i < total; i++) a[i] = map_of(rank, i);
  for (int root = 0; root < size; root++) {
    MPI_Reduce(a, b, n, pair, op, root, comm);
    if (rank == root) expect("reduce", b, 0, size - 1, 0, n);
    memcpy(b, a, n * sizeof *b);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : b, rank == root ? b : NULL, n, pair, op, root, comm);
    if (rank == root) expect("reduce in place", b, 0, size - 1, 0, n);
  }
  MPI_Allreduce(a, b, n, pair, op, comm);
  expect("allreduce", b, 0, size - 1, 0, n);
  memcpy(b, a, n * sizeof *b);
  MPI_Allreduce(MPI_IN_PLACE, b, n, pair, op, comm);
  expect("allreduce in place", b, 0, size - 1, 0, n);
  MPI_Scan(a, b, n, pair, op, comm);
  expect("scan", b, 0, rank, 0, n);
  memcpy(b, a, n * sizeof *b);
  MPI_Exscan(MPI_IN_PLACE, b, n, pair, op, comm);
  if (rank > 0) expect("exscan in place", b, 0, rank - 1, 0, n);
  MPI_Reduce_scatter(a, b, counts, pair, op, comm);
  expect("reduce_scatter", b, 0, size - 1, displs[rank], counts[rank]);
}

/* Checks that every rank and every repetition has the same bits, though float sums depend on the
 * order. */
static void float_sums(void) {
  double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
  for (int i = 0; i < n; i++) a[i] = (double)(int64_t)mix((uint64_t)(rank * 1000003 + i)) / 3e7;
  MPI_Allreduce(a, b, n, MPI_DOUBLE, MPI_SUM, comm);
  uint64_t mine = digest(0, b, n * sizeof *b), *all = malloc(size * sizeof *all);
  MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, comm);
  for (int p = 0; p < size; p++) CHECK(all[p] == mine, "%s: ranks %d and %d got other sums", shape, rank, p);
  for (int again = 0; again < 3; again++) {
    MPI_Allreduce(a, c, n, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(!memcmp(b, c, n * sizeof *b), "%s: repeated allreduce of %d gave other bits", shape, n);
  }
  free(a), free(b), free(c), free(all);
}

static void movement(map *a, map *b) {
  for (int root = 0; root < size; root++) {
    for (int i = 0; i < n; i++) a[i] = rank == root ? map_of(root, i) : (map){0, 0};
    MPI_Bcast(a, n, pair, root, comm);
    expect("bcast", a, root, root, 0, n);
    for (int i = 0; i < counts[rank]; i++) a[i] = map_of(rank, i);
    MPI_Gatherv(a, counts[rank], pair, b, counts, displs, pair, root, comm);
    if (rank == root)
      for (int p = 0; p < size; p++) expect("gatherv", b + displs[p], p, p, 0, counts[p]);
    MPI_Scatterv(b, counts, displs, pair, a, counts[rank], pair, root, comm);
    expect("scatterv", a, rank, rank, 0, counts[rank]);
  }
  for (int i = 0; i < counts[rank]; i++) a[i] = map_of(rank, i);
  MPI_Allgatherv(a, counts[rank], pair, b, counts, displs, pair, comm);
  for (int p = 0; p < size; p++) expect("allgatherv", b + displs[p], p, p, 0, counts[p]);
  for (int p = 0; p < size; p++)
    for (int i = 0; i < n; i++) a[p * n + i] = map_of(rank, p * n + i);
  MPI_Alltoall(a, n, pair, b, n, pair, comm);
  for (int p = 0; p < size; p++) expect("alltoall", b + p * n, p, p, rank * n, n);
}

static void everything(const char *name, int color, int key) {
  static const int sizes[] = {1, 900, 40000};
  shape = name;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
  for (int s = 0; s < 3; s++) {
    n = sizes[s], total = 0;
    for (int p = 0; p < size; p++)
      counts[p] = p % 3 == 1 ? 0 : n - p % 2 * (n / 2), displs[p] = total, total += counts[p];
    int room = total > n * size ? total : n * size;
    map *a = malloc((room + 1) * sizeof *a), *b = malloc((room + 1) * sizeof *b);
    reductions(a, b);
    movement(a, b);
    float_sums();
    free(a), free(b);
  }
  line("%s: rank %d of %d", name, rank, size);
  MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(op_compose, 0, &op);
  int half = (np + 1) / 2;
  everything("reversed", 0, -me);
  everything("alternating", 0, me < half ? 2 * me : 2 * (me - half) + 1);
  for (int seed = 0; seed < 2; seed++) everything("shuffled", 0, (int)(mix((uint64_t)(seed * 1000 + me)) >> 40));
  everything("without the second", me == 1 ? MPI_UNDEFINED : 0, -me);
  everything("even and odd", me % 2, me);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  return finish();
}
