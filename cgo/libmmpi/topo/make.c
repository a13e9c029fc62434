/* Making communicators with a Cartesian topology or a graph. */
#include "comm/comm.h"
#include "core/error.h"
#include "topo/topo.h"
#include <string.h>

int ztopo_comm(zcomm *c, ztopo *t, int color, int position, const char *function, MPI_Comm *out) {
  MPI_Comm plain;
  int rc = zcomm_split(c, color, position, function, &plain);
  zcomm *made = rc ? NULL : zcomm_find(plain);
  *out = rc ? MPI_COMM_NULL : plain;
  if (made) {
    made->topo = &t->base;
    return MPI_SUCCESS;
  }
  if (!rc && plain != MPI_COMM_NULL) { /* inside one cluster the native library makes the topology */
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
  int mine = zcomm_cluster(c);
  int rc = cluster ? zcomm_allgather(c, &mine, sizeof *cluster, cluster, function)
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

/* Sets *newrank to the result of MPI_Cart_map or MPI_Graph_map for a topology of n processes: each
 * keeps its rank, as in native libraries, or gets MPI_UNDEFINED. Raises errors and returns the code
 * for the program. */
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
