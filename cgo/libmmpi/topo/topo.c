/* Virtual topologies. Those of communicators that span clusters are kept here, all others by the
 * native library, also those of a part that lies inside one cluster. */
#include "topo/topo.h"
#include "comm/comm.h"
#include <string.h>

static zattached *copy_topo(const zattached *base) {
  const ztopo *t = (const ztopo *)base;
  ztopo *copy = ztopo_make(t->kind, t->n, t->m);
  if (!copy) return NULL;
  memcpy(copy, t, sizeof *t + (size_t)t->length * sizeof t->data[0]);
  return &copy->base;
}

static void drop_topo(zattached *base) { free(base); }

ztopo *ztopo_make(int kind, int n, int m) {
  int length = kind == MPI_CART ? 2 * n : kind == MPI_GRAPH ? n + m : 2 * (n + m);
  ztopo *t = calloc(1, sizeof *t + (size_t)length * sizeof t->data[0]);
  if (t) *t = (ztopo){.base = {copy_topo, drop_topo}, .kind = kind, .n = n, .m = m, .length = length};
  return t;
}

/* ---- arithmetic ---- */

int zcart_rank(const ztopo *t, const int *coords) {
  int rank = 0;
  for (int d = 0; d < t->n; d++) {
    int size = t->data[d], c = coords[d];
    if (t->data[t->n + d]) c = (c % size + size) % size;
    if (c < 0 || c >= size) return MPI_PROC_NULL;
    rank = rank * size + c;
  }
  return rank;
}

void zcart_coords(const ztopo *t, int rank, int *coords) {
  for (int d = t->n - 1; d >= 0; d--) {
    coords[d] = rank % t->data[d];
    rank /= t->data[d];
  }
}

int zcart_shift(const ztopo *t, int rank, int dim, int by) {
  int stride = 1, size = t->data[dim];
  for (int d = t->n - 1; d > dim; d--) stride *= t->data[d];
  int c = rank / stride % size;
  int64_t to = (int64_t)c + by;
  if (t->data[t->n + dim]) to = (to % size + size) % size;
  if (to < 0 || to >= size) return MPI_PROC_NULL;
  return rank + ((int)to - c) * stride;
}

int ztopo_neighbors(const ztopo *t, int rank, int *indegree, int **in, int *outdegree, int **out) {
  int first = t->kind == MPI_GRAPH && rank ? t->data[rank - 1] : 0;
  *indegree = t->kind == MPI_CART ? 2 * t->n : t->kind == MPI_GRAPH ? t->data[rank] - first : t->n;
  *outdegree = t->kind == MPI_DIST_GRAPH ? t->m : *indegree;
  *in = malloc((size_t)(*indegree + 1) * sizeof **in);
  *out = t->kind == MPI_DIST_GRAPH ? malloc((size_t)(*outdegree + 1) * sizeof **out) : *in;
  if (!*in || !*out) return MPI_ERR_NO_MEM;
  for (int i = 0; i < *indegree; i++)
    (*in)[i] = t->kind == MPI_CART    ? zcart_shift(t, rank, i / 2, i % 2 ? 1 : -1)
               : t->kind == MPI_GRAPH ? t->data[t->n + first + i]
                                      : t->data[i];
  for (int i = 0; t->kind == MPI_DIST_GRAPH && i < *outdegree; i++) (*out)[i] = t->data[2 * t->n + i];
  return MPI_SUCCESS;
}

/* ---- errors ---- */

int ztopo_fails(zcomm *c, int class_, const char *function, const char *why) {
  return z_raise(c, class_, function, "%s", why);
}
int ztopo_no_inter(zcomm *c, const char *function) {
  return ztopo_fails(c, MPI_ERR_COMM, function, "an intercommunicator has no topology");
}
