/* Collectives that move data, on communicators that span clusters: blocking and nonblocking ones
 * share their preparation. The engine does the work (package collectives); this file converts the
 * program's arguments to those of z_coll. */
#include "coll/coll.h"

_Thread_local struct zfortran_types zfortran_types;

/* ---- barrier and broadcast ---- */

int z_Barrier(MPI_Comm comm) {
  zcomm *c = zcomm_find(comm);
  /* all ranks use the same form, whether their engine is idle or not */
  if (!c) return z_native_barrier(comm);
  zreq *r = zcoll_begin(c, 0, "MPI_Barrier");
  zcoll_of(r)->args.op = Z_BARRIER;
  return zcoll_run(r);
}

int z_Ibarrier(MPI_Comm comm, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Ibarrier(comm, request);
  zreq *r = zcoll_begin(c, 1, "MPI_Ibarrier");
  zcoll_of(r)->args.op = Z_BARRIER;
  return zcoll_start(r, request);
}

static void bcast(zcoll *j, void *buf, int count, MPI_Datatype type, int root) {
  if (j->comm->inter) return zinter_bcast(j, buf, count, type, root);
  j->args.op = Z_BCAST;
  if (zcoll_check_root(j, root) || zcoll_check_count(j, count)) return;
  if (j->comm->rank == root) j->args.recv = (void *)(uintptr_t)zcoll_send(j, buf, count, type, &j->args.send_bytes);
  else j->args.recv = zcoll_recv(j, buf, count, type, &j->args.send_bytes);
}

Z_ROOTED(Bcast, Ibcast, bcast, (void *buf, int count, MPI_Datatype type, int root), buf, count, type, root)

/* ---- gather ---- */

static void send_block(zcoll *j, const void *buf, int count, MPI_Datatype type) {
  if (!zcoll_check_count(j, count)) j->args.send = zcoll_send(j, buf, count, type, &j->args.send_bytes);
}

/* Sets j->args so that this process sends its own block of the receive buffer, as MPI_IN_PLACE
 * requires. */
static void send_in_place(zcoll *j) {
  int me = j->comm->rank;
  if (j->rc) return;
  j->args.send = (char *)j->args.recv + j->args.recv_displs[me];
  j->args.send_bytes = j->args.recv_counts[me];
}

static void receive_blocks(zcoll *j, const zblocks *to, int in_place) {
  j->args.recv = zcoll_blocks(j, ZB_RECV, to, j->comm->size, in_place ? j->comm->rank : -1, &j->args.recv_counts,
                              &j->args.recv_displs);
  if (in_place) send_in_place(j);
}

static void gather_blocks(zcoll *j, const void *in, int count, MPI_Datatype type, const zblocks *to, int root) {
  if (j->comm->inter) return zinter_gather(j, in, count, type, to, root);
  j->args.op = Z_GATHERV;
  if (zcoll_check_root(j, root)) return;
  int at_root = j->comm->rank == root, in_place = at_root && in == MPI_IN_PLACE;
  if (at_root) receive_blocks(j, to, in_place);
  if (!in_place) send_block(j, in, count, type);
}

static void gather(zcoll *j, const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to, int root) {
  j->args.uniform = 1;
  gather_blocks(j, in, n, type, &(zblocks){.buf = out, .count = m, .type = to}, root);
}

static void gatherv(zcoll *j, const void *in, int n, MPI_Datatype type, void *out, const int *counts, const int *displs,
                    MPI_Datatype to, int root) {
  gather_blocks(j, in, n, type, &(zblocks){.buf = out, .counts = counts, .displs = displs, .type = to}, root);
}

Z_ROOTED(Gather, Igather, gather,
         (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to, int root), in, n, type, out, m,
         to, root)
Z_ROOTED(Gatherv, Igatherv, gatherv,
         (const void *in, int n, MPI_Datatype type, void *out, const int counts[], const int displs[], MPI_Datatype to,
          int root),
         in, n, type, out, counts, displs, to, root)

/* ---- scatter ---- */

static void scatter_blocks(zcoll *j, const zblocks *from, void *out, int count, MPI_Datatype type, int root) {
  if (j->comm->inter) return zinter_scatter(j, from, out, count, type, root);
  j->args.op = Z_SCATTERV;
  if (zcoll_check_root(j, root)) return;
  int at_root = j->comm->rank == root;
  if (at_root) {
    j->args.send = zcoll_blocks(j, ZB_SEND, from, j->comm->size, -1, &j->args.send_counts, &j->args.send_displs);
    if (j->rc) return;
  }
  if (at_root && out == MPI_IN_PLACE) { /* the root's block stays in place */
    j->args.recv = (char *)(uintptr_t)j->args.send + j->args.send_displs[root];
    j->args.send_bytes = j->args.send_counts[root];
  } else if (!zcoll_check_count(j, count)) {
    j->args.recv = zcoll_recv(j, out, count, type, &j->args.send_bytes);
  }
}

static void scatter(zcoll *j, const void *in, int n, MPI_Datatype from, void *out, int m, MPI_Datatype type, int root) {
  j->args.uniform = 1;
  scatter_blocks(j, &(zblocks){.buf = (void *)(uintptr_t)in, .count = n, .type = from}, out, m, type, root);
}

static void scatterv(zcoll *j, const void *in, const int *counts, const int *displs, MPI_Datatype from, void *out,
                     int m, MPI_Datatype type, int root) {
  scatter_blocks(j, &(zblocks){.buf = (void *)(uintptr_t)in, .counts = counts, .displs = displs, .type = from}, out, m,
                 type, root);
}

Z_ROOTED(Scatter, Iscatter, scatter,
         (const void *in, int n, MPI_Datatype from, void *out, int m, MPI_Datatype type, int root), in, n, from, out, m,
         type, root)
Z_ROOTED(Scatterv, Iscatterv, scatterv,
         (const void *in, const int counts[], const int displs[], MPI_Datatype from, void *out, int m,
          MPI_Datatype type, int root),
         in, counts, displs, from, out, m, type, root)

/* ---- allgather ---- */

static void allgather_blocks(zcoll *j, const void *in, int count, MPI_Datatype type, const zblocks *to) {
  if (j->comm->inter)
    return zinter_exchange(j, &(zblocks){.buf = (void *)(uintptr_t)in, .count = count, .type = type, .same = 1}, to);
  j->args.op = Z_ALLGATHERV;
  receive_blocks(j, to, in == MPI_IN_PLACE);
  if (in != MPI_IN_PLACE) send_block(j, in, count, type);
}

static void allgather(zcoll *j, const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to) {
  j->args.uniform = 1;
  allgather_blocks(j, in, n, type, &(zblocks){.buf = out, .count = m, .type = to});
}

static void allgatherv(zcoll *j, const void *in, int n, MPI_Datatype type, void *out, const int *counts,
                       const int *displs, MPI_Datatype to) {
  allgather_blocks(j, in, n, type, &(zblocks){.buf = out, .counts = counts, .displs = displs, .type = to});
}

Z_COLLECTIVE(Allgather, Iallgather, allgather,
             (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to), in, n, type, out, m, to)
Z_COLLECTIVE(Allgatherv, Iallgatherv, allgatherv,
             (const void *in, int n, MPI_Datatype type, void *out, const int counts[], const int displs[],
              MPI_Datatype to),
             in, n, type, out, counts, displs, to)

/* ---- all to all ---- */

static void alltoall_blocks(zcoll *j, const zblocks *from, const zblocks *to) {
  if (j->comm->inter) return zinter_exchange(j, from, to);
  j->args.op = Z_ALLTOALLV;
  int in_place = from->buf == MPI_IN_PLACE, n = j->comm->size;
  j->args.send = zcoll_blocks(j, in_place ? ZB_COPY : ZB_SEND, in_place ? to : from, n, -1, &j->args.send_counts,
                              &j->args.send_displs);
  if (!j->rc) j->args.recv = zcoll_blocks(j, ZB_RECV, to, n, -1, &j->args.recv_counts, &j->args.recv_displs);
}

static void alltoall(zcoll *j, const void *in, int n, MPI_Datatype from, void *out, int m, MPI_Datatype to) {
  j->args.uniform = 1;
  alltoall_blocks(j, &(zblocks){.buf = (void *)(uintptr_t)in, .count = n, .type = from},
                  &(zblocks){.buf = out, .count = m, .type = to});
}

static void alltoallv(zcoll *j, const void *in, const int *sc, const int *sd, MPI_Datatype from, void *out,
                      const int *rc, const int *rd, MPI_Datatype to) {
  alltoall_blocks(j, &(zblocks){.buf = (void *)(uintptr_t)in, .counts = sc, .displs = sd, .type = from},
                  &(zblocks){.buf = out, .counts = rc, .displs = rd, .type = to});
}

/* Returns the datatype of each peer's block: the handles of a call from Fortran (if `fortran` is
 * not NULL) converted to C, otherwise `types`. */
static const MPI_Datatype *types_of(zcoll *j, const MPI_Fint *fortran, const MPI_Datatype *types) {
  MPI_Datatype *all = fortran ? zcoll_grab(j, j->comm->peers * (int64_t)sizeof *all) : NULL;
  for (int i = 0; all && i < j->comm->peers; i++) all[i] = Z_TYPE_OF(fortran[i]);
  return all ? all : types;
}

static void alltoallw(zcoll *j, const void *in, const int *sc, const int *sd, const MPI_Datatype *from, void *out,
                      const int *rc, const int *rd, const MPI_Datatype *to) {
  struct zfortran_types fortran = zfortran_types;
  zfortran_types = (struct zfortran_types){NULL, NULL};
  if (in != MPI_IN_PLACE) from = types_of(j, fortran.send, from);
  to = types_of(j, fortran.receive, to);
  alltoall_blocks(j, &(zblocks){.buf = (void *)(uintptr_t)in, .counts = sc, .displs = sd, .types = from},
                  &(zblocks){.buf = out, .counts = rc, .displs = rd, .types = to});
}

Z_COLLECTIVE(Alltoall, Ialltoall, alltoall,
             (const void *in, int n, MPI_Datatype from, void *out, int m, MPI_Datatype to), in, n, from, out, m, to)
Z_COLLECTIVE(Alltoallv, Ialltoallv, alltoallv,
             (const void *in, const int sc[], const int sd[], MPI_Datatype from, void *out, const int rc[],
              const int rd[], MPI_Datatype to),
             in, sc, sd, from, out, rc, rd, to)
/* Open MPI's MPI_Ialltoallw assumes that the arrays of types are as long as the number of
 * neighbours in the communicator's topology, and reads beyond them. */
Z_COLLECTIVE_AS(Z_BY_BARRIER, Alltoallw, Ialltoallw, alltoallw,
                (const void *in, const int sc[], const int sd[], const MPI_Datatype from[], void *out, const int rc[],
                 const int rd[], const MPI_Datatype to[]),
                in, sc, sd, from, out, rc, rd, to)
