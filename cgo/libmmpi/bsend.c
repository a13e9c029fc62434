/* Buffered sends. To a local peer: native, in the attached buffer. To a remote one: a copy of the shim's, counted against
 * the size of the attached buffer as MPI's model prescribes (bytes and MPI_BSEND_OVERHEAD each). Owner: shim. */
#include "p2p.h"

static struct {
  pthread_mutex_t lock;
  int64_t size; /* -1: none attached */
} attached = {PTHREAD_MUTEX_INITIALIZER, -1};

int z_Buffer_attach(void *buffer, int size) {
  int rc = real.Buffer_attach(buffer, size);
  if (!rc) attached.size = size;
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
  attached.size = -1;
  return real.Buffer_detach(buffer, size);
}

#ifdef Z_HAVE_Buffer_detach_c
int z_Buffer_detach_c(void *buffer, MPI_Count *size) {
  z_wait(none_left, NULL);
  attached.size = -1;
  return real.Buffer_detach_c(buffer, size);
}
#endif

/* Starts a buffered send to a remote peer; it ends by itself. */
static int remote(zcomm *c, const char *function, const void *buf, int count, MPI_Datatype type, int dest, int tag) {
  int rc = p2p_check(c, function, count, type, dest, tag, 0);
  if (rc) return rc;
  const ztype *t = ztype_get(type);
  if (!t) return z_raise(c, MPI_ERR_TYPE, function, "not a datatype");
  int64_t used, n = zreq_bsends(&used), need = count * t->size + MPI_BSEND_OVERHEAD;
  if (used + n * MPI_BSEND_OVERHEAD + need > attached.size) {
    zreq_reap();
    z_eng.ze_progress(0);
    zreq_reap();
    n = zreq_bsends(&used);
  }
  if (used + n * MPI_BSEND_OVERHEAD + need > attached.size)
    return z_raise(c, MPI_ERR_BUFFER, function, attached.size < 0 ? "no buffer is attached: call MPI_Buffer_attach first" : "the attached buffer of %lld bytes is too small: %lld bytes are in use and %lld are needed",
                   (long long)attached.size, (long long)(used + n * MPI_BSEND_OVERHEAD), (long long)need);
  zreq *r = zreq_new_blocking(c, ZREQ_SEND, function);
  r->bsend = 1;
  if ((rc = p2p_start_send(r, buf, count, type, dest, tag, P2P_BUFFERED))) return p2p_failed(r, rc);
  zreq_release(r);
  return MPI_SUCCESS;
}

int z_Bsend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  int native;
  zcomm *c = p2p_route(comm, dest, &native);
  if (c) return remote(c, "MPI_Bsend", buf, count, type, dest, tag);
  return p2p_native_send(P2P_BUFFERED, buf, count, type, native, tag, comm); /* never blocks */
}

/* The copy is taken at once, so the request is over as soon as it is made. */
int z_Ibsend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
  int native;
  zcomm *c = p2p_route(comm, dest, &native);
  if (!c) return p2p_native_isend(P2P_BUFFERED, buf, count, type, native, tag, comm, request);
  int rc = remote(c, "MPI_Ibsend", buf, count, type, dest, tag);
  if (rc) return rc;
  zreq *r = zreq_new(c, ZREQ_SEND, "MPI_Ibsend");
  r->cell.done = 1;
  *request = r->handle;
  return MPI_SUCCESS;
}

/* For a persistent buffered send: r is over at once too. */
int p2p_start_bsend(zreq *r, const void *buf, int count, MPI_Datatype type, int dest, int tag) {
  if (p2p_native_rank(r->comm, dest) != Z_REMOTE) return p2p_start_send(r, buf, count, type, dest, tag, P2P_BUFFERED);
  int rc = remote(r->comm, r->function, buf, count, type, dest, tag);
  r->raised = rc != MPI_SUCCESS;
  r->cell.done = 1;
  return rc;
}
