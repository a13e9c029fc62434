/* Reductions on communicators that span clusters. Elements keep the layout of their type. */
#include "coll/coll.h"
#include "type/op.h"
#include "type/use.h"
#include <stddef.h>

/* Returns the error class of a predefined operator that is not defined for a predefined type, or
 * MPI_SUCCESS. A reduction in this process alone finds it. Otherwise only some processes would find
 * it later, in MPI_Reduce_local, which raises its error on MPI_COMM_WORLD. */
static int undefined(const ztype *t, MPI_Datatype type, MPI_Op op) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  int fn = t->predefined ? zop_fn(op) : 0, class_ = MPI_SUCCESS;
  if (!fn || t->fns >> fn & 1) return MPI_SUCCESS;
  _Alignas(max_align_t) char in[64] = {0}, out[64];
  if (t->true_extent > (int64_t)sizeof in) return MPI_SUCCESS;
  z_lock(&one);
  int rc = real.Allreduce(in, out, 1, type, op, z_self);
  z_unlock(&one);
  if (rc) class_ = z_native_class(rc);
  else ((ztype *)t)->fns |= 1u << fn;
  return class_;
}

int zcoll_reduction(zcoll *j, int op, int64_t count, MPI_Datatype type, MPI_Op mpi_op) {
  const ztype *t = ztype_get(type);
  int commutative = 0;
  if (!t) return zcoll_fail(j, MPI_ERR_TYPE);
  if (mpi_op == MPI_OP_NULL) return zcoll_fail(j, MPI_ERR_OP);
  if (zcoll_fail(j, undefined(t, type, mpi_op))) return j->rc;
  if (zcoll_check_count(j, count) || zcoll_fail(j, real.Op_commutative(mpi_op, &commutative))) return j->rc;
  j->args.op = op;
  j->args.count = count;
  j->args.extent = t->extent;
  j->args.commutative = commutative;
  j->args.type = z_key(type);
  j->args.mpi_op = z_key(mpi_op);
  /* Every rank uses the engine, which converts the elements between clusters */
  if (t->longs) j->args.recoded = 1, j->launch = zcoll_by_engine;
  if (!j->nonblocking) return MPI_SUCCESS;
  ztype_retain(type);
  zop_retain(mpi_op);
  j->reduces = 1;
  return MPI_SUCCESS;
}

/* Sets the operand of `count` elements and the result of `results` elements of a reduction in
 * j->args. If `untouched` is 1 the program's result buffer is not written, like that of Exscan at
 * rank 0. */
static void operands(zcoll *j, const void *in, void *out, int64_t count, int64_t results, MPI_Datatype type,
                     int untouched) {
  int in_place = in == MPI_IN_PLACE;
  j->args.recv = zcoll_result(j, out, in_place ? count : results, results, type, in_place, untouched);
  j->args.send = in_place ? j->args.recv : zcoll_operand(j, in, count, type);
}

static void reduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op, int root) {
  if (j->comm->inter) return zinter_reduce(j, in, out, count, type, op, root);
  if (zcoll_check_root(j, root) || zcoll_reduction(j, Z_REDUCE, count, type, op)) return;
  int at_root = j->comm->rank == root;
  /* Native libraries reject this too; of the other reductions only some do */
  if (at_root && count && in == out && in != MPI_BOTTOM) zcoll_fail(j, MPI_ERR_BUFFER);
  else if (at_root) operands(j, in, out, count, count, type, 0);
  else j->args.send = zcoll_operand(j, in, count, type);
}

static void allreduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op) {
  if (j->comm->inter) return zinter_allreduce(j, in, out, count, type, op);
  if (!zcoll_reduction(j, Z_ALLREDUCE, count, type, op)) operands(j, in, out, count, count, type, 0);
}

/* Checks that the communicator is not an intercommunicator, for which MPI defines no scans.
 * Otherwise sets j->rc to an error. Returns 0 or the error class. */
static int no_inter(zcoll *j) { return j->comm->inter ? zcoll_fail(j, MPI_ERR_COMM) : 0; }

static void scan(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op) {
  if (no_inter(j)) return;
  if (!zcoll_reduction(j, Z_SCAN, count, type, op)) operands(j, in, out, count, count, type, 0);
}

static void exscan(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op) {
  if (no_inter(j)) return;
  if (!zcoll_reduction(j, Z_EXSCAN, count, type, op)) operands(j, in, out, count, count, type, j->comm->rank == 0);
}

/* Prepares a reduction of which each rank gets its part of the result. Rank i gets counts[i]
 * elements, or `count` elements if counts is NULL. */
static void scatter_reduced(zcoll *j, const void *in, void *out, const int *counts, int64_t count, MPI_Datatype type,
                            MPI_Op op) {
  if (j->comm->inter) return zinter_reduce_scatter(j, in, out, counts, count, type, op);
  int n = j->comm->size;
  int64_t *all = zcoll_grab(j, n * 8), total = 0;
  for (int i = 0; i < n && all && !j->rc; i++) {
    all[i] = counts ? zcoll_number(counts, i) : count;
    zcoll_check_count(j, all[i]);
    total += all[i];
  }
  if (j->rc || zcoll_reduction(j, Z_REDUCE_SCATTER, total, type, op)) return;
  j->args.recv_counts = all;
  operands(j, in, out, total, all[j->comm->rank], type, 0);
}

static void reduce_scatter(zcoll *j, const void *in, void *out, const int *counts, MPI_Datatype type, MPI_Op op) {
  scatter_reduced(j, in, out, counts, 0, type, op);
}

static void reduce_scatter_block(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op) {
  scatter_reduced(j, in, out, NULL, count, type, op);
}

Z_ROOTED(Reduce, Ireduce, reduce, (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root), in,
         out, count, type, op, root)
Z_COLLECTIVE(Allreduce, Iallreduce, allreduce, (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op), in,
             out, count, type, op)
Z_COLLECTIVE(Scan, Iscan, scan, (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op), in, out, count,
             type, op)
Z_COLLECTIVE(Exscan, Iexscan, exscan, (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op), in, out,
             count, type, op)
Z_COLLECTIVE(Reduce_scatter, Ireduce_scatter, reduce_scatter,
             (const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op), in, out, counts, type, op)
Z_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block,
             (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op), in, out, count, type, op)

#ifdef Z_HAVE_Allreduce_c
Z_ROOTED(Reduce_c, Ireduce_c, reduce,
         (const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root), in, out, count, type, op,
         root)
Z_COLLECTIVE(Allreduce_c, Iallreduce_c, allreduce,
             (const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op), in, out, count, type, op)
Z_COLLECTIVE(Scan_c, Iscan_c, scan, (const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op), in, out,
             count, type, op)
Z_COLLECTIVE(Exscan_c, Iexscan_c, exscan, (const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op),
             in, out, count, type, op)
Z_COLLECTIVE(Reduce_scatter_block_c, Ireduce_scatter_block_c, reduce_scatter_block,
             (const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op), in, out, count, type, op)
#endif
