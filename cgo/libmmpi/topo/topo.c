/* Virtual topologies: kept here for communicators that span clusters, by the native library for all
 * others (also for a part of one that lies inside a cluster). */
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

/* ---- making ---- */

int ztopo_fails(zcomm *c, int class_, const char *function, const char *why) {
  return z_raise(c, class_, function, "%s", why);
}
int ztopo_no_inter(zcomm *c, const char *function) {
  return ztopo_fails(c, MPI_ERR_COMM, function, "an intercommunicator has no topology");
}

int ztopo_comm(zcomm *c, ztopo *t, int color, int position, const char *function, MPI_Comm *out) {
  MPI_Comm plain;
  int rc = zcomm_split(c, color, position, function, &plain);
  zcomm *made = rc ? NULL : zcomm_find(plain);
  *out = rc ? MPI_COMM_NULL : plain;
  if (made) {
    made->topo = &t->base;
    return MPI_SUCCESS;
  }
  if (!rc && plain != MPI_COMM_NULL) { /* inside one cluster: the native library's */
    if (!(rc = zcomm_meet(plain))) {
      if (t->kind == MPI_CART) rc = real.Cart_create(plain, t->n, t->data, t->data + t->n, 0, out);
      else rc = real.Graph_create(plain, t->n, t->data, t->data + t->n, 0, out);
    }
    real.Comm_free(&plain);
  }
  free(t);
  return rc;
}

int ztopo_reorder(zcomm *c, const ztopo *t, int n, int reorder, const char *function, int *position) {
  for (int i = 0; i < n; i++) position[i] = i;
  if (!reorder) return MPI_SUCCESS;
  int *cluster = malloc((size_t)c->size * sizeof *cluster);
  int rc = cluster ? zcomm_allgather(c, &z_layout.cluster, sizeof *cluster, cluster, function)
                   : ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  int failed = rc                    ? 0
               : t->kind == MPI_CART ? zreorder_cart(t, n, cluster, position)
                                     : zreorder_graph(n, t->data, t->data + t->n, cluster, position);
  free(cluster);
  return failed ? ztopo_fails(c, failed, function, "no memory") : rc;
}

static int create(zcomm *c, ztopo *t, int n, int reorder, const char *function, MPI_Comm *out) {
  int *position = malloc((size_t)(n + 1) * sizeof *position);
  int rc = position ? ztopo_reorder(c, t, n, reorder, function, position)
                    : ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  int mine = c->rank < n && !rc ? position[c->rank] : -1;
  free(position);
  if (rc) {
    free(t);
    return rc;
  }
  return ztopo_comm(c, t, mine < 0 ? -1 : 0, mine, function, out);
}

int z_Cart_create(MPI_Comm comm, int nd, const int dims[], const int periods[], int reorder, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    return rc ? rc : real.Cart_create(comm, nd, dims, periods, reorder, out);
  }
  if (c->inter) return ztopo_no_inter(c, "MPI_Cart_create");
  int64_t n = 1;
  if (nd < 0) return ztopo_fails(c, MPI_ERR_DIMS, "MPI_Cart_create", "the number of dimensions is negative");
  for (int d = 0; d < nd; d++) {
    if (dims[d] < 1 || (n *= dims[d]) > c->size)
      return ztopo_fails(c, MPI_ERR_DIMS, "MPI_Cart_create",
                         "want dimensions of at least 1 with at most as many positions as ranks");
  }
  ztopo *t = ztopo_make(MPI_CART, nd, 0);
  if (!t) return ztopo_fails(c, MPI_ERR_NO_MEM, "MPI_Cart_create", "no memory");
  for (int d = 0; d < nd; d++) t->data[d] = dims[d], t->data[nd + d] = periods[d] != 0;
  return create(c, t, (int)n, reorder, "MPI_Cart_create", out);
}

int z_Graph_create(MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    return rc ? rc : real.Graph_create(comm, n, index, edges, reorder, out);
  }
  if (c->inter) return ztopo_no_inter(c, "MPI_Graph_create");
  int m = n > 0 ? index[n - 1] : 0, ok = n >= 0 && n <= c->size && m >= 0;
  for (int i = 0; ok && i < n; i++) ok = index[i] >= (i ? index[i - 1] : 0);
  for (int i = 0; ok && i < m; i++) ok = edges[i] >= 0 && edges[i] < n;
  if (!ok)
    return ztopo_fails(c, MPI_ERR_TOPOLOGY, "MPI_Graph_create",
                       "want at most as many nodes as ranks, rising indices, and edges to nodes");
  ztopo *t = ztopo_make(MPI_GRAPH, n, m);
  if (!t) return ztopo_fails(c, MPI_ERR_NO_MEM, "MPI_Graph_create", "no memory");
  if (n) memcpy(t->data, index, (size_t)n * sizeof *index);
  if (m) memcpy(t->data + n, edges, (size_t)m * sizeof *edges);
  return create(c, t, n, reorder, "MPI_Graph_create", out);
}

int z_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    return rc ? rc : real.Cart_sub(comm, remain, out);
  }
  const ztopo *t = ztopo_of(c);
  if (!t || t->kind != MPI_CART)
    return ztopo_fails(c, MPI_ERR_TOPOLOGY, "MPI_Cart_sub", "the communicator has no Cartesian topology");
  int kept = 0, color = 0, key = 0, *coords = malloc((size_t)(t->n + 1) * sizeof *coords);
  for (int d = 0; d < t->n; d++) kept += remain[d] != 0;
  ztopo *sub = ztopo_make(MPI_CART, kept, 0);
  if (!coords || !sub) {
    free(coords), free(sub);
    return ztopo_fails(c, MPI_ERR_NO_MEM, "MPI_Cart_sub", "no memory");
  }
  zcart_coords(t, c->rank, coords);
  for (int d = 0, k = 0; d < t->n; d++) {
    int *line = remain[d] ? &key : &color;
    *line = *line * t->data[d] + coords[d];
    if (!remain[d]) continue;
    sub->data[k] = t->data[d];
    sub->data[kept + k++] = t->data[t->n + d];
  }
  free(coords);
  return ztopo_comm(c, sub, color, key, "MPI_Cart_sub", out);
}

/* The native library's answers are good enough: this process keeps its rank. */
static int map(zcomm *c, int64_t n, int *newrank, const char *function) {
  if (c->inter) return ztopo_no_inter(c, function);
  if (n > c->size)
    return ztopo_fails(c, MPI_ERR_TOPOLOGY, function,
                       "the topology has more positions than the communicator has ranks");
  *newrank = c->rank < n ? c->rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int z_Cart_map(MPI_Comm comm, int nd, const int dims[], const int periods[], int *newrank) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Cart_map(comm, nd, dims, periods, newrank);
  int64_t n = 1;
  for (int d = 0; d < nd && n <= c->size; d++) n *= dims[d];
  return map(c, n, newrank, "MPI_Cart_map");
}

int z_Graph_map(MPI_Comm comm, int n, const int index[], const int edges[], int *newrank) {
  zcomm *c = zcomm_find(comm);
  return c ? map(c, n, newrank, "MPI_Graph_map") : real.Graph_map(comm, n, index, edges, newrank);
}

/* ---- asking ---- */

int z_Topo_test(MPI_Comm comm, int *kind) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Topo_test(comm, kind);
  const ztopo *t = ztopo_of(c);
  *kind = t ? t->kind : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

/* The topology, or NULL after raising that it is not there. */
static const ztopo *asked(zcomm *c, int kind, const char *function, int *rc) {
  const ztopo *t = ztopo_of(c);
  *rc = MPI_SUCCESS;
  if (t && t->kind == kind) return t;
  *rc = ztopo_fails(c, MPI_ERR_TOPOLOGY, function, "the communicator has no such topology");
  return NULL;
}

static int smaller(int a, int b) { return a < b ? a : b; }

static void copy(int *to, const int *from, int n) {
  if (n > 0) memcpy(to, from, (size_t)n * sizeof *to);
}

#define ASK(kind, NAME, ...)                          \
  zcomm *c = zcomm_find(comm);                        \
  if (!c) return real.NAME(comm, __VA_ARGS__);        \
  int rc;                                             \
  const ztopo *t = asked(c, kind, "MPI_" #NAME, &rc); \
  if (!t) return rc

int z_Cartdim_get(MPI_Comm comm, int *nd) {
  ASK(MPI_CART, Cartdim_get, nd);
  *nd = t->n;
  return MPI_SUCCESS;
}

int z_Cart_get(MPI_Comm comm, int max, int dims[], int periods[], int coords[]) {
  ASK(MPI_CART, Cart_get, max, dims, periods, coords);
  if (max < t->n)
    return ztopo_fails(c, MPI_ERR_ARG, "MPI_Cart_get", "there are more dimensions than the arrays have room for");
  copy(dims, t->data, t->n);
  copy(periods, t->data + t->n, t->n);
  zcart_coords(t, c->rank, coords);
  return MPI_SUCCESS;
}

int z_Cart_rank(MPI_Comm comm, const int coords[], int *rank) {
  ASK(MPI_CART, Cart_rank, coords, rank);
  int r = zcart_rank(t, coords);
  if (r == MPI_PROC_NULL)
    return ztopo_fails(c, MPI_ERR_ARG, "MPI_Cart_rank", "a coordinate is outside a dimension that is not periodic");
  *rank = r;
  return MPI_SUCCESS;
}

int z_Cart_coords(MPI_Comm comm, int rank, int max, int coords[]) {
  ASK(MPI_CART, Cart_coords, rank, max, coords);
  if (rank < 0 || rank >= c->size) return ztopo_fails(c, MPI_ERR_RANK, "MPI_Cart_coords", "no such rank");
  if (max < t->n)
    return ztopo_fails(c, MPI_ERR_ARG, "MPI_Cart_coords", "there are more dimensions than the array has room for");
  zcart_coords(t, rank, coords);
  return MPI_SUCCESS;
}

int z_Cart_shift(MPI_Comm comm, int dim, int by, int *source, int *dest) {
  ASK(MPI_CART, Cart_shift, dim, by, source, dest);
  if (dim < 0 || dim >= t->n) return ztopo_fails(c, MPI_ERR_DIMS, "MPI_Cart_shift", "no such dimension");
  *source = by == 0 ? c->rank : zcart_shift(t, c->rank, dim, -by);
  *dest = by == 0 ? c->rank : zcart_shift(t, c->rank, dim, by);
  return MPI_SUCCESS;
}

int z_Graphdims_get(MPI_Comm comm, int *nodes, int *edges) {
  ASK(MPI_GRAPH, Graphdims_get, nodes, edges);
  *nodes = t->n, *edges = t->m;
  return MPI_SUCCESS;
}

int z_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int index[], int edges[]) {
  ASK(MPI_GRAPH, Graph_get, maxindex, maxedges, index, edges);
  copy(index, t->data, smaller(maxindex, t->n));
  copy(edges, t->data + t->n, smaller(maxedges, t->m));
  return MPI_SUCCESS;
}

int z_Graph_neighbors_count(MPI_Comm comm, int rank, int *n) {
  ASK(MPI_GRAPH, Graph_neighbors_count, rank, n);
  if (rank < 0 || rank >= t->n) return ztopo_fails(c, MPI_ERR_RANK, "MPI_Graph_neighbors_count", "no such rank");
  *n = t->data[rank] - (rank ? t->data[rank - 1] : 0);
  return MPI_SUCCESS;
}

int z_Graph_neighbors(MPI_Comm comm, int rank, int max, int neighbors[]) {
  ASK(MPI_GRAPH, Graph_neighbors, rank, max, neighbors);
  if (rank < 0 || rank >= t->n) return ztopo_fails(c, MPI_ERR_RANK, "MPI_Graph_neighbors", "no such rank");
  int first = rank ? t->data[rank - 1] : 0;
  copy(neighbors, t->data + t->n + first, smaller(max, t->data[rank] - first));
  return MPI_SUCCESS;
}

int z_Dist_graph_neighbors_count(MPI_Comm comm, int *in, int *out, int *weighted) {
  ASK(MPI_DIST_GRAPH, Dist_graph_neighbors_count, in, out, weighted);
  *in = t->n, *out = t->m, *weighted = t->weighted;
  return MPI_SUCCESS;
}

int z_Dist_graph_neighbors(MPI_Comm comm, int maxin, int sources[], int sweights[], int maxout, int dests[],
                           int dweights[]) {
  ASK(MPI_DIST_GRAPH, Dist_graph_neighbors, maxin, sources, sweights, maxout, dests, dweights);
  int in = smaller(maxin, t->n), out = smaller(maxout, t->m);
  copy(sources, t->data, in);
  copy(dests, t->data + 2 * t->n, out);
  if (t->weighted && sweights != MPI_UNWEIGHTED && sweights != MPI_WEIGHTS_EMPTY) copy(sweights, t->data + t->n, in);
  if (t->weighted && dweights != MPI_UNWEIGHTED && dweights != MPI_WEIGHTS_EMPTY)
    copy(dweights, t->data + 2 * t->n + t->m, out);
  return MPI_SUCCESS;
}
