/* Buffered sends. The shim copies each message, and counts the copies against the size of the
 * buffer (p2p/buffer.c). Messages to local peers are copied here too, because MPI_Buffer_detach
 * would wait for native buffered sends without serving the links, on which the receiver may depend.
 * Only persistent sends to local peers are native. */
#include "p2p/buffer.h"
#include "p2p/p2p.h"

/* Gives back the room of the message of a buffered send that has completed. */
static int sent(zreq *r) {
  zbuffer_give_back(r->extra);
  return MPI_SUCCESS;
}

/* Starts a buffered send that completes without a request. The destination is rank dest of c or, if
 * c is NULL, rank `native` of comm. Returns the code that the MPI function must return. */
static int start_buffered(zcomm *c, MPI_Comm comm, int native, const char *function, const void *buf, int count,
                          MPI_Datatype type, int dest, int tag) {
  int rc = c ? p2p_check(c, function, count, type, dest, tag, 0) : MPI_SUCCESS;
  if (rc) return rc;
  const ztype *t = ztype_get(type);
  if (!t) return z_raise_on(comm, MPI_ERR_TYPE, function, "%s", zexchange_blame("not a datatype"));
  zbuffered *message;
  if ((rc = zbuffer_take(comm, count * t->size, function, &message))) return rc;
  zreq *r = zreq_new_blocking(c, ZREQ_SEND, function);
  rc = c ? p2p_start_send(r, buf, count, type, dest, tag, P2P_BUFFERED)
         : p2p_start_copy(r, buf, count, type, native, tag, comm, P2P_BUFFERED);
  if (rc) {
    zbuffer_give_back(message);
    return p2p_failed(r, rc);
  }
  r->extra = message, r->finish = sent;
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
