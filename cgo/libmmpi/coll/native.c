/* The engine's collectives inside this cluster: native nonblocking collectives on the local part of
 * a communicator. Ranks and counts are local. Data is of type MPI_BYTE except in reductions. The
 * functions z_cb_… are called from inside the engine and must not call it. */
#include "coll/coll.h"
#include "coll/smallstage.h"
#include "p2p/p2p.h"
#include <limits.h>

/* A native collective that the engine has started inside this cluster. */
typedef struct running {
  /* the next element of the list of collectives in progress */
  struct running *next;
  /* over is 1 once the collective has completed; rc is its MPI error code, or MPI_SUCCESS */
  int over, rc;
  MPI_Request request; /* the native request, if the collective is not done by `small` */
  /* The messages of smallstage.c that do the collective in place of a native one, or NULL. */
  zsmall *small;
  /* The communicator that gets its channel (zchannel) beside this collective, or NULL. */
  zcomm *asks;
  /* the count and the type by which a broadcast of more bytes than an int is passed to native
   * MPI */
  zmany many;
  /* The communicator, if the collective is an alltoall that zipper run --record reports as
   * messages, otherwise NULL. */
  zcomm *recorded;
  /* [native_size] 1 for each process that sends bytes to this process, otherwise 0. The array
   * follows the counts in memory. */
  char *sends;
  /* copies of the counts and displacements of the blocks, as native MPI takes them */
  _Alignas(8) char counts[];
} running;

/* The size in bytes of the counts and displacements of a collective among N ranks: two arrays of N
 * numbers for sending, and two for receiving. */
#define COUNTS(N) (4 * (size_t)(N) * sizeof(int64_t))

static running *under_way;

static int broadcast(running *r, const z_coll *a, MPI_Comm comm) {
  int rc = zmany_begin(&r->many, a->send_bytes, MPI_BYTE);
  return rc ? rc : real.Ibcast(a->recv, r->many.count, r->many.type, a->root, comm, &r->request);
}

/* Starts a collective that has a block for each rank, with copies of the counts and displacements
 * in the object, because MPI reads these arrays until the end. Returns MPI_ERR_COUNT if they are
 * too large for these types. The big-count functions take part in the same collective as the
 * others, so only a process that needs them calls them. */
#define BLOCKS(NAME, COUNT, PLACE, SUFFIX)                                                                        \
  static int NAME(running *r, const z_coll *a, MPI_Comm comm, int n, int rank) {                                  \
    COUNT *sc = (COUNT *)r->counts, *rc = sc + n, bytes = (COUNT)a->send_bytes;                                   \
    PLACE *sd = (PLACE *)(rc + n), *rd = sd + n;                                                                  \
    int root = rank == a->root, sends = a->op == Z_ALLTOALLV || (a->op == Z_SCATTERV && root),                    \
        receives = a->op != Z_SCATTERV && (a->op != Z_GATHERV || root), fit = bytes == a->send_bytes;             \
    for (int i = 0; i < n && sends && fit; i++) {                                                                 \
      sc[i] = (COUNT)a->send_counts[i], sd[i] = (PLACE)a->send_displs[i];                                         \
      fit = sc[i] == a->send_counts[i] && sd[i] == a->send_displs[i];                                             \
    }                                                                                                             \
    for (int i = 0; i < n && receives && fit; i++) {                                                              \
      rc[i] = (COUNT)a->recv_counts[i], rd[i] = (PLACE)a->recv_displs[i];                                         \
      fit = rc[i] == a->recv_counts[i] && rd[i] == a->recv_displs[i];                                             \
    }                                                                                                             \
    if (!fit) return MPI_ERR_COUNT;                                                                               \
    int mine_is_there = receives && a->op != Z_ALLTOALLV && a->send == (char *)a->recv + rd[rank];                \
    int stays = root && sends && a->op == Z_SCATTERV && a->recv == (char *)(uintptr_t)a->send + sd[rank];         \
    const void *mine = mine_is_there ? MPI_IN_PLACE : a->send;                                                    \
    void *place = stays ? MPI_IN_PLACE : a->recv;                                                                 \
    MPI_Request *request = &r->request;                                                                           \
    switch (a->op) {                                                                                              \
    case Z_GATHERV:                                                                                               \
      return real.Igatherv##SUFFIX(mine, bytes, MPI_BYTE, a->recv, rc, rd, MPI_BYTE, a->root, comm, request);     \
    case Z_SCATTERV:                                                                                              \
      return real.Iscatterv##SUFFIX(a->send, sc, sd, MPI_BYTE, place, bytes, MPI_BYTE, a->root, comm, request);   \
    case Z_ALLGATHERV:                                                                                            \
        return real.Iallgatherv##SUFFIX(mine, bytes, MPI_BYTE, a->recv, rc, rd, MPI_BYTE, comm, request);         \
    default: return real.Ialltoallv##SUFFIX(a->send, sc, sd, MPI_BYTE, a->recv, rc, rd, MPI_BYTE, comm, request); \
    }                                                                                                             \
  }
BLOCKS(blocks, int, int, )
#ifdef Z_HAVE_Igatherv_c
BLOCKS(large_blocks, MPI_Count, MPI_Aint, _c)
#endif

#define REDUCTION(NAME, COUNT, SUFFIX)                                                                \
  static int NAME(running *r, const z_coll *a, MPI_Comm comm, int n, int rank) {                      \
    MPI_Datatype type = (MPI_Datatype)(uintptr_t)a->type;                                             \
    MPI_Op op = (MPI_Op)(uintptr_t)a->mpi_op;                                                         \
    const ztype *t = ztype_get(type);                                                                 \
    COUNT count = (COUNT)a->count, *counts = (COUNT *)r->counts;                                      \
    if (!t) return MPI_ERR_TYPE;                                                                      \
    if (count != a->count) return MPI_ERR_COUNT;                                                      \
    int in_place = a->send == a->recv && (a->op != Z_REDUCE || rank == a->root);                      \
    /* The engine passes addresses of the first byte, MPI those of the type's origin. */              \
    const void *in = in_place ? MPI_IN_PLACE : (const char *)a->send - t->true_lb;                    \
    void *out = (char *)a->recv - t->true_lb;                                                         \
    switch (a->op) {                                                                                  \
    case Z_REDUCE: return real.Ireduce##SUFFIX(in, out, count, type, op, a->root, comm, &r->request); \
    case Z_ALLREDUCE: return real.Iallreduce##SUFFIX(in, out, count, type, op, comm, &r->request);    \
    case Z_SCAN: return real.Iscan##SUFFIX(in, out, count, type, op, comm, &r->request);              \
    case Z_EXSCAN: return real.Iexscan##SUFFIX(in, out, count, type, op, comm, &r->request);          \
    default:                                                                                          \
      for (int i = 0; i < n; i++)                                                                     \
        if ((counts[i] = (COUNT)a->recv_counts[i]) != a->recv_counts[i]) return MPI_ERR_COUNT;        \
      return real.Ireduce_scatter##SUFFIX(in, out, counts, type, op, comm, &r->request);              \
    }                                                                                                 \
  }
REDUCTION(reduction, int, )
#ifdef Z_HAVE_Igatherv_c
REDUCTION(large_reduction, MPI_Count, _c)
#endif

static int start_stage(running *r, zcomm *c, const z_coll *a) {
  int n = c->native_size, rank = c->native_rank;
  if (zsmall_takes(c, a)) {
    if (zsmall_ready(c)) return zsmall_begin(c, a, &r->small);
    int rc = zsmall_ask(c);
    if (rc) return rc;
    r->asks = c;
  }
  int rc;
  switch (a->op) {
  case Z_BARRIER: return real.Ibarrier(c->native, &r->request);
  case Z_BCAST: return broadcast(r, a, c->native);
  case Z_GATHERV:
  case Z_SCATTERV:
  case Z_ALLGATHERV:
  case Z_ALLTOALLV: rc = blocks(r, a, c->native, n, rank);
#ifdef Z_HAVE_Igatherv_c
    if (rc == MPI_ERR_COUNT) rc = large_blocks(r, a, c->native, n, rank);
#endif
    return rc;
  default: rc = reduction(r, a, c->native, n, rank);
#ifdef Z_HAVE_Igatherv_c
    if (rc == MPI_ERR_COUNT) rc = large_reduction(r, a, c->native, n, rank);
#endif
    return rc;
  }
}

/* zipper run --record: of the collectives inside a cluster only alltoall moves data that every
 * algorithm has to move, from each process to each. Empty blocks are not recorded as messages,
 * because several stages can be in progress and complete in any order. */
static void record_begin(running *r, zcomm *c, const z_coll *a) {
  int n = c->native_size;
  r->recorded = z_layout.recording && a->op == Z_ALLTOALLV ? c : NULL;
  r->sends = r->counts + COUNTS(n);
  for (int i = 0; r->recorded && i < n; i++) {
    r->sends[i] = i != c->native_rank && a->recv_counts[i];
    if (i != c->native_rank && a->send_counts[i]) p2p_note(c->native, i, a->send_counts[i], MPI_BYTE);
  }
}

static void record_end(const running *r) {
  for (int i = 0; r->recorded && i < r->recorded->native_size; i++)
    if (r->sends[i]) z_note_taken(r->recorded->native, i, MPI_STATUS_IGNORE);
}

/* Returns the enum z_error for rc, with which a native collective has failed. */
static int error_of(int rc) {
  int class_ = z_native_class(rc);
  if (class_ == MPI_ERR_OP) return Z_ERR_OP;
  if (class_ == MPI_ERR_COUNT) return Z_ERR_UNSUPPORTED; /* more elements than this library can count */
  if (class_ == MPI_ERR_TRUNCATE) return Z_ERR_TRUNCATE;
  if (class_ == Z_CLASS_PROC_FAILED) return Z_ERR_PROC_FAILED;
  if (class_ == Z_CLASS_REVOKED) return Z_ERR_REVOKED;
  return Z_ERR_INTERNAL;
}

int z_cb_coll(void *comm, const z_coll *a, uint64_t *token) {
  Z_OUT_OF_ENGINE;
  zcomm *c = comm;
  running *r = malloc(sizeof *r + COUNTS(c->native_size) + (size_t)c->native_size);
  if (!r) return -Z_ERR_INTERNAL;
  r->request = MPI_REQUEST_NULL;
  r->asks = NULL;
  r->many.made = 0;
  r->small = NULL;
  record_begin(r, c, a);
  int rc = start_stage(r, c, a);
  if (rc) {
    zmany_end(&r->many);
    free(r);
    return -error_of(rc);
  }
  r->over = r->rc = 0;
  r->next = under_way;
  under_way = r;
  *token = (uint64_t)(uintptr_t)r;
  return Z_OK;
}

static int progress(running *r, int *over) {
  if (r->small) return zsmall_test(r->small, over);
  int rc = real.Test(&r->request, over, MPI_STATUS_IGNORE);
  /* Open MPI notices only in the second call what the first has received */
  if (!rc && !*over && !z_native_yields) rc = real.Test(&r->request, over, MPI_STATUS_IGNORE);
  return rc || !*over || !r->asks ? rc : zsmall_known(r->asks, over);
}

/* Advances a native collective. Returns whether it has completed or failed. */
static int test(running *r) {
  if (!r->over && !r->rc) r->rc = progress(r, &r->over);
  return r->over || r->rc;
}

int zstages_moved(void) {
  int moved = 0;
  for (running *r = under_way; r; r = r->next)
    if (!r->over && !r->rc) moved |= test(r); /* the engine may collect later what is over */
  return moved;
}

int z_cb_coll_test(uint64_t token) {
  Z_OUT_OF_ENGINE;
  running *r = (running *)(uintptr_t)token, **at = &under_way;
  if (!test(r)) {
    z_looks++;
    return 0;
  }
  while (*at != r) at = &(*at)->next;
  *at = r->next;
  int rc = r->rc;
  record_end(r);
  zmany_end(&r->many);
  free(r->small);
  free(r);
  return rc ? -error_of(rc) : 1;
}

int z_cb_reduce_local(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op) {
  Z_OUT_OF_ENGINE;
  MPI_Datatype t = (MPI_Datatype)(uintptr_t)type;
  const ztype *l = ztype_get(t);
  if (!l) return Z_ERR_OP;
  for (int64_t i = 0; i < count;) { /* in pieces, because MPI's count is an int */
    int64_t n = count - i < INT_MAX ? count - i : INT_MAX, at = i * l->extent - l->true_lb;
    if (real.Reduce_local((const char *)in + at, (char *)inout + at, (int)n, t, (MPI_Op)(uintptr_t)op)) return Z_ERR_OP;
    i += n;
  }
  return Z_OK;
}
