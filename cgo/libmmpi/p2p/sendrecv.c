/* Sendrecv: a receive and a send at once, each of them native or in the engine. */
#include "p2p/p2p.h"

static int is_local(const zcomm *c, int peer) {
  return peer == MPI_PROC_NULL || (peer >= 0 && p2p_native_rank(c, peer) != Z_REMOTE);
}

/* Starts the receive and the send of an MPI_Sendrecv on c, and sets *in and *out to their requests.
 * If the send fails to start, the receive is cancelled, because a later message would be written to
 * memory that is the program's again. */
static int start_both(zcomm *c, const char *function, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype,
                      int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                      int recvtag, zreq **in, zreq **out) {
  *in = zreq_new_blocking(c, ZREQ_RECV, function), *out = zreq_new_blocking(c, ZREQ_SEND, function);
  int rc = p2p_start_recv(*in, recvbuf, recvcount, recvtype, source, recvtag);
  if (rc) {
    zreq_free(*out);
    return p2p_failed(*in, rc);
  }
  if ((rc = p2p_start_send(*out, sendbuf, sendcount, sendtype, dest, sendtag, P2P_STANDARD))) {
    rc = p2p_failed(*out, rc);
    zreq_withdraw(*in);
  }
  return rc;
}

static int both(zcomm *c, const char *function, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, int dest,
                int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                MPI_Status *status) {
  zreq *in, *out;
  int rc = start_both(c, function, sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                      recvtag, &in, &out);
  if (rc) return rc;
  rc = zreq_complete(out, MPI_STATUS_IGNORE);
  int rc2 = zreq_complete(in, status);
  return rc ? rc : rc2;
}

static int check(zcomm *c, const char *function, int64_t sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 int recvcount, MPI_Datatype recvtype, int source, int recvtag) {
  int rc = p2p_check(c, function, sendcount, sendtype, dest, sendtag, 0);
  return rc ? rc : p2p_check(c, function, recvcount, recvtype, source, recvtag, 1);
}

int z_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
               int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) {
  zcomm *c = zcomm_find(comm);
  int rc;
  if (c && (rc = check(c, "MPI_Sendrecv", sendcount, sendtype, dest, sendtag, recvcount, recvtype, source, recvtag)))
    return rc;
  if (z_may_block() && (!c || (is_local(c, dest) && is_local(c, source)))) {
    int to = c ? p2p_native_rank(c, dest) : dest, from = c ? p2p_native_rank(c, source) : source;
    p2p_note(comm, to, sendcount, sendtype);
    Z_WAITS(rc = real.Sendrecv(sendbuf, sendcount, sendtype, to, sendtag, recvbuf, recvcount, recvtype, from, recvtag,
                               comm, status));
    if (!rc) z_note_taken(comm, from, status);
    if (c) z_status_translate(c, status);
    return rc;
  }
  if (c)
    return both(c, "MPI_Sendrecv", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                recvtag, status);
  MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
  if ((rc = real.Irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, &in))) return rc;
  if ((rc = p2p_native_isend(P2P_STANDARD, sendbuf, sendcount, sendtype, dest, sendtag, comm, &out))) {
    if (!real.Cancel(&in)) z_wait_native(&in, MPI_STATUS_IGNORE);
    return rc;
  }
  rc = z_wait_for_call(comm, &out, MPI_STATUS_IGNORE);
  int rc2 = z_wait_for_call(comm, &in, status);
  if (!rc2) z_note_taken(comm, source, status);
  return rc ? rc : rc2;
}

/* Makes a packed copy of the buffer for MPI_Sendrecv_replace to `dest`, and stores in *as the count
 * and the type with which it is sent. The caller frees both. Raises the error and returns its code
 * if it fails. */
static int packed_copy(zcomm *c, const char *function, const void *buf, int count, MPI_Datatype type, int dest,
                       void **copy, zmany *as) {
  const ztype *t = ztype_get(type);
  if (!t)
    return z_raise(c, MPI_ERR_TYPE, function, "%s",
                   zexchange_blame("the datatype is invalid, or has not been committed"));
  int64_t all = count * t->size;
  if (!(*copy = malloc(all ? all : 1)))
    return z_raise(c, MPI_ERR_NO_MEM, function, "no memory for a copy of %lld bytes", (long long)all);
  int rc = (c && !is_local(c, dest) ? zexchange.pack : ztype_pack)(buf, count, type, *copy, z_private);
  const char *why = rc ? zdevice_blame(NULL) : NULL; /* other errors of packing have been raised natively */
  if (why) rc = z_raise_because(c, rc, function, why, why);
  if (!rc) rc = zmany_begin(as, all, MPI_PACKED);
  if (rc) free(*copy);
  return rc;
}

int z_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
                       MPI_Comm comm, MPI_Status *status) {
  zcomm *c = zcomm_find(comm);
  int rc;
  if (c && (rc = check(c, "MPI_Sendrecv_replace", count, type, dest, sendtag, count, type, source, recvtag))) return rc;
  if (z_may_block() && (!c || (is_local(c, dest) && is_local(c, source)))) {
    int to = c ? p2p_native_rank(c, dest) : dest, from = c ? p2p_native_rank(c, source) : source;
    p2p_note(comm, to, count, type);
    z_enter(); /* Open MPI calls PMPI_Sendrecv from there, with native ranks */
    Z_WAITS(rc = real.Sendrecv_replace(buf, count, type, to, sendtag, from, recvtag, comm, status));
    z_leave();
    if (!rc) z_note_taken(comm, from, status);
    if (c) z_status_translate(c, status);
    return rc;
  }
  void *copy;
  zmany as;
  if ((rc = packed_copy(c, "MPI_Sendrecv_replace", buf, count, type, dest, &copy, &as))) return rc;
  rc = z_Sendrecv(copy, as.count, as.type, dest, sendtag, buf, count, type, source, recvtag, comm, status);
  zmany_end(&as);
  free(copy);
  return rc;
}

/* ---- nonblocking (MPI 4) ---- */

#ifdef Z_HAVE_Isendrecv
/* The two requests of a nonblocking MPI_Isendrecv. */
typedef struct pair {
  /* the request of the receive and that of the send */
  zreq *in, *out;
  /* a packed copy of the data to be sent, for MPI_Isendrecv_replace, or NULL */
  void *copy;
} pair;

static int pair_over(zreq *r) {
  const pair *p = r->extra;
  int in = zreq_over(p->in), out = zreq_over(p->out); /* both requests are polled */
  return in && out;
}

/* Finishes and frees both requests of an MPI_Isendrecv, whose own request is r. The status of r is
 * that of the receive. Returns an MPI error class. */
static int pair_finish(zreq *r) {
  pair *p = r->extra;
  int sent = zreq_finish(p->out, MPI_STATUS_IGNORE), rc = zreq_finish(p->in, &r->status);
  if (!rc) rc = sent;
  r->is_native = 1; /* the status has been filled in */
  r->raised = p->in->raised || p->out->raised;
  zreq_free(p->in);
  zreq_free(p->out);
  free(p->copy);
  free(p);
  r->extra = NULL;
  return rc;
}

static int start_pair(zcomm *c, const char *function, void *copy, const void *sendbuf, int sendcount,
                      MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                      int source, int recvtag, MPI_Request *request) {
  zreq *r = zreq_new(c, ZREQ_RECV, function);
  pair *p = calloc(1, sizeof *p);
  if (!p) {
    free(copy);
    return p2p_failed(r, MPI_ERR_NO_MEM);
  }
  p2p_hold_type(r, recvtype); /* the program may free its type at once */
  int rc = start_both(c, function, sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, r->type, source,
                      recvtag, &p->in, &p->out);
  if (rc) {
    free(copy);
    free(p);
    zreq_free(r);
    return rc;
  }
  p->copy = copy;
  r->extra = p, r->poll = pair_over, r->finish = pair_finish;
  *request = r->handle;
  return MPI_SUCCESS;
}

int z_Isendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    p2p_note(comm, dest, sendcount, sendtype);
    return real.Isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                          comm, request);
  }
  int rc = check(c, "MPI_Isendrecv", sendcount, sendtype, dest, sendtag, recvcount, recvtype, source, recvtag);
  return rc ? rc
            : start_pair(c, "MPI_Isendrecv", NULL, sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                         recvtype, source, recvtag, request);
}

int z_Isendrecv_replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
                        MPI_Comm comm, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    p2p_note(comm, dest, count, type);
    return real.Isendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm, request);
  }
  void *copy;
  zmany as;
  int rc = check(c, "MPI_Isendrecv_replace", count, type, dest, sendtag, count, type, source, recvtag);
  if (rc || (rc = packed_copy(c, "MPI_Isendrecv_replace", buf, count, type, dest, &copy, &as))) return rc;
  rc = start_pair(c, "MPI_Isendrecv_replace", copy, copy, as.count, as.type, dest, sendtag, buf, count, type, source,
                  recvtag, request);
  zmany_end(&as);
  return rc;
}
#endif
