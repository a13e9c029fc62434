/* The engine's collectives inside this cluster: native nonblocking collectives on the local part of
 * a communicator. Ranks and counts are local. Data is MPI_BYTE but for reductions. Called from
 * inside the engine: nothing here may call it. */
#include "coll/coll.h"
#include "coll/smallstage.h"
#include <limits.h>

/* One on its way. MPI wants count arrays to stay until the end. */
typedef struct running {
  struct running *next;
  int over, rc;
  MPI_Request request;
  zsmall *small;    /* not NULL: it is done like that instead */
  zcomm *asks;      /* not NULL: what smallstage.c needs is brought beside it */
  MPI_Datatype big; /* of a broadcast too long for int */
  int ints[];
} running;

static running *under_way;

static int narrow(const int64_t *from, int n, int *to) {
  for (int i = 0; i < n; i++) {
    if (from[i] > INT_MAX) return 0;
    to[i] = (int)from[i];
  }
  return 1;
}

static int broadcast(running *r, const z_coll *a, MPI_Comm comm) {
  enum { PIECE = 1 << 20 };
  if (a->send_bytes <= INT_MAX) return real.Ibcast(a->recv, (int)a->send_bytes, MPI_BYTE, a->root, comm, &r->request);
  MPI_Datatype piece, parts[2];
  int lengths[2] = {(int)(a->send_bytes / PIECE), (int)(a->send_bytes % PIECE)};
  MPI_Aint at[2] = {0, (MPI_Aint)lengths[0] * PIECE};
  int rc = real.Type_contiguous(PIECE, MPI_BYTE, &piece);
  if (rc) return rc;
  parts[0] = piece, parts[1] = MPI_BYTE;
  rc = real.Type_create_struct(2, lengths, at, parts, &r->big);
  real.Type_free(&piece);
  if (!rc) rc = real.Type_commit(&r->big);
  return rc ? rc : real.Ibcast(a->recv, 1, r->big, a->root, comm, &r->request);
}

/* Data movement with a block for each rank; `ints` has room for four arrays. */
static int blocks(running *r, const z_coll *a, MPI_Comm comm, int n, int rank) {
  int *sc = r->ints, *sd = sc + n, *rc = sd + n, *rd = rc + n, root = rank == a->root;
  int sends = a->op == Z_ALLTOALLV || (a->op == Z_SCATTERV && root),
      receives = a->op != Z_SCATTERV && (a->op != Z_GATHERV || root);
  if (a->send_bytes > INT_MAX || (sends && !(narrow(a->send_counts, n, sc) && narrow(a->send_displs, n, sd))) ||
      (receives && !(narrow(a->recv_counts, n, rc) && narrow(a->recv_displs, n, rd))))
    return MPI_ERR_COUNT;
  int bytes = (int)a->send_bytes;
  const void *mine = receives && a->op != Z_ALLTOALLV && a->send == (char *)a->recv + rd[rank] ? MPI_IN_PLACE : a->send;
  void *place =
      root && sends && a->op == Z_SCATTERV && a->recv == (char *)(uintptr_t)a->send + sd[rank] ? MPI_IN_PLACE : a->recv;
  switch (a->op) {
  case Z_GATHERV: return real.Igatherv(mine, bytes, MPI_BYTE, a->recv, rc, rd, MPI_BYTE, a->root, comm, &r->request);
  case Z_SCATTERV: return real.Iscatterv(a->send, sc, sd, MPI_BYTE, place, bytes, MPI_BYTE, a->root, comm, &r->request);
  case Z_ALLGATHERV: return real.Iallgatherv(mine, bytes, MPI_BYTE, a->recv, rc, rd, MPI_BYTE, comm, &r->request);
  default: return real.Ialltoallv(a->send, sc, sd, MPI_BYTE, a->recv, rc, rd, MPI_BYTE, comm, &r->request);
  }
}

static int reduction(running *r, const z_coll *a, MPI_Comm comm, int n, int rank) {
  MPI_Datatype type = (MPI_Datatype)(uintptr_t)a->type;
  MPI_Op op = (MPI_Op)(uintptr_t)a->mpi_op;
  const ztype *t = ztype_get(type);
  if (!t) return MPI_ERR_TYPE;
  if (a->count > INT_MAX) return MPI_ERR_COUNT;
  int count = (int)a->count, in_place = a->send == a->recv && (a->op != Z_REDUCE || rank == a->root);
  /* The engine's addresses are of the first byte, MPI's of the type's origin. */
  const void *in = in_place ? MPI_IN_PLACE : (const char *)a->send - t->true_lb;
  void *out = (char *)a->recv - t->true_lb;
  switch (a->op) {
  case Z_REDUCE: return real.Ireduce(in, out, count, type, op, a->root, comm, &r->request);
  case Z_ALLREDUCE: return real.Iallreduce(in, out, count, type, op, comm, &r->request);
  case Z_SCAN: return real.Iscan(in, out, count, type, op, comm, &r->request);
  case Z_EXSCAN: return real.Iexscan(in, out, count, type, op, comm, &r->request);
  default:
    if (!narrow(a->recv_counts, n, r->ints)) return MPI_ERR_COUNT;
    return real.Ireduce_scatter(in, out, r->ints, type, op, comm, &r->request);
  }
}

static int start_stage(running *r, zcomm *c, const z_coll *a) {
  int n = c->native_size, rank = c->native_rank;
  if (zsmall_takes(c, a)) {
    if (zsmall_ready(c)) return zsmall_begin(c, a, &r->small);
    int rc = zsmall_ask(c);
    if (rc) return rc;
    r->asks = c;
  }
  switch (a->op) {
  case Z_BARRIER: return real.Ibarrier(c->native, &r->request);
  case Z_BCAST: return broadcast(r, a, c->native);
  case Z_GATHERV:
  case Z_SCATTERV:
  case Z_ALLGATHERV:
  case Z_ALLTOALLV: return blocks(r, a, c->native, n, rank);
  default: return reduction(r, a, c->native, n, rank);
  }
}

int z_cb_coll(void *comm, const z_coll *a, uint64_t *token) {
  zcomm *c = comm;
  running *r = malloc(sizeof *r + 4 * (size_t)c->native_size * sizeof(int));
  if (!r) return -Z_ERR_INTERNAL;
  r->request = MPI_REQUEST_NULL;
  r->asks = NULL;
  r->big = MPI_DATATYPE_NULL;
  r->small = NULL;
  int rc = start_stage(r, c, a);
  if (rc) {
    free(r);
    return rc == MPI_ERR_COUNT ? -Z_ERR_UNSUPPORTED : -Z_ERR_OP;
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
  /* Only the second notices what the first has received */
  if (!rc && !*over && !z_native_yields) rc = real.Test(&r->request, over, MPI_STATUS_IGNORE);
  return rc || !*over || !r->asks ? rc : zsmall_known(r->asks, over);
}

/* Whether it is over or has failed. */
static int test(running *r) {
  if (!r->over && !r->rc) r->rc = progress(r, &r->over);
  return r->over || r->rc;
}

int zstages_moved(void) {
  int moved = 0;
  for (running *r = under_way; r; r = r->next) moved |= test(r);
  return moved;
}

int z_cb_coll_test(uint64_t token) {
  running *r = (running *)(uintptr_t)token, **at = &under_way;
  if (!test(r)) {
    z_looks++;
    return 0;
  }
  while (*at != r) at = &(*at)->next;
  *at = r->next;
  int rc = r->rc;
  if (r->big != MPI_DATATYPE_NULL) real.Type_free(&r->big);
  free(r->small);
  free(r);
  return rc ? -Z_ERR_OP : 1;
}

int z_cb_reduce_local(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op) {
  MPI_Datatype t = (MPI_Datatype)(uintptr_t)type;
  const ztype *l = ztype_get(t);
  if (!l) return Z_ERR_OP;
  for (int64_t i = 0; i < count;) { /* in pieces: MPI's count is int */
    int64_t n = count - i < INT_MAX ? count - i : INT_MAX, at = i * l->extent - l->true_lb;
    if (real.Reduce_local((const char *)in + at, (char *)inout + at, (int)n, t, (MPI_Op)(uintptr_t)op)) return Z_ERR_OP;
    i += n;
  }
  return Z_OK;
}
