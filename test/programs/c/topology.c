/* Topologies: Cartesian, graph and distributed graph communicators, their arithmetic, sub-grids,
 * and neighbourhood collectives in all forms. With reorder only MPI's guarantees are checked,
 * because ranks may be anywhere. */
#include "check.h"

static void coords_line(const char *what, MPI_Comm c, int nd) {
  int dims[4], periods[4], at[4], rank, back;
  MPI_Cart_get(c, nd, dims, periods, at);
  MPI_Comm_rank(c, &rank);
  MPI_Cart_rank(c, at, &back);
  SAME(back, rank, "Cart_rank of own coordinates");
  char text[200];
  int n = 0;
  for (int d = 0; d < nd; d++) {
    int source, dest;
    MPI_Cart_shift(c, d, 1, &source, &dest);
    if (source == MPI_PROC_NULL) source = -1;
    if (dest == MPI_PROC_NULL) dest = -1;
    n += snprintf(text + n, sizeof text - n, " %d/%d%s(%d,%d)", at[d], dims[d], periods[d] ? "p" : "", source, dest);
  }
  line("%s: rank %d:%s", what, rank, nd ? text : "");
}

/* Sends each neighbour a number that identifies its sender and slot, and checks the numbers
 * received from the other end's view in the order of rank. */
static void neighbors(const char *what, MPI_Comm c, int in, int out, const int *sources) {
  int rank, size, *sb = malloc((out * 3 + 1) * sizeof(int)), *rb = malloc((in * 3 + 1) * sizeof(int));
  MPI_Comm_rank(c, &rank);
  MPI_Comm_size(c, &size);
  uint64_t h = 0;
  for (int i = 0; i < 3 * in; i++) rb[i] = -7;
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, rb, 1, MPI_INT, c);
  for (int i = 0; i < in; i++) SAME(rb[i], sources[i] != MPI_PROC_NULL ? sources[i] : -7, "neighbour's rank");
  for (int i = 0; i < out; i++) sb[2 * i] = rank * 100 + i, sb[2 * i + 1] = -sb[2 * i];
  for (int i = 0; i < 3 * in; i++) rb[i] = -7;
  MPI_Neighbor_alltoall(sb, 2, MPI_INT, rb, 2, MPI_INT, c);
  for (int i = 0; i < 2 * in; i++) h = digest(h, &rb[i], sizeof *rb);
  for (int i = 0; i < in; i++)
    if (sources[i] != MPI_PROC_NULL) SAME(rb[2 * i] / 100, sources[i], "sender in alltoall");
  line("%s: alltoall %016llx", what, (unsigned long long)h);

  int *counts = malloc((out + in + 1) * sizeof(int)), *displs = malloc((out + in + 1) * sizeof(int)),
      *rc = counts + out, *rd = displs + out;
  for (int i = 0; i < out; i++) counts[i] = 1 + rank % 2, displs[i] = 3 * i + 1;
  for (int i = 0; i < in; i++) rc[i] = sources[i] == MPI_PROC_NULL ? 0 : 1 + sources[i] % 2, rd[i] = 3 * (in - 1 - i);
  for (int i = 0; i < out * 3; i++) sb[i] = rank * 1000 + i;
  for (int i = 0; i < in * 3; i++) rb[i] = -9;
  MPI_Request r;
  sb = realloc(sb, (out * 3 + 4) * sizeof(int));
  sb[out * 3] = rank * 1000 + 999;
  /* Open MPI 4.1's nonblocking form mixes up the two directions of a periodic dimension of size 1
   * or 2, but its blocking form does not. */
  if (*what == 'c') MPI_Neighbor_alltoallv(sb, counts, displs, MPI_INT, rb, rc, rd, MPI_INT, c);
  else {
    MPI_Ineighbor_alltoallv(sb, counts, displs, MPI_INT, rb, rc, rd, MPI_INT, c, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  h = digest(0, rb, in * 3 * sizeof *rb);
  int told = size > 1; /* MPICH 4.0 natively mixes up the directions of a ring of one in alltoallv and alltoallw */
  if (told) line("%s: alltoallv %016llx", what, (unsigned long long)h);

  for (int i = 0; i < in * 3; i++) rb[i] = -9;
  int mine[2] = {rank, rank + 50};
  MPI_Neighbor_allgatherv(mine, 1 + rank % 2, MPI_INT, rb, rc, rd, MPI_INT, c);
  line("%s: allgatherv %016llx", what, (unsigned long long)digest(0, rb, in * 3 * sizeof *rb));

  MPI_Datatype pair, *types = malloc((in + out + 1) * sizeof *types);
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Aint *at = malloc((in + out + 1) * sizeof *at);
  for (int i = 0; i < in + out; i++) types[i] = pair, at[i] = (i < out ? i : i - out) * 3 * (MPI_Aint)sizeof(int);
  for (int i = 0; i < out; i++) counts[i] = 1;
  for (int i = 0; i < in; i++) rc[i] = 1;
  for (int i = 0; i < in * 3; i++) rb[i] = -9;
  MPI_Neighbor_alltoallw(sb, counts, at, types, rb, rc, at + out, types + out, c);
  if (told) line("%s: alltoallw %016llx", what, (unsigned long long)digest(0, rb, in * 3 * sizeof *rb));
  MPI_Type_free(&pair);
  free(types), free(at), free(counts), free(displs), free(sb), free(rb);
}

static void cart_neighbors(const char *what, MPI_Comm c, int nd) {
  int sources[8];
  for (int d = 0; d < nd; d++) MPI_Cart_shift(c, d, 1, &sources[2 * d], &sources[2 * d + 1]);
  neighbors(what, c, 2 * nd, 2 * nd, sources);
}

static void cart(int reorder) {
  int dims[3] = {0, 0, 1}, periods[3] = {1, 0, 1}, kind, nd;
  MPI_Comm c, sub, d;
  MPI_Dims_create(np, 3, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, reorder, &c);
  MPI_Topo_test(c, &kind);
  SAME(kind == MPI_CART, 1, "Topo_test");
  MPI_Cartdim_get(c, &nd);
  SAME(nd, 3, "Cartdim_get");
  if (!reorder) coords_line("cart", c, 3);
  int sum = 0, rank;
  MPI_Comm_rank(c, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
  SAME(sum, np * (np - 1) / 2, "sum of ranks");
  if (!reorder) cart_neighbors("cart", c, 3);
  MPI_Comm_dup(c, &d);
  MPI_Topo_test(d, &kind);
  SAME(kind == MPI_CART, 1, "Topo_test of a dup");
  for (int keep = 0; keep < 2; keep++) {
    int remain[3] = {keep == 0, 1, 0}, size, want = 1;
    MPI_Cart_sub(d, remain, &sub);
    for (int i = 0; i < 3; i++) want *= remain[i] ? dims[i] : 1;
    MPI_Comm_size(sub, &size);
    SAME(size, want, "size of a sub-grid");
    MPI_Cartdim_get(sub, &nd);
    SAME(nd, remain[0] + remain[1], "dimensions of a sub-grid");
    if (!reorder) coords_line("sub", sub, nd);
    int x = rank, top = -1;
    MPI_Allreduce(&x, &top, 1, MPI_INT, MPI_MAX, sub);
    if (!reorder) line("sub %d: highest rank %d", keep, top);
    MPI_Comm_free(&sub);
  }
  MPI_Comm_free(&d);
  MPI_Comm_free(&c);

  /* Fewer positions than ranks, in a ring. */
  int n = np > 1 ? np - 1 : 1, on = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &on, reorder, &c);
  if (c == MPI_COMM_NULL) line("not in the ring");
  else {
    int size;
    MPI_Comm_size(c, &size);
    SAME(size, n, "ring");
    if (!reorder) cart_neighbors("cart ring", c, 1);
    MPI_Comm_free(&c);
  }
}

static void graph(int reorder) {
  int *index = malloc(np * sizeof(int)), *edges = malloc(np * 4 * sizeof(int)), m = 0, kind, nodes, count;
  for (int i = 0; i < np; i++) { /* a star with a ring, no edge twice */
    if (i == 0)
      for (int k = 1; k < np; k++) edges[m++] = k;
    else edges[m++] = 0;
    if (i && np > 3) {
      int next = i % (np - 1) + 1, last = (i + np - 3) % (np - 1) + 1;
      if (next != i) edges[m++] = next;
      if (last != next && last != i) edges[m++] = last;
    }
    index[i] = m;
  }
  MPI_Comm c;
  MPI_Graph_create(MPI_COMM_WORLD, np, index, edges, reorder, &c);
  MPI_Topo_test(c, &kind);
  SAME(kind == MPI_GRAPH, 1, "Topo_test of a graph");
  MPI_Graphdims_get(c, &nodes, &count);
  SAME(nodes, np, "nodes");
  SAME(count, m, "edges");
  int rank, *near = malloc((np + 3) * sizeof(int));
  MPI_Comm_rank(c, &rank);
  MPI_Graph_neighbors_count(c, rank, &count);
  MPI_Graph_neighbors(c, rank, count, near);
  if (!reorder) {
    line("graph: %d neighbours, %016llx", count, (unsigned long long)digest(0, near, count * sizeof *near));
    neighbors("graph", c, count, count, near);
  }
  MPI_Comm_free(&c);
  free(index), free(edges), free(near);
}

static void dist(int reorder) {
  int right = (me + 1) % np, left = (me + np - 1) % np, two = (me + 2) % np, back2 = (me + 2 * np - 2) % np, kind, in,
      out, weighted;
  MPI_Comm c;
  int s[2] = {left, back2}, d[2] = {right, two}, w[2] = {5, 7}, gs[2], gw[2], gd[2], gv[2];
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, s, w, 2, d, w, MPI_INFO_NULL, reorder, &c);
  MPI_Topo_test(c, &kind);
  SAME(kind == MPI_DIST_GRAPH, 1, "Topo_test of a distributed graph");
  MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
  SAME(in, 2, "indegree");
  SAME(out, 2, "outdegree");
  SAME(weighted, 1, "weighted");
  MPI_Dist_graph_neighbors(c, 2, gs, gw, 2, gd, gv);
  SAME(gw[1], 7, "weight");
  if (!reorder) {
    SAME(gs[0], left, "source");
    SAME(gd[1], two, "destination");
    neighbors("adjacent", c, 2, 2, gs);
  }
  MPI_Comm_free(&c);
  int degree = 1;
  /* i names i+1 → i+2 */
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &right, &degree, &two, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &c);
  MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
  SAME(in, 1, "indegree");
  SAME(out, 1, "outdegree");
  SAME(weighted, 0, "unweighted");
  MPI_Dist_graph_neighbors(c, 1, gs, MPI_UNWEIGHTED, 1, gd, MPI_UNWEIGHTED);
  if (!reorder) {
    SAME(gs[0], left, "source");
    SAME(gd[0], right, "destination");
    neighbors("dist", c, 1, 1, gs);
  }
  MPI_Comm_free(&c);
}

/* Runs alltoall with a type for each rank, not for each neighbour, on every line of a grid; some
 * lines are inside one cluster. The array of types is followed by invalid handles. */
static void lines_of_grid(void) {
  int dims[2] = {0, 0}, periods[2] = {0, 0}, size, rank, n;
  MPI_Comm grid, line_;
  MPI_Datatype type;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int d = 0; d < 3; d++) { /* the third: grids of one rank */
    int keep[2] = {d == 0, d == 1};
    MPI_Cart_sub(grid, keep, &line_);
    MPI_Comm_size(line_, &n);
    MPI_Comm_rank(line_, &rank);
    int *in = malloc(n * 3 * sizeof *in), *out = malloc(n * 3 * sizeof *out), *counts = malloc(n * sizeof *counts),
        *at = malloc(n * sizeof *at);
    MPI_Datatype *types = malloc((n + 4) * sizeof *types);
    memset(types, 0x11, (n + 4) * sizeof *types);
    for (int i = 0; i < n; i++) {
      counts[i] = 1, at[i] = i * 3 * (int)sizeof *in, types[i] = type;
      for (int k = 0; k < 3; k++) in[3 * i + k] = 100 * rank + 10 * i + k, out[3 * i + k] = -1;
    }
    MPI_Alltoallw(in, counts, at, types, out, counts, at, types, line_);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 3; k++) SAME(out[3 * i + k], 100 * i + 10 * rank + k, "alltoallw on a line of a grid");
    free(in), free(out), free(counts), free(at), free(types);
    MPI_Comm_free(&line_);
  }
  MPI_Type_free(&type);
  MPI_Comm_free(&grid);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (int reorder = 0; reorder < 2; reorder++) cart(reorder), graph(reorder), dist(reorder);
  lines_of_grid();
  return finish();
}
