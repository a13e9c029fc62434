/* The reordering of ranks, which places neighbours in the same cluster. */
#include "test.h"
#include "topo/topo.h"

enum { MOST = 48 };

/* Returns the number of edges between clusters, after checking that each position is taken once by
 * position[i] of process i. */
static int crossing(int n, const int *index, const int *edges, const int *cluster, const int *position) {
  int at[MOST], crossing = 0;
  memset(at, 0xff, sizeof at);
  for (int i = 0; i < n; i++) {
    CHECK(position[i] >= 0 && position[i] < n && at[position[i]] < 0);
    at[position[i]] = i;
  }
  for (int p = 0; p < n; p++)
    for (int e = p ? index[p - 1] : 0; e < index[p]; e++) crossing += cluster[at[p]] != cluster[at[edges[e]]];
  return crossing;
}

static int graph(int n, const int *index, const int *edges, const int *cluster, int *position) {
  SAME(zreorder_graph(n, index, edges, cluster, position), MPI_SUCCESS);
  return crossing(n, index, edges, cluster, position);
}

static ztopo *cart(int nd, const int *dims, const int *periods) {
  ztopo *t = ztopo_make(MPI_CART, nd, 0);
  for (int d = 0; d < nd; d++) t->data[d] = dims[d], t->data[nd + d] = periods[d];
  return t;
}

/* Returns the number of crossing edges of a grid, whose edges are found by ztopo_neighbors. */
static int grid_crossing(const ztopo *t, int n, const int *cluster, const int *position) {
  int index[MOST], edges[MOST * 6], m = 0;
  for (int p = 0; p < n; p++) {
    int in, out, *from, *to;
    SAME(ztopo_neighbors(t, p, &in, &from, &out, &to), MPI_SUCCESS);
    for (int i = 0; i < in; i++)
      if (from[i] != MPI_PROC_NULL) edges[m++] = from[i];
    index[p] = m;
    free(from);
  }
  return crossing(n, index, edges, cluster, position);
}

static int grid(int nd, const int *dims, const int *periods, int n, const int *cluster, int *position) {
  ztopo *t = cart(nd, dims, periods);
  SAME(zreorder_cart(t, n, cluster, position), MPI_SUCCESS);
  int c = grid_crossing(t, n, cluster, position);
  free(t);
  return c;
}

static void stays(int n, const int *position) {
  for (int i = 0; i < n; i++) SAME(position[i], i);
}

TEST(one_cluster_stays_as_it_is) {
  const int index[] = {1, 2, 3}, edges[] = {1, 2, 0}, cluster[] = {4, 4, 4};
  int position[3];
  SAME(graph(3, index, edges, cluster, position), 0);
  stays(3, position);
}

TEST(optimal_order_is_kept) {
  const int index[] = {1, 3, 5, 6}, edges[] = {1, 0, 2, 1, 3, 2}, cluster[] = {0, 0, 1, 1};
  int position[4];
  /* a line needs one edge across, counted from both ends */
  SAME(graph(4, index, edges, cluster, position), 2);
  stays(4, position);
}

/* A line over processes that alternate between two clusters. */
TEST(a_line_over_alternating_clusters) {
  enum { N = 12 };
  int index[N], edges[2 * N], cluster[N], position[N], m = 0;
  for (int i = 0; i < N; i++) {
    if (i > 0) edges[m++] = i - 1;
    if (i < N - 1) edges[m++] = i + 1;
    index[i] = m, cluster[i] = i % 2;
  }
  SAME(graph(N, index, edges, cluster, position), 2);
}

/* Two separate graphs whose nodes alternate are placed in a cluster each. */
TEST(parts_that_do_not_hang_together) {
  enum { N = 12 };
  int index[N], edges[2 * N], cluster[N], position[N], m = 0;
  for (int i = 0; i < N; i++) { /* two rings, of the even and of the odd nodes */
    edges[m++] = (i + 2) % N, edges[m++] = (i + N - 2) % N;
    index[i] = m, cluster[i] = i < N / 2;
  }
  SAME(graph(N, index, edges, cluster, position), 0);
}

/* The numbers of clusters need not begin with 0, nor be consecutive; the three clusters have
 * different sizes. */
TEST(any_numbers_of_clusters) {
  enum { N = 9 };
  const int cluster[N] = {7, 2, 90, 2, 7, 90, 2, 90, 2};
  int index[N], edges[2 * N], position[N], m = 0;
  for (int i = 0; i < N; i++) {
    if (i > 0) edges[m++] = i - 1;
    if (i < N - 1) edges[m++] = i + 1;
    index[i] = m;
  }
  SAME(graph(N, index, edges, cluster, position), 4);
}

TEST(a_graph_without_edges_or_nodes) {
  const int index[] = {0, 0, 0}, cluster[] = {1, 0, 1};
  int position[3];
  SAME(graph(3, index, NULL, cluster, position), 0);
  stays(3, position);
  SAME(zreorder_graph(0, NULL, NULL, cluster, position), MPI_SUCCESS);
}

/* A grid that the given order cuts along its long side is cut across by slabs. */
TEST(a_grid_is_cut_into_slabs) {
  enum { N = 24 };
  int cluster[N], position[N];
  for (int i = 0; i < N; i++) cluster[i] = i % 2;
  /* across the short side */
  SAME(grid(2, (const int[]){3, 8}, (const int[]){0, 0}, N, cluster, position), 2 * 3);
  SAME(grid(2, (const int[]){8, 3}, (const int[]){0, 0}, N, cluster, position), 2 * 3);
  /* a ring has two cuts */
  SAME(grid(2, (const int[]){3, 8}, (const int[]){0, 1}, N, cluster, position), 4 * 3);
  SAME(grid(3, (const int[]){2, 2, 6}, (const int[]){0, 0, 0}, N, cluster, position), 2 * 4);
}

TEST(a_grid_is_never_made_worse) {
  enum { N = 24 };
  const int dims[][2] = {{2, 12}, {3, 8}, {4, 6}, {24, 1}};
  uint32_t random = 7;
  for (int turn = 0; turn < 200; turn++) {
    const int *d = dims[turn % COUNT(dims)], periods[2] = {turn & 4, turn & 8};
    int cluster[N], position[N], before[N];
    for (int i = 0; i < N; i++) {
      random = random * 1664525 + 1013904223;
      cluster[i] = (int)(random >> 16) % 3, before[i] = i;
    }
    ztopo *t = cart(2, d, periods);
    int was = grid_crossing(t, N, cluster, before);
    free(t);
    CHECK(grid(2, d, periods, N, cluster, position) <= was);
  }
}

TEST(every_process_finds_the_same) {
  const int dims[] = {3, 4}, periods[] = {1, 0}, cluster[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  int first[12], second[12];
  grid(2, dims, periods, 12, cluster, first);
  grid(2, dims, periods, 12, cluster, second);
  SAME(memcmp(first, second, sizeof first), 0);
}

TEST(without_memory) {
  const int index[] = {1, 2}, edges[] = {1, 0}, cluster[] = {1, 0};
  ztopo *t = cart(1, (const int[]){2}, (const int[]){0});
  long before = fake_blocks();
  int position[2];
  for (int i = 0; i < 2; i++) {
    fake_no_memory(i);
    SAME(zreorder_graph(2, index, edges, cluster, position), MPI_ERR_NO_MEM);
    SAME(fake_blocks(), before);
  }
  for (int i = 0; i < 3; i++) {
    fake_no_memory(i);
    SAME(zreorder_cart(t, 2, cluster, position), MPI_ERR_NO_MEM);
    SAME(fake_blocks(), before);
  }
  fake_no_memory(-1);
  free(t);
}
