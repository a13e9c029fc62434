/* Places processes on a topology so that neighbours are in the same cluster, because every edge
 * between clusters crosses the zipper. Processes are assigned cluster by cluster to positions in
 * several orders that keep neighbours together. The order with the fewest edges between clusters is
 * chosen; if none has fewer than the given order, that one stays. */
#include "core/limits.h"
#include "topo/topo.h"
#include <stdlib.h>
#include <string.h>

/* A graph whose nodes are the positions in a topology that processes can take. */
typedef struct graph {
  /* the number of positions */
  int n;
  /* the edges, in the form of the arguments of MPI_Graph_create */
  const int *index, *edges;
} graph;

/* Returns the number of edges of g between different clusters if process at[p] takes position p;
 * cluster[i] is the cluster of process i. */
static long cut(const graph *g, const int *cluster, const int *at) {
  long edges = 0;
  for (int p = 0; p < g->n; p++)
    for (int e = p ? g->index[p - 1] : 0; e < g->index[p]; e++) edges += cluster[at[p]] != cluster[at[g->edges[e]]];
  return edges;
}

/* Sets sorted to the numbers of the n processes, sorted by cluster, then by rank. */
static void by_cluster(int n, const int *cluster, int *sorted) {
  int k = 0, next = 0;
  for (int c = cluster[0]; k < n; c = next) { /* the clusters in ascending order */
    if (k == 0)
      for (int i = 0; i < n; i++) c = cluster[i] < c ? cluster[i] : c;
    next = c;
    for (int i = 0; i < n; i++) {
      if (cluster[i] == c) sorted[k++] = i;
      else if (cluster[i] > c && (next == c || cluster[i] < next)) next = cluster[i];
    }
  }
}

/* Assigns the processes in `sorted` to the positions in `order`, and counts the edges between
 * clusters. If they are fewer than *least, sets *least to the number and `best` to the assignment.
 * `at` is scratch memory. */
static void try(const graph *g, const int *cluster, const int *sorted, const int *order, int *at, int *best,
                long *least) {
  for (int k = 0; k < g->n; k++) at[order[k]] = sorted[k];
  long c = cut(g, cluster, at);
  if (c < *least) {
    *least = c;
    memcpy(best, at, (size_t)g->n * sizeof *best);
  }
}

/* Sets order to the nodes of g in breadth-first order from a start node, followed by the nodes that
 * it does not reach. `seen` is scratch memory of n bytes. */
static void breadth_first(const graph *g, int start, int *order, char *seen) {
  int head = 0, tail = 0;
  memset(seen, 0, (size_t)g->n);
  for (int i = 0; i < g->n; i++) {
    int root = (start + i) % g->n;
    if (seen[root]) continue;
    seen[root] = 1;
    order[tail++] = root;
    for (; head < tail; head++) {
      int p = order[head];
      for (int e = p ? g->index[p - 1] : 0; e < g->index[p]; e++)
        if (!seen[g->edges[e]]) seen[g->edges[e]] = 1, order[tail++] = g->edges[e];
    }
  }
}

int zreorder_graph(int n, const int *index, const int *edges, const int *cluster, int *position) {
  graph g = {n, index, edges};
  int *work = malloc(4 * (size_t)(n + 1) * sizeof *work), *sorted = work, *order = sorted + n, *at = order + n,
      *best = at + n;
  char *seen = malloc((size_t)n + 1);
  if (!work || !seen) {
    free(work), free(seen);
    return MPI_ERR_NO_MEM;
  }
  for (int i = 0; i < n; i++) best[i] = i;
  long least = cut(&g, cluster, best);
  by_cluster(n, cluster, sorted);
  for (int start = 0; start < n && start < Z_REORDER_TRIES && least > 0; start++) {
    breadth_first(&g, start, order, seen);
    try(&g, cluster, sorted, order, at, best, &least);
  }
  for (int p = 0; p < n; p++) position[best[p]] = p;
  free(work), free(seen);
  return MPI_SUCCESS;
}

int zreorder_cart(const ztopo *t, int n, const int *cluster, int *position) {
  int nd = t->n, *index = malloc((size_t)(n + 1) * sizeof *index),
      *edges = malloc((size_t)(2 * nd * n + 1) * sizeof *edges), rc = MPI_SUCCESS;
  int *work = calloc(4 * (size_t)n + (size_t)nd + 4, sizeof *work), *sorted = work, *order = sorted + n,
      *at = order + n, *best = at + n, *coords = best + n;
  if (!index || !edges || !work) {
    rc = MPI_ERR_NO_MEM;
    goto end;
  }
  int m = 0;
  for (int p = 0; p < n; p++) {
    for (int d = 0; d < nd; d++)
      for (int by = -1; by <= 1; by += 2) {
        int q = zcart_shift(t, p, d, by);
        if (q != MPI_PROC_NULL) edges[m++] = q;
      }
    index[p] = m;
    best[p] = p;
  }
  graph g = {n, index, edges};
  long least = cut(&g, cluster, best);
  by_cluster(n, cluster, sorted);
  for (int slowest = 0; slowest < nd; slowest++) { /* slabs across this dimension */
    int k = 0;
    for (int c = 0; c < t->data[slowest]; c++)
      for (int p = 0; p < n; p++) {
        zcart_coords(t, p, coords);
        if (coords[slowest] == c) order[k++] = p;
      }
    try(&g, cluster, sorted, order, at, best, &least);
  }
  for (int p = 0; p < n; p++) position[best[p]] = p;
end:
  free(index), free(edges), free(work);
  return rc;
}
