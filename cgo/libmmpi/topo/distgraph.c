/* Distributed graphs on communicators that span clusters: each process stores its own
 * neighbours. */
#include "comm/comm.h"
#include "topo/topo.h"
#include <string.h>

static void copy(int *to, const int *from, int n) {
  if (n > 0) memcpy(to, from, (size_t)n * sizeof *to);
}

/* An edge of a distributed graph, in the form in which the processes exchange it. */
typedef struct edge {
  /* the ranks of the nodes at its ends, and its weight */
  int from, to, weight;
} edge;

/* Gathers the n edges that each process has named into an array *all of *count edges, the same in
 * all processes, in the order of the ranks. The caller frees it. Raises errors and returns the code
 * for the program. */
static int gather_edges(zcomm *c, const edge *mine, int n, const char *function, edge **all, int *count) {
  int *counts = malloc((size_t)c->size * sizeof *counts);
  int64_t total = 0, *bytes = malloc((size_t)c->size * sizeof *bytes);
  *all = NULL, *count = 0;
  int rc = counts && bytes ? zcomm_allgather(c, &n, sizeof n, counts, function)
                           : ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  for (int i = 0; i < c->size && !rc; i++) total += counts[i], bytes[i] = (int64_t)counts[i] * (int64_t)sizeof *mine;
  if (!rc && !(*all = malloc((size_t)(total + 1) * sizeof **all)))
    rc = ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  if (!rc) rc = zcomm_allgatherv(c, mine, bytes, *all, function);
  *count = (int)total;
  free(counts), free(bytes);
  return rc;
}

/* Returns a topology with the neighbours of one node in a graph of `count` edges, or NULL if memory
 * is exhausted. */
static ztopo *part(const edge *all, int count, int node, int weighted) {
  int in = 0, out = 0;
  for (int i = 0; i < count; i++) in += all[i].to == node, out += all[i].from == node;
  ztopo *t = ztopo_make(MPI_DIST_GRAPH, in, out);
  if (!t) return NULL;
  t->weighted = weighted;
  for (int i = 0, a = 0, b = 0; i < count; i++) {
    if (all[i].to == node) t->data[a] = all[i].from, t->data[in + a++] = all[i].weight;
    if (all[i].from == node) t->data[2 * in + b] = all[i].to, t->data[2 * in + out + b++] = all[i].weight;
  }
  return t;
}

static int by_from(const void *a, const void *b) { return ((const edge *)a)->from - ((const edge *)b)->from; }

/* Returns a graph topology of n nodes, in the form of MPI_Graph_create, that has each of the
 * `count` edges in both directions, or NULL if memory is exhausted. It serves to place the
 * nodes. */
static ztopo *as_graph(const edge *all, int count, int n) {
  ztopo *t = ztopo_make(MPI_GRAPH, n, 2 * count);
  edge *both = malloc((size_t)(2 * count + 1) * sizeof *both);
  if (t && both) {
    for (int i = 0; i < count; i++) both[2 * i] = all[i], both[2 * i + 1] = (edge){all[i].to, all[i].from, 0};
    qsort(both, (size_t)(2 * count), sizeof *both, by_from);
    for (int i = 0; i < 2 * count; i++) t->data[both[i].from]++, t->data[n + i] = both[i].to;
    for (int i = 1; i < n; i++) t->data[i] += t->data[i - 1];
  } else {
    free(t);
    t = NULL;
  }
  free(both);
  return t;
}

/* Places the nodes of a distributed graph, of which each process knows its own part *t, so that few
 * neighbours are in different clusters. Sets *position to the node that this process takes, and *t
 * to the part of that node. Raises errors and returns the code for the program. */
static int reorder_graph(zcomm *c, ztopo **t, const char *function, int *position) {
  int n = (*t)->n, m = (*t)->m, count, *places = malloc((size_t)c->size * sizeof *places), *all = NULL;
  int shape[3] = {n, m, (*t)->weighted}, *shapes = malloc((size_t)c->size * sizeof shape);
  int64_t *bytes = malloc((size_t)c->size * sizeof *bytes), total = 0, at = 0;
  edge *mine = malloc((size_t)(m + 1) * sizeof *mine), *edges = NULL;
  ztopo *whole = NULL, *made = NULL;
  int rc = places && shapes && bytes && mine ? MPI_SUCCESS : ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  for (int i = 0; i < m && !rc; i++) mine[i] = (edge){c->rank, (*t)->data[2 * n + i], 0};
  if (!rc) rc = gather_edges(c, mine, m, function, &edges, &count);
  if (!rc && !(whole = as_graph(edges, count, c->size))) rc = ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  if (!rc) rc = ztopo_reorder(c, whole, c->size, 1, function, places);
  if (!rc) rc = zcomm_allgather(c, shape, sizeof shape, shapes, function);
  for (int i = 0; i < c->size && !rc; i++) total += bytes[i] = 8 * ((int64_t)shapes[3 * i] + shapes[3 * i + 1]);
  if (!rc && !(all = malloc((size_t)total + 1))) rc = ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  /* each process's neighbours in the order in which it has passed them */
  if (!rc) rc = zcomm_allgatherv(c, (*t)->data, bytes, all, function);
  if (!rc) {
    *position = places[c->rank];
    const int *s = shapes + 3 * *position;
    for (int i = 0; i < *position; i++) at += bytes[i];
    if ((made = ztopo_make(MPI_DIST_GRAPH, s[0], s[1]))) {
      made->weighted = s[2];
      memcpy(made->data, (char *)all + at, (size_t)bytes[*position]);
      free(*t);
      *t = made;
    } else {
      rc = ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
    }
  }
  free(places), free(shapes), free(bytes), free(mine), free(edges), free(whole), free(all);
  return rc;
}

int z_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int sources[], const int sweights[], int out,
                                 const int dests[], const int dweights[], MPI_Info info, int reorder,
                                 MPI_Comm *result) {
  static const char function[] = "MPI_Dist_graph_create_adjacent";
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    return rc ? rc
              : real.Dist_graph_create_adjacent(comm, in, sources, sweights, out, dests, dweights, info, reorder,
                                                result);
  }
  if (c->inter) return ztopo_no_inter(c, function);
  int ok = in >= 0 && out >= 0;
  for (int i = 0; ok && i < in; i++) ok = sources[i] >= 0 && sources[i] < c->size;
  for (int i = 0; ok && i < out; i++) ok = dests[i] >= 0 && dests[i] < c->size;
  if (!ok) return ztopo_fails(c, MPI_ERR_ARG, function, "a neighbour is not a rank of the communicator");
  ztopo *t = ztopo_make(MPI_DIST_GRAPH, in, out);
  if (!t) return ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  t->weighted = sweights != MPI_UNWEIGHTED;
  copy(t->data, sources, in);
  copy(t->data + 2 * in, dests, out);
  if (t->weighted && sweights != MPI_WEIGHTS_EMPTY) copy(t->data + in, sweights, in);
  if (t->weighted && dweights != MPI_WEIGHTS_EMPTY) copy(t->data + 2 * in + out, dweights, out);
  int mine = c->rank, rc = reorder ? reorder_graph(c, &t, function, &mine) : MPI_SUCCESS;
  if (rc) free(t);
  return rc ? rc : ztopo_comm(c, t, 0, mine, function, result);
}

int z_Dist_graph_create(MPI_Comm comm, int n, const int nodes[], const int degrees[], const int targets[],
                        const int weights[], MPI_Info info, int reorder, MPI_Comm *result) {
  static const char function[] = "MPI_Dist_graph_create";
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    return rc ? rc : real.Dist_graph_create(comm, n, nodes, degrees, targets, weights, info, reorder, result);
  }
  if (c->inter) return ztopo_no_inter(c, function);
  int m = 0, k = 0, ok = n >= 0, weighted = weights != MPI_UNWEIGHTED, count = 0,
      has_weights = weighted && weights != MPI_WEIGHTS_EMPTY;
  for (int i = 0; ok && i < n; i++) ok = degrees[i] >= 0 && nodes[i] >= 0 && nodes[i] < c->size, m += degrees[i];
  for (int i = 0; ok && i < m; i++) ok = targets[i] >= 0 && targets[i] < c->size;
  if (!ok)
    return ztopo_fails(c, MPI_ERR_ARG, function, "a node is not a rank of the communicator, or a degree is negative");
  edge *mine = malloc((size_t)(m + 1) * sizeof *mine), *all = NULL;
  int *position = malloc((size_t)c->size * sizeof *position);
  ztopo *t = NULL, *whole = NULL;
  int rc = mine && position ? MPI_SUCCESS : ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  for (int i = 0; i < n && !rc; i++)
    for (int d = 0; d < degrees[i]; d++, k++) mine[k] = (edge){nodes[i], targets[k], has_weights ? weights[k] : 1};
  if (!rc) rc = gather_edges(c, mine, m, function, &all, &count);
  if (!rc && reorder && !(whole = as_graph(all, count, c->size)))
    rc = ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  if (!rc) rc = ztopo_reorder(c, whole, c->size, reorder, function, position);
  if (!rc && !(t = part(all, count, position[c->rank], weighted)))
    rc = ztopo_fails(c, MPI_ERR_NO_MEM, function, "no memory");
  int mine_is = rc ? 0 : position[c->rank];
  free(mine), free(all), free(position), free(whole);
  return rc ? rc : ztopo_comm(c, t, 0, mine_is, function, result);
}
