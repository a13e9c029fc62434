/* Collectives over intercommunicators. Every process sends a block to each member of the other
 * group and receives one from each; most blocks are empty. So each collective is one exchange over
 * the members of both groups (Z_ALLTOALLV). Processes that pass MPI_PROC_NULL need no knowledge of
 * the other group. Reductions exchange the operands and combine them where the result is wanted, in
 * the order of rank.
 *
 *   time L + blocks·m·G; bytes: broadcast from the root n·m for n members of the other group,
 *   allgather a·b·m, allreduce 2·a·b·m */
#include "coll/coll.h"
#include <string.h>

/* The role of this process in a collective with a root: the root; a member of the root's group,
 * which does nothing; a member of the other group. */
enum role { ROOT, IDLE, OTHER };

static enum role role(zcoll *j, int root) {
  if (root == MPI_ROOT) return ROOT;
  if (root != MPI_PROC_NULL && (root < 0 || root >= j->comm->peers)) zcoll_fail(j, MPI_ERR_ROOT);
  return root == MPI_PROC_NULL || j->rc ? IDLE : OTHER;
}

/* Sets *wide_counts and *wide_displs to arrays with an element for each member of both groups. The
 * elements of the other group are those of counts and displs, and all others are 0. If counts is
 * NULL all elements are 0. */
static void widen(zcoll *j, const int64_t *counts, const int64_t *displs, const int64_t **wide_counts,
                  const int64_t **wide_displs) {
  int64_t *n = zcoll_grab(j, j->comm->size * 8), *at = zcoll_grab(j, j->comm->size * 8);
  *wide_counts = n, *wide_displs = at;
  if (!n || !at || !counts) return;
  memcpy(n + j->comm->base, counts, (size_t)j->comm->peers * 8);
  memcpy(at + j->comm->base, displs, (size_t)j->comm->peers * 8);
}

/* Makes j->args an alltoallv over the members of both groups in which all blocks are empty; callers
 * then set the blocks that are not. */
static void start_exchange(zcoll *j) {
  j->args.op = Z_ALLTOALLV;
  j->args.root = 0;
  j->args.uniform = 0;
  widen(j, NULL, NULL, &j->args.send_counts, &j->args.send_displs);
  widen(j, NULL, NULL, &j->args.recv_counts, &j->args.recv_displs);
}

static void send_blocks(zcoll *j, const zblocks *from) {
  const int64_t *counts, *displs;
  /* MPI_IN_PLACE is not allowed on intercommunicators */
  if (from->buf == MPI_IN_PLACE) zcoll_fail(j, MPI_ERR_BUFFER);
  if (j->rc) return;
  j->args.send = zcoll_blocks(j, ZB_SEND, from, j->comm->peers, -1, &counts, &displs);
  if (!j->rc) widen(j, counts, displs, &j->args.send_counts, &j->args.send_displs);
}

static void recv_blocks(zcoll *j, const zblocks *to) {
  const int64_t *counts, *displs;
  if (j->rc) return;
  j->args.recv = zcoll_blocks(j, ZB_RECV, to, j->comm->peers, -1, &counts, &displs);
  if (!j->rc) widen(j, counts, displs, &j->args.recv_counts, &j->args.recv_displs);
}

static void send_one(zcoll *j, const void *buf, int64_t count, MPI_Datatype type, int to) {
  if (buf == MPI_IN_PLACE) zcoll_fail(j, MPI_ERR_BUFFER);
  if (zcoll_check_count(j, count)) return;
  int64_t *counts = (int64_t *)(uintptr_t)j->args.send_counts;
  j->args.send = zcoll_send(j, buf, count, type, &counts[zcomm_at(j->comm, to)]);
}

static void recv_one(zcoll *j, void *buf, int64_t count, MPI_Datatype type, int from) {
  if (zcoll_check_count(j, count)) return;
  int64_t *counts = (int64_t *)(uintptr_t)j->args.recv_counts;
  j->args.recv = zcoll_recv(j, buf, count, type, &counts[zcomm_at(j->comm, from)]);
}

void zinter_bcast(zcoll *j, void *buf, int count, MPI_Datatype type, int root) {
  start_exchange(j);
  switch (role(j, root)) {
  case ROOT: send_blocks(j, &(zblocks){.buf = buf, .count = count, .type = type, .same = 1}); break;
  case OTHER: recv_one(j, buf, count, type, root); break;
  case IDLE: break;
  }
}

void zinter_gather(zcoll *j, const void *in, int count, MPI_Datatype type, const zblocks *to, int root) {
  start_exchange(j);
  switch (role(j, root)) {
  case ROOT: recv_blocks(j, to); break;
  case OTHER: send_one(j, in, count, type, root); break;
  case IDLE: break;
  }
}

void zinter_scatter(zcoll *j, const zblocks *from, void *out, int count, MPI_Datatype type, int root) {
  start_exchange(j);
  switch (role(j, root)) {
  case ROOT: send_blocks(j, from); break;
  case OTHER: recv_one(j, out, count, type, root); break;
  case IDLE: break;
  }
}

void zinter_exchange(zcoll *j, const zblocks *from, const zblocks *to) {
  start_exchange(j);
  send_blocks(j, from);
  recv_blocks(j, to);
}

/* ---- reductions ---- */

/* The operands of a reduction that this process receives from the members of the other group, and
 * the part of their result that it keeps. */
typedef struct operands {
  char *first; /* the first operand; all are consecutive, in the order of rank */
  /* The number of elements of each operand; the index of the first element that belongs to this
   * process's result; and the number of elements of the result. */
  int64_t count, take, results;
  void *result; /* the memory to which the elements of the result are copied */
} operands;

static int combine(zcoll *j) {
  const operands *o = j->operands;
  int64_t bytes = o->count * j->args.extent;
  if (j->args.recoded && z_cb_recode(j->args.type, o->first, o->count * j->comm->peers, Z_DECODE)) return MPI_ERR_OP;
  char *sum = o->first + (j->comm->peers - 1) * bytes;
  for (char *x = sum; x > o->first;) {
    x -= bytes;
    if (z_cb_reduce_local(x, sum, o->count, j->args.type, j->args.mpi_op)) return MPI_ERR_OP;
  }
  if (o->results) memcpy(o->result, sum + o->take * j->args.extent, (size_t)(o->results * j->args.extent));
  return MPI_SUCCESS;
}

/* Replaces this process's operand by a copy in the exchange format. */
static void encode_operand(zcoll *j, int64_t count) {
  char *copy = j->rc || !count ? NULL : zcoll_grab(j, count * j->args.extent);
  if (!copy) return;
  memcpy(copy, j->args.send, (size_t)(count * j->args.extent));
  j->args.send = copy;
  if (z_cb_recode(j->args.type, copy, count, Z_ENCODE)) zcoll_fail(j, MPI_ERR_OP);
}

/* Adds to the exchange j this process's operand of `count` elements as the block for the peer `to`,
 * or for every peer if `to` is negative. */
static void send_operand(zcoll *j, const void *in, int64_t count, MPI_Datatype type, int to) {
  if (in == MPI_IN_PLACE) zcoll_fail(j, MPI_ERR_BUFFER);
  if (j->rc) return;
  int64_t *counts = (int64_t *)(uintptr_t)j->args.send_counts;
  j->args.send = zcoll_operand(j, in, count, type);
  if (j->args.recoded) encode_operand(j, count);
  for (int i = 0; i < j->comm->peers; i++)
    if (to < 0 || i == to) counts[zcomm_at(j->comm, i)] = count * j->args.extent;
}

static void recv_operands(zcoll *j, void *out, int64_t count, int64_t take, int64_t results, MPI_Datatype type) {
  if (j->rc || count == 0) return;
  int64_t bytes = count * j->args.extent, *counts = (int64_t *)(uintptr_t)j->args.recv_counts,
          *at = (int64_t *)(uintptr_t)j->args.recv_displs;
  operands *o = j->operands = zcoll_grab(j, sizeof *o);
  char *all = zcoll_grab(j, bytes * j->comm->peers);
  void *result = zcoll_result(j, out, results, results, type, 0, 0);
  if (j->rc) return;
  *o = (operands){all, count, take, results, result};
  for (int i = 0; i < j->comm->peers; i++) {
    counts[zcomm_at(j->comm, i)] = bytes;
    at[zcomm_at(j->comm, i)] = i * bytes;
  }
  j->args.recv = all;
  j->combine = combine;
}

void zinter_reduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op, int root) {
  start_exchange(j);
  enum role r = role(j, root);
  if (r == IDLE || zcoll_reduction(j, Z_ALLTOALLV, count, type, op)) return;
  if (r == ROOT) recv_operands(j, out, count, 0, count, type);
  else send_operand(j, in, count, type, root);
}

void zinter_allreduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op) {
  start_exchange(j);
  if (zcoll_reduction(j, Z_ALLTOALLV, count, type, op)) return;
  /* Each process would compute the result in its own format, so that the results would differ */
  if (j->args.recoded) zcoll_fail(j, MPI_ERR_UNSUPPORTED_OPERATION);
  send_operand(j, in, count, type, -1);
  recv_operands(j, out, count, 0, count, type);
}

/* Prepares a reduction of the operands of each group whose result is scattered over the other
 * group; the total of elements is the same in both groups. Member i of this process's group gets
 * counts[i] elements, or `count` elements if counts is NULL. */
void zinter_reduce_scatter(zcoll *j, const void *in, void *out, const int *counts, int64_t count, MPI_Datatype type,
                           MPI_Op op) {
  int64_t total = 0, take = 0;
  int me = j->comm->rank - zcomm_first(j->comm), n = zcomm_members(j->comm);
  start_exchange(j);
  for (int i = 0; i < n && !zcoll_check_count(j, counts ? zcoll_number(counts, i) : count); i++) {
    if (i == me) take = total;
    total += counts ? zcoll_number(counts, i) : count;
  }
  if (j->rc || zcoll_reduction(j, Z_ALLTOALLV, total, type, op)) return;
  send_operand(j, in, total, type, -1);
  recv_operands(j, out, total, take, counts ? zcoll_number(counts, me) : count, type);
}
