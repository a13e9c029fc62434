/* Sendrecv: a receive and a send at once, each native or in the engine. Owner: shim. */
#include "p2p.h"
#include <limits.h>

static int is_local(const zcomm *c, int peer) { return peer == MPI_PROC_NULL || (peer >= 0 && p2p_native_rank(c, peer) != Z_REMOTE); }

/* Both parts at once. A part that does not start leaves the other to be waited for, or memory would go while in use. */
static int both(zcomm *c, const char *function, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Status *status) {
  zreq *in = zreq_new_blocking(c, ZREQ_RECV, function), *out = zreq_new_blocking(c, ZREQ_SEND, function);
  int rc = p2p_start_recv(in, recvbuf, recvcount, recvtype, source, recvtag);
  if (rc) {
    zreq_free(out);
    return p2p_failed(in, rc);
  }
  if ((rc = p2p_start_send(out, sendbuf, sendcount, sendtype, dest, sendtag, P2P_STANDARD))) {
    rc = p2p_failed(out, rc);
    zreq_release(in);
    return rc;
  }
  rc = zreq_complete(out, MPI_STATUS_IGNORE);
  int rc2 = zreq_complete(in, status);
  return rc ? rc : rc2;
}

static int check(zcomm *c, const char *function, int64_t sendcount, MPI_Datatype sendtype, int dest, int sendtag, int recvcount, MPI_Datatype recvtype, int source, int recvtag) {
  int rc = p2p_check(c, function, sendcount, sendtype, dest, sendtag, 0);
  return rc ? rc : p2p_check(c, function, recvcount, recvtype, source, recvtag, 1);
}

int z_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
               void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) {
  zcomm *c = zcomm_find(comm);
  int rc;
  if (c && (rc = check(c, "MPI_Sendrecv", sendcount, sendtype, dest, sendtag, recvcount, recvtype, source, recvtag))) return rc;
  if (z_may_block() && (!c || (is_local(c, dest) && is_local(c, source)))) {
    p2p_note(comm, c ? p2p_native_rank(c, dest) : dest, sendcount, sendtype);
    rc = real.Sendrecv(sendbuf, sendcount, sendtype, c ? p2p_native_rank(c, dest) : dest, sendtag, recvbuf, recvcount, recvtype,
                       c ? p2p_native_rank(c, source) : source, recvtag, comm, status);
    if (c) z_status_translate(c, status);
    return rc;
  }
  if (c) return both(c, "MPI_Sendrecv", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, status);
  MPI_Request in, out;
  if ((rc = real.Irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, &in))) return rc;
  if ((rc = p2p_native_isend(P2P_STANDARD, sendbuf, sendcount, sendtype, dest, sendtag, comm, &out))) {
    real.Cancel(&in);
    z_wait_native(&in, MPI_STATUS_IGNORE);
    return rc;
  }
  rc = z_wait_native(&out, MPI_STATUS_IGNORE);
  int rc2 = z_wait_native(&in, status);
  return rc ? rc : rc2;
}

/* The data leave from a packed copy. */
int z_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Status *status) {
  zcomm *c = zcomm_find(comm);
  int rc;
  if (c && (rc = check(c, "MPI_Sendrecv_replace", count, type, dest, sendtag, count, type, source, recvtag))) return rc;
  if (z_may_block() && (!c || (is_local(c, dest) && is_local(c, source)))) {
    p2p_note(comm, c ? p2p_native_rank(c, dest) : dest, count, type);
    z_enter(); /* Open MPI calls PMPI_Sendrecv from there, with native ranks */
    rc = real.Sendrecv_replace(buf, count, type, c ? p2p_native_rank(c, dest) : dest, sendtag, c ? p2p_native_rank(c, source) : source, recvtag, comm, status);
    z_leave();
    if (c) z_status_translate(c, status);
    return rc;
  }
  const ztype *t = ztype_get(type);
  if (!t) return z_raise(c, MPI_ERR_TYPE, "MPI_Sendrecv_replace", "not a datatype");
  int64_t bytes = count * t->size;
  if (bytes > INT_MAX) return z_raise(c, MPI_ERR_COUNT, "MPI_Sendrecv_replace", "more than 2 GiB at once: use MPI_Sendrecv with two buffers");
  void *copy = malloc(bytes ? bytes : 1);
  if (!copy) return z_raise(c, MPI_ERR_NO_MEM, "MPI_Sendrecv_replace", "no memory for a copy of %lld bytes", (long long)bytes);
  if (!(rc = ztype_pack(buf, count, type, copy, z_private)))
    rc = z_Sendrecv(copy, (int)bytes, MPI_PACKED, dest, sendtag, buf, count, type, source, recvtag, comm, status);
  free(copy);
  return rc;
}
