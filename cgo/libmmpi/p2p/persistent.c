/* Persistent sends and receives on spanning communicators: a placeholder, which starts an inner
 * request each time. A send to a local peer is a native persistent request, untouched. */
#include "p2p/p2p.h"

/* The kind of a persistent send or receive: the data of its request (zreq.extra). */
typedef struct persistent {
  int receive; /* 1 for a receive, 0 for a send */
  /* the mode of the send, if it is a send */
  enum p2p_mode mode;
} persistent;

static int start(zreq *r) {
  const persistent *p = r->extra;
  zreq *in = zreq_new_blocking(r->comm, p->receive ? ZREQ_RECV : ZREQ_SEND, "MPI_Start");
  int rc = p->receive                ? p2p_start_recv(in, r->buf, r->count, r->type, r->peer, r->tag)
           : p->mode == P2P_BUFFERED ? p2p_start_bsend(in, r->buf, (int)r->count, r->type, r->peer, r->tag)
                                     : p2p_start_send(in, r->buf, r->count, r->type, r->peer, r->tag, p->mode);
  if (rc) return in->raised ? (zreq_free(in), rc) : p2p_failed(in, rc);
  r->inner = in;
  return MPI_SUCCESS;
}

static int init_request(zcomm *c, const char *function, const void *buf, int count, MPI_Datatype type, int peer,
                        int tag, persistent what, MPI_Request *request) {
  int rc = p2p_check(c, function, count, type, peer, tag, what.receive);
  if (rc) return rc;
  zreq *r = zreq_new(c, ZREQ_PERSISTENT, function);
  persistent *p = r->extra = malloc(sizeof *p);
  if (!p) return p2p_failed(r, MPI_ERR_NO_MEM);
  *p = what;
  r->start = start;
  r->buf = (void *)buf, r->count = count, r->peer = peer, r->tag = tag;
  p2p_hold_type(r, type);
  *request = r->handle;
  return MPI_SUCCESS;
}

#define SEND_INIT(X, MODE)                                                                                           \
  int z_##X(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) { \
    int native;                                                                                                      \
    zcomm *c = p2p_route_send(comm, dest, &native);                                                                  \
    if (!c) return real.X(buf, count, type, native, tag, comm, request);                                             \
    return init_request(c, "MPI_" #X, buf, count, type, dest, tag, (persistent){.mode = MODE}, request);             \
  }
SEND_INIT(Send_init, P2P_STANDARD)
SEND_INIT(Ssend_init, P2P_SYNCHRONOUS)
SEND_INIT(Rsend_init, P2P_READY)
SEND_INIT(Bsend_init, P2P_BUFFERED)

/* Makes a persistent receive. Its request is one of the shim also for a source in this cluster,
 * because only when a receive starts is it known whether native MPI can do it. */
int z_Recv_init(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
  zcomm *c = source == MPI_PROC_NULL ? NULL : zcomm_find(comm);
  if (!c) return real.Recv_init(buf, count, type, source, tag, comm, request);
  return init_request(c, "MPI_Recv_init", buf, count, type, source, tag, (persistent){.receive = 1}, request);
}
