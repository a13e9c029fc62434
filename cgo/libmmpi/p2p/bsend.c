/* Buffered sends. The shim copies each message, and counts the copies against the size of the
 * attached buffer as MPI's model prescribes: the bytes of each, and MPI_BSEND_OVERHEAD. Messages to
 * local peers are copied here too, because MPI_Buffer_detach would wait for native buffered sends
 * without serving the links, on which the receiver may depend. Only persistent sends to local peers
 * are native. */
#include "p2p/p2p.h"

/* the size in bytes of the buffer that the program has attached, or -1 if none is attached */
static int64_t attached = -1;

int z_Buffer_attach(void *buffer, int size) {
  int rc = real.Buffer_attach(buffer, size);
  if (!rc) attached = size;
  return rc;
}

static int none_left(void *arg) {
  (void)arg;
  int64_t bytes;
  zreq_reap();
  return !zreq_bsends(&bytes);
}

int z_Buffer_detach(void *buffer, int *size) {
  z_wait(none_left, NULL);
  attached = -1;
  return real.Buffer_detach(buffer, size);
}

#ifdef Z_HAVE_Buffer_detach_c
int z_Buffer_detach_c(void *buffer, MPI_Count *size) {
  z_wait(none_left, NULL);
  attached = -1;
  return real.Buffer_detach_c(buffer, size);
}
#endif

/* Starts a buffered send that completes without a request. The destination is rank dest of c or, if
 * c is NULL, rank `native` of comm. Returns the code that the MPI function must return. */
static int start_buffered(zcomm *c, MPI_Comm comm, int native, const char *function, const void *buf, int count,
                          MPI_Datatype type, int dest, int tag) {
  int rc = c ? p2p_check(c, function, count, type, dest, tag, 0) : MPI_SUCCESS;
  if (rc) return rc;
  const ztype *t = ztype_get(type);
  if (!t) return z_raise_on(comm, MPI_ERR_TYPE, function, "%s", zexchange_blame("not a datatype"));
  int64_t used, n = zreq_bsends(&used), need = count * t->size + MPI_BSEND_OVERHEAD;
  if (used + n * MPI_BSEND_OVERHEAD + need > attached) {
    zreq_reap();
    z_poll();
    n = zreq_bsends(&used);
  }
  if (used + n * MPI_BSEND_OVERHEAD + need > attached)
    return z_raise_on(comm, MPI_ERR_BUFFER, function,
                      attached < 0
                          ? "no buffer is attached: call MPI_Buffer_attach first"
                          : "the attached buffer of %lld bytes is too small: %lld bytes are in use and %lld are needed",
                      (long long)attached, (long long)(used + n * MPI_BSEND_OVERHEAD), (long long)need);
  zreq *r = zreq_new_blocking(c, ZREQ_SEND, function);
  r->bsend = 1;
  rc = c ? p2p_start_send(r, buf, count, type, dest, tag, P2P_BUFFERED)
         : p2p_start_copy(r, buf, count, type, native, tag, comm, P2P_BUFFERED);
  if (rc) return p2p_failed(r, rc);
  zreq_release(r);
  return MPI_SUCCESS;
}

/* Returns whether native MPI must do a buffered send: c is NULL, and dest is MPI_PROC_NULL or the
 * arguments are wrong, which native MPI reports. */
static int not_ours(const zcomm *c, int count, MPI_Datatype type, int dest) {
  return !c && (dest == MPI_PROC_NULL || count < 0 || type == MPI_DATATYPE_NULL);
}

int z_Bsend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  int native;
  zcomm *c = p2p_route_send(comm, dest, &native);
  if (not_ours(c, count, type, dest)) return real.Bsend(buf, count, type, native, tag, comm);
  return start_buffered(c, comm, native, "MPI_Bsend", buf, count, type, dest, tag);
}

/* Starts a buffered send, whose request is complete when the call returns, because the data are
 * copied at once. */
int z_Ibsend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
  int native;
  zcomm *c = p2p_route_send(comm, dest, &native);
  if (not_ours(c, count, type, dest)) return real.Ibsend(buf, count, type, native, tag, comm, request);
  int rc = start_buffered(c, comm, native, "MPI_Ibsend", buf, count, type, dest, tag);
  if (rc) return rc;
  zreq *r = zreq_new(c, ZREQ_SEND, "MPI_Ibsend");
  r->cell.done = 1;
  *request = r->handle;
  return MPI_SUCCESS;
}

/* Starts the buffered send of a persistent request r, which is complete when the call returns,
 * because the data are copied at once. Returns an MPI error class. */
int p2p_start_bsend(zreq *r, const void *buf, int count, MPI_Datatype type, int dest, int tag) {
  int rc = start_buffered(r->comm, r->comm->native, 0, r->function, buf, count, type, dest, tag);
  r->raised = rc != MPI_SUCCESS;
  r->cell.done = 1;
  return rc;
}
