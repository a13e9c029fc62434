/* Virtual topologies. This process is rank 2 of clusters of 2 and 4, so ranks 2 to 5 are in this
 * cluster. */
#include "comm/comm.h"
#include "test.h"
#include "topo/topo.h"

static void world(void) { FAKE_WORLD(2, 2, 4); }

static ztopo *cart(int nd, const int *dims, const int *periods) {
  ztopo *t = ztopo_make(MPI_CART, nd, 0);
  for (int d = 0; d < nd; d++) t->data[d] = dims[d], t->data[nd + d] = periods[d];
  return t;
}

/* ---- arithmetic ---- */

TEST(ranks_and_coordinates) {
  ztopo *t = cart(3, (const int[]){2, 3, 4}, (const int[]){0, 1, 0});
  int rank = 0, c[3];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 4; k++, rank++) { /* the last dimension varies fastest */
        SAME(zcart_rank(t, (const int[]){i, j, k}), rank);
        SAME(zcart_rank(t, (const int[]){i, j + 3, k}), rank);
        SAME(zcart_rank(t, (const int[]){i, j - 6, k}), rank);
        zcart_coords(t, rank, c);
        CHECK(c[0] == i && c[1] == j && c[2] == k);
      }
  SAME(zcart_rank(t, (const int[]){2, 0, 0}), MPI_PROC_NULL);
  SAME(zcart_rank(t, (const int[]){0, 0, -1}), MPI_PROC_NULL);
  free(t);
}

TEST(shifts) {
  ztopo *t = cart(3, (const int[]){2, 3, 4}, (const int[]){0, 1, 0});
  for (int rank = 0; rank < 24; rank++)
    for (int d = 0; d < 3; d++)
      for (int by = -7; by <= 7; by++) {
        int c[3];
        zcart_coords(t, rank, c);
        c[d] += by;
        SAME(zcart_shift(t, rank, d, by), zcart_rank(t, c));
      }
  SAME(zcart_shift(t, 0, 1, 2147483647), zcart_shift(t, 0, 1, 1)); /* 2^31 - 1 is 1 modulo 3 */
  SAME(zcart_shift(t, 8, 1, 2147483647), zcart_shift(t, 8, 1, 1)); /* the sum does not overflow */
  SAME(zcart_shift(t, 0, 0, 2147483647), MPI_PROC_NULL);
  free(t);
}

TEST(a_cartesian_topology_without_dimensions) {
  ztopo *t = cart(0, NULL, NULL);
  int in, out, *from, *to;
  SAME(zcart_rank(t, NULL), 0);
  SAME(ztopo_neighbors(t, 0, &in, &from, &out, &to), MPI_SUCCESS);
  SAME(in, 0);
  free(from), free(t);
}

TEST(neighbors) {
  int in, out, *from, *to;
  ztopo *t = cart(2, (const int[]){2, 3}, (const int[]){0, 1});
  SAME(ztopo_neighbors(t, 0, &in, &from, &out, &to), MPI_SUCCESS);
  CHECK(in == 4 && out == 4 && from == to);
  CHECK(from[0] == MPI_PROC_NULL && from[1] == 3 && from[2] == 2 && from[3] == 1);
  free(from), free(t);

  t = ztopo_make(MPI_GRAPH, 3, 4);
  memcpy(t->data, (const int[]){1, 3, 4, /* edges */ 1, 0, 2, 1}, 7 * sizeof(int));
  SAME(ztopo_neighbors(t, 1, &in, &from, &out, &to), MPI_SUCCESS);
  CHECK(in == 2 && out == 2 && from == to && from[0] == 0 && from[1] == 2);
  free(from), free(t);

  t = ztopo_make(MPI_DIST_GRAPH, 2, 1);
  memcpy(t->data, (const int[]){5, 6, /* weights */ 50, 60, /* destinations */ 7, /* weights */ 70}, 6 * sizeof(int));
  SAME(ztopo_neighbors(t, 0, &in, &from, &out, &to), MPI_SUCCESS);
  CHECK(in == 2 && out == 1 && from != to && from[0] == 5 && from[1] == 6 && to[0] == 7);
  free(from), free(to), free(t);
}

TEST(copies) {
  ztopo *t = cart(2, (const int[]){2, 3}, (const int[]){0, 1}), *copy = (ztopo *)t->base.copy(&t->base);
  CHECK(copy != t && copy->kind == MPI_CART && copy->n == 2 && !memcmp(copy->data, t->data, 4 * sizeof(int)));
  fake_no_memory(0);
  CHECK(t->base.copy(&t->base) == NULL);
  t->base.drop(&t->base), copy->base.drop(&copy->base);
}

/* ---- making communicators: the contributions of the other ranks are computed here ---- */

/* The data that the agreement of make.c exchanges. */
typedef struct wish {
  uint64_t context;
  int32_t color, key, rank, half;
} wish;

static int colors[6], keys[6];

static void contribution(int rank, void *block, int64_t bytes) {
  /* before reordering ranks exchange their clusters */
  if (bytes == sizeof(int)) memcpy(block, &fake.cluster_of[rank], sizeof(int));
  else if (bytes == sizeof(wish)) *(wish *)block = (wish){2000 + (uint64_t)rank, colors[rank], keys[rank], rank, 0};
}

/* Puts the first n ranks in one communicator, in their order. */
static void everybody(int n) {
  fake_others = contribution;
  for (int i = 0; i < 6; i++) colors[i] = i < n ? 0 : -1, keys[i] = i;
}

TEST(grid_inquiry) {
  world();
  everybody(6);
  MPI_Comm comm;
  int n = 0, dims[2], periods[2], coords[2], kind = 0, from, to, rank;
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){2, 3}, (const int[]){0, 7}, 0, &comm), MPI_SUCCESS);
  CHECK(zcomm_find(comm) != NULL);
  z_Topo_test(comm, &kind);
  SAME(kind, MPI_CART);
  z_Cartdim_get(comm, &n);
  SAME(n, 2);
  SAME(z_Cart_get(comm, 2, dims, periods, coords), MPI_SUCCESS);
  CHECK(dims[0] == 2 && dims[1] == 3 && periods[0] == 0 && periods[1] == 1 && coords[0] == 0 && coords[1] == 2);
  SAME(z_Cart_shift(comm, 1, 1, &from, &to), MPI_SUCCESS);
  CHECK(from == 1 && to == 0); /* the dimension is periodic */
  SAME(z_Cart_shift(comm, 0, 1, &from, &to), MPI_SUCCESS);
  CHECK(from == MPI_PROC_NULL && to == 5);
  SAME(z_Cart_shift(comm, 0, 0, &from, &to), MPI_SUCCESS);
  CHECK(from == 2 && to == 2);
  SAME(z_Cart_rank(comm, (const int[]){1, -1}, &rank), MPI_SUCCESS);
  SAME(rank, 5);
  SAME(z_Cart_coords(comm, 4, 2, coords), MPI_SUCCESS);
  CHECK(coords[0] == 1 && coords[1] == 1);
  SAME(z_Topo_test(MPI_COMM_WORLD, &kind), MPI_SUCCESS);
  SAME(kind, MPI_UNDEFINED);
  SAME(z_Comm_free(&comm), MPI_SUCCESS);
  SAME(fake.calls.comm_drop, 1);
}

TEST(invalid_inquiries_are_errors) {
  world();
  everybody(6);
  MPI_Comm comm;
  int n, two[2], from, to;
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){2, 3}, (const int[]){0, 1}, 0, &comm), MPI_SUCCESS);
  SAME(z_Cart_get(comm, 1, two, two, two), MPI_ERR_ARG);
  SAME(z_Cart_rank(comm, (const int[]){2, 0}, &n), MPI_ERR_ARG);
  SAME(z_Cart_coords(comm, 6, 2, two), MPI_ERR_RANK);
  SAME(z_Cart_coords(comm, 0, 1, two), MPI_ERR_ARG);
  SAME(z_Cart_shift(comm, 2, 1, &from, &to), MPI_ERR_DIMS);
  SAME(z_Graphdims_get(comm, &n, &n), MPI_ERR_TOPOLOGY);
  SAME(z_Dist_graph_neighbors_count(comm, &n, &n, &n), MPI_ERR_TOPOLOGY);
  SAME(z_Cartdim_get(MPI_COMM_WORLD, &n), MPI_ERR_TOPOLOGY);
  SAME(z_Cart_sub(MPI_COMM_WORLD, two, &comm), MPI_ERR_TOPOLOGY);
  SAME(fake.raised, 9);
}

TEST(invalid_shapes_are_errors) {
  world();
  MPI_Comm comm;
  SAME(z_Cart_create(MPI_COMM_WORLD, -1, NULL, NULL, 0, &comm), MPI_ERR_DIMS);
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){2, 0}, (const int[]){0, 0}, 0, &comm), MPI_ERR_DIMS);
  /* 8 positions for 6 ranks */
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){2, 4}, (const int[]){0, 0}, 0, &comm), MPI_ERR_DIMS);
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){65536, 65536}, (const int[]){0, 0}, 0, &comm), MPI_ERR_DIMS);
  SAME(z_Graph_create(MPI_COMM_WORLD, 2, (const int[]){1, 0}, (const int[]){0}, 0, &comm), MPI_ERR_TOPOLOGY);
  SAME(z_Graph_create(MPI_COMM_WORLD, 2, (const int[]){1, 1}, (const int[]){2}, 0, &comm), MPI_ERR_TOPOLOGY);
  SAME(z_Graph_create(MPI_COMM_WORLD, 7, (const int[]){0, 0, 0, 0, 0, 0, 0}, NULL, 0, &comm), MPI_ERR_TOPOLOGY);
  SAME(fake.calls.comm_add, 1); /* only MPI_COMM_WORLD */
}

TEST(graph_inquiry) {
  world();
  everybody(3);
  MPI_Comm comm;
  const int index[] = {1, 3, 4}, edges[] = {1, 0, 2, 1};
  int n = 0, m = 0, got[4] = {-1, -1, -1, -1}, had[4];
  SAME(z_Graph_create(MPI_COMM_WORLD, 3, index, edges, 0, &comm), MPI_SUCCESS);
  z_Graphdims_get(comm, &n, &m);
  CHECK(n == 3 && m == 4);
  SAME(z_Graph_get(comm, 3, 4, got, had), MPI_SUCCESS);
  CHECK(!memcmp(got, index, sizeof index) && !memcmp(had, edges, sizeof edges));
  z_Graph_neighbors_count(comm, 1, &n);
  SAME(n, 2);
  got[1] = -1;
  /* no more neighbours are written than there is room for */
  SAME(z_Graph_neighbors(comm, 1, 1, got), MPI_SUCCESS);
  CHECK(got[0] == 0 && got[1] == -1);
  SAME(z_Graph_neighbors(comm, 3, 1, got), MPI_ERR_RANK);
  SAME(z_Graph_neighbors_count(comm, -1, &n), MPI_ERR_RANK);
}

TEST(positions_left_over_get_no_communicator) {
  world();
  everybody(2);
  MPI_Comm comm = MPI_COMM_WORLD;
  SAME(z_Cart_create(MPI_COMM_WORLD, 1, (const int[]){2}, (const int[]){0}, 0, &comm), MPI_SUCCESS);
  CHECK(comm == MPI_COMM_NULL); /* this process is rank 2 */
}

/* A grid whose positions are all in this cluster is made by the native library. */
TEST(inside_a_cluster_it_is_native) {
  world();
  everybody(6);
  MPI_Comm grid, line;
  int comms = fake.comms;
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){3, 2}, (const int[]){0, 1}, 0, &grid), MPI_SUCCESS);
  CHECK(zcomm_find(grid) != NULL);
  for (int i = 0; i < 6; i++) colors[i] = i / 2, keys[i] = i % 2; /* rows of two: ranks 2 and 3 */
  SAME(z_Cart_sub(grid, (const int[]){0, 1}, &line), MPI_SUCCESS);
  CHECK(zcomm_find(line) == NULL);
  SAME(fake.calls.cart_create, 1);
  SAME(fake.comms, comms + 2);                                    /* intermediate communicators are freed */
  for (int i = 0; i < 6; i++) colors[i] = i % 2, keys[i] = i / 2; /* columns: ranks 0, 2, 4 */
  SAME(z_Cart_sub(grid, (const int[]){1, 0}, &line), MPI_SUCCESS);
  CHECK(zcomm_find(line) != NULL);
  int n, dims[1], periods[1], coords[1];
  z_Cartdim_get(line, &n);
  SAME(n, 1);
  z_Cart_get(line, 1, dims, periods, coords);
  CHECK(dims[0] == 3 && periods[0] == 0 && coords[0] == 1);
}

/* Ranks 0 and 1 are in one cluster, 2 to 5 in the other: the two get a column of the grid. */
TEST(reordering_exchanges_clusters) {
  world();
  everybody(6);
  const ztopo *t = cart(2, (const int[]){2, 3}, (const int[]){0, 0});
  int position[6];
  SAME(ztopo_reorder(z_whole, t, 6, 0, "test", position), MPI_SUCCESS);
  for (int i = 0; i < 6; i++) SAME(position[i], i);
  SAME(ztopo_reorder(z_whole, t, 6, 1, "test", position), MPI_SUCCESS);
  CHECK(position[0] % 3 == position[1] % 3); /* a column: 2 edges across instead of 3 */
  free((void *)(uintptr_t)t);
}

TEST(without_memory) {
  world();
  everybody(6);
  MPI_Comm comm;
  fake_no_memory(0);
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){2, 3}, (const int[]){0, 1}, 0, &comm), MPI_ERR_NO_MEM);
  long before = fake_blocks();
  fake_no_memory(1); /* the allocation of the positions */
  SAME(z_Cart_create(MPI_COMM_WORLD, 2, (const int[]){2, 3}, (const int[]){0, 1}, 0, &comm), MPI_ERR_NO_MEM);
  fake_no_memory(0);
  SAME(z_Graph_create(MPI_COMM_WORLD, 1, (const int[]){0}, NULL, 0, &comm), MPI_ERR_NO_MEM);
  SAME(fake_blocks(), before);
  fake_no_memory(-1);
  SAME(fake.raised_code, MPI_ERR_NO_MEM);
}
