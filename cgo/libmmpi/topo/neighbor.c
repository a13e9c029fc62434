/* Neighbourhood collectives on communicators that span clusters: an alltoall of bytes in which only
 * neighbours have blocks. A neighbour that occurs several times gets its blocks in the order of the
 * sender's neighbours. In a Cartesian topology a block sent in the negative direction arrives from
 * the positive one (MPI 4.0, 8.6). */
#include "comm/comm.h"
#include "topo/topo.h"

/* Where the block for one neighbour stands among all blocks of a neighbourhood collective. */
typedef struct slot {
  int peer; /* the rank of the neighbour */
  /* the position of the block among the blocks of the same neighbour, from 0 */
  int order;
  int block; /* the index of the block in the program's arrays */
} slot;

static int by_peer(const void *a, const void *b) {
  const slot *x = a, *y = b;
  return x->peer != y->peer ? x->peer - y->peer : x->order - y->order;
}

/* Converts the blocks of b, one for each of the `degree` neighbours, to counts and displacements
 * for each rank, relative to the memory that it returns. `how` is the use of the blocks (ZB_SEND,
 * …). After an error j->rc is set, and the result must not be used. */
static void *fold(zcoll *j, int how, const zblocks *b, const int *neighbors, int degree, int mirrored,
                  const int64_t **counts, const int64_t **displs) {
  int size = j->comm->size, n = 0;
  int64_t *per_rank = zcoll_grab(j, size * 8), *from = zcoll_grab(j, size * 8);
  const int64_t *bytes, *at;
  slot *slots = zcoll_grab(j, degree * (int64_t)sizeof *slots);
  int64_t *elements = zcoll_grab(j, degree * 8);
  MPI_Aint *places = zcoll_grab(j, degree * (int64_t)sizeof *places);
  MPI_Datatype *types = zcoll_grab(j, degree * (int64_t)sizeof *types);
  if (j->rc) return NULL;
  for (int i = 0; i < degree; i++)
    if (neighbors[i] != MPI_PROC_NULL) slots[n++] = (slot){neighbors[i], mirrored ? i ^ 1 : i, i};
  qsort(slots, (size_t)n, sizeof *slots, by_peer);
  zblocks sorted = {.buf = b->buf, .many = elements, .addresses = places, .types = types};
  for (int k = 0; k < n; k++) {
    int64_t count = elements[k] = b->counts ? zcoll_number(b->counts, slots[k].block) : b->count;
    types[k] = b->types ? b->types[slots[k].block] : b->type;
    if (count > 0) places[k] = (MPI_Aint)zcoll_offset(j, b, slots[k].block);
    sorted.together |= k > 0 && slots[k].peer == slots[k - 1].peer;
  }
  void *base = zcoll_blocks(j, how, &sorted, n, -1, &bytes, &at);
  for (int k = 0; k < n && !j->rc; k++) {
    if (bytes[k] == 0) continue;
    if (per_rank[slots[k].peer] == 0) from[slots[k].peer] = at[k];
    per_rank[slots[k].peer] += bytes[k];
  }
  *counts = per_rank, *displs = from;
  return base;
}

static void exchange(zcoll *j, const zblocks *out, const zblocks *in) {
  const ztopo *t = ztopo_of(j->comm);
  int indegree, outdegree, *sources = NULL, *dests = NULL;
  j->args.op = Z_ALLTOALLV;
  if (!t) {
    zcoll_fail(j, MPI_ERR_TOPOLOGY);
    return;
  }
  if (!zcoll_fail(j, ztopo_neighbors(t, j->comm->rank, &indegree, &sources, &outdegree, &dests))) {
    j->args.send = fold(j, ZB_SEND, out, dests, outdegree, 0, &j->args.send_counts, &j->args.send_displs);
    if (!j->rc)
      j->args.recv =
          fold(j, ZB_RECV, in, sources, indegree, t->kind == MPI_CART, &j->args.recv_counts, &j->args.recv_displs);
  }
  if (dests != sources) free(dests);
  free(sources);
}

#define FROM(in) (void *)(uintptr_t)in

static void allgather(zcoll *j, const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to) {
  exchange(j, &(zblocks){.buf = FROM(in), .count = n, .type = type, .same = 1},
           &(zblocks){.buf = out, .count = m, .type = to});
}

static void allgatherv(zcoll *j, const void *in, int n, MPI_Datatype type, void *out, const int *counts,
                       const int *displs, MPI_Datatype to) {
  exchange(j, &(zblocks){.buf = FROM(in), .count = n, .type = type, .same = 1},
           &(zblocks){.buf = out, .counts = counts, .displs = displs, .type = to});
}

static void alltoall(zcoll *j, const void *in, int n, MPI_Datatype from, void *out, int m, MPI_Datatype to) {
  exchange(j, &(zblocks){.buf = FROM(in), .count = n, .type = from}, &(zblocks){.buf = out, .count = m, .type = to});
}

static void alltoallv(zcoll *j, const void *in, const int *sc, const int *sd, MPI_Datatype from, void *out,
                      const int *rc, const int *rd, MPI_Datatype to) {
  exchange(j, &(zblocks){.buf = FROM(in), .counts = sc, .displs = sd, .type = from},
           &(zblocks){.buf = out, .counts = rc, .displs = rd, .type = to});
}

static void alltoallw(zcoll *j, const void *in, const int *sc, const MPI_Aint *sd, const MPI_Datatype *from, void *out,
                      const int *rc, const MPI_Aint *rd, const MPI_Datatype *to) {
  exchange(j, &(zblocks){.buf = FROM(in), .counts = sc, .addresses = sd, .types = from},
           &(zblocks){.buf = out, .counts = rc, .addresses = rd, .types = to});
}

/* Inside a cluster a blocking call is not made by the native nonblocking form: Open MPI 4.1's mixes
 * up the two directions of a periodic dimension of size 1 or 2. */
#define NEIGHBOR(...) Z_COLLECTIVE_AS(Z_BY_BARRIER, __VA_ARGS__)

NEIGHBOR(Neighbor_allgather, Ineighbor_allgather, allgather,
         (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to), in, n, type, out, m, to)
NEIGHBOR(Neighbor_allgatherv, Ineighbor_allgatherv, allgatherv,
         (const void *in, int n, MPI_Datatype type, void *out, const int counts[], const int displs[], MPI_Datatype to),
         in, n, type, out, counts, displs, to)
NEIGHBOR(Neighbor_alltoall, Ineighbor_alltoall, alltoall,
         (const void *in, int n, MPI_Datatype from, void *out, int m, MPI_Datatype to), in, n, from, out, m, to)
NEIGHBOR(Neighbor_alltoallv, Ineighbor_alltoallv, alltoallv,
         (const void *in, const int sc[], const int sd[], MPI_Datatype from, void *out, const int rc[], const int rd[],
          MPI_Datatype to),
         in, sc, sd, from, out, rc, rd, to)
NEIGHBOR(Neighbor_alltoallw, Ineighbor_alltoallw, alltoallw,
         (const void *in, const int sc[], const MPI_Aint sd[], const MPI_Datatype from[], void *out, const int rc[],
          const MPI_Aint rd[], const MPI_Datatype to[]),
         in, sc, sd, from, out, rc, rd, to)
