/* reorder = 1: it never increases the number of edges of a topology that cross clusters, and a ring
 * crosses once for each cluster in any order of its processes. A communicator of
 * MPI_COMM_TYPE_SHARED is a cluster here. Not for native runs. */
#include "check.h"

static int home; /* the lowest world rank of the process's cluster */

/* Returns the number of directed edges of c that cross clusters, summed over all processes. */
static int crossing(MPI_Comm c) {
  int size, rank, kind, n = 0, *near, *homes, cross = 0, all = -1;
  MPI_Comm_size(c, &size), MPI_Comm_rank(c, &rank), MPI_Topo_test(c, &kind);
  near = malloc((size + 8) * sizeof *near), homes = malloc(size * sizeof *homes);
  MPI_Allgather(&home, 1, MPI_INT, homes, 1, MPI_INT, c);
  if (kind == MPI_CART) {
    int nd;
    MPI_Cartdim_get(c, &nd);
    for (int d = 0; d < nd; d++, n += 2) MPI_Cart_shift(c, d, 1, &near[n], &near[n + 1]);
  } else if (kind == MPI_GRAPH) {
    MPI_Graph_neighbors_count(c, rank, &n);
    MPI_Graph_neighbors(c, rank, n, near);
  } else {
    int in, weighted, *from = malloc((size + 8) * sizeof *from);
    MPI_Dist_graph_neighbors_count(c, &in, &n, &weighted);
    MPI_Dist_graph_neighbors(c, in, from, MPI_UNWEIGHTED, n, near, MPI_UNWEIGHTED);
    free(from);
  }
  for (int i = 0; i < n; i++) cross += near[i] != MPI_PROC_NULL && homes[near[i]] != homes[rank];
  MPI_Allreduce(&cross, &all, 1, MPI_INT, MPI_SUM, c);
  free(near), free(homes);
  return all;
}

/* Makes a topology. 0: a ring. 1: a grid. 2: a graph of two chains. 3 and 4: a distributed graph of
 * a ring, made from edges or from neighbours. */
static MPI_Comm topology(int which, MPI_Comm from, int reorder) {
  int n, rank, on[2] = {1, 0}, dims[2] = {0, 0};
  MPI_Comm c;
  MPI_Comm_size(from, &n), MPI_Comm_rank(from, &rank);
  if (which == 0) MPI_Cart_create(from, 1, &n, on, reorder, &c);
  if (which == 1) MPI_Dims_create(n, 2, dims), MPI_Cart_create(from, 2, dims, on, reorder, &c);
  if (which == 2) {
    int *index = malloc(n * sizeof *index), *edges = malloc(2 * n * sizeof *edges), m = 0;
    for (int i = 0; i < n; i++) { /* i and i + 2 are neighbours */
      if (i >= 2) edges[m++] = i - 2;
      if (i + 2 < n) edges[m++] = i + 2;
      index[i] = m;
    }
    MPI_Graph_create(from, n, index, edges, reorder, &c);
    free(index), free(edges);
  }
  if (which == 3) {
    int near[2] = {(rank + n - 1) % n, (rank + 1) % n}, degree = 2;
    MPI_Dist_graph_create(from, 1, &rank, &degree, near, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &c);
  }
  if (which == 4) {
    int near[2] = {(rank + n - 1) % n, (rank + 1) % n}, weights[2] = {rank, rank + 100}, from_[2], to[2], w[2], v[2],
        mine;
    MPI_Dist_graph_create_adjacent(from, 2, near, weights, 2, near, weights, MPI_INFO_NULL, reorder, &c);
    MPI_Dist_graph_neighbors(c, 2, from_, w, 2, to, v);
    MPI_Comm_rank(c, &mine);
    for (int i = 0; i < 2; i++) {
      SAME(from_[i], (mine + n + 2 * i - 1) % n, "source");
      SAME(to[i], from_[i], "destination");
      SAME(w[i], mine + 100 * i, "weight of a source");
      SAME(v[i], w[i], "weight of a destination");
    }
  }
  return c;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm host, turned;
  int inside, first, clusters;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &inside);
  MPI_Allreduce(&me, &home, 1, MPI_INT, MPI_MIN, host);
  first = home == me;
  MPI_Allreduce(&first, &clusters, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(clusters > 1, "one cluster");
  MPI_Comm_split(MPI_COMM_WORLD, 0, inside, &turned); /* the clusters alternate */
  for (int k = 0; k < 2; k++)
    for (int which = 0; which < 5; which++) {
      MPI_Comm from = k ? turned : MPI_COMM_WORLD, plain = topology(which, from, 0), better = topology(which, from, 1);
      int without = crossing(plain), with = crossing(better), relation;
      CHECK(with <= without, "topology %d: %d edges cross with reorder, %d without", which, with, without);
      if (which == 0 || which >= 3) SAME(with, 2 * clusters, "edges of a ring, both ways, that cross");
      MPI_Comm_compare(from, plain, &relation);
      SAME(relation, MPI_CONGRUENT, "no reorder");
      if (!me) line("%s topology %d: %d with, %d without", k ? "turned" : "in order", which, with, without);
      MPI_Comm_free(&plain), MPI_Comm_free(&better);
    }
  MPI_Comm_free(&host), MPI_Comm_free(&turned);
  return finish();
}
