/* Inquiry of a communicator's topology. */
#include "comm/comm.h"
#include "core/error.h"
#include "topo/topo.h"
#include <string.h>

int z_Topo_test(MPI_Comm comm, int *kind) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Topo_test(comm, kind);
  const ztopo *t = ztopo_of(c);
  *kind = t ? t->kind : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

/* Returns the topology of c if it is of this kind (MPI_CART, …), and sets *rc to MPI_SUCCESS.
 * Otherwise raises an error for `function`, sets *rc to its code and returns NULL. */
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
