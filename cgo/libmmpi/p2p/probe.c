/* Probes, and the messages that matched probes return. A remote message has a native placeholder:
 * an empty message that this process sends to itself and matches natively. So its handle is a valid
 * native one, in Fortran too. */
#include "p2p/p2p.h"

/* A message on a spanning communicator that a matched probe (MPI_Mprobe) has found, until it is
 * received. */
typedef struct zmessage {
  zcomm *comm; /* the communicator, of which this holds a reference */
  /* 1 if the message is in the engine, under the number `engine`, and the program's handle is that
   * of a placeholder. 0 if it is a native message. */
  int remote;
  /* the number by which the engine knows the message (ze_mrecv) */
  uint64_t engine;
  /* The native request of the send of the placeholder, which MPICH needs until the placeholder has
   * been received. */
  MPI_Request self;
} zmessage;

static zmap messages; /* the map from native message handle to zmessage */

static int to_z_source(const zcomm *c, int source) {
  return source == MPI_ANY_SOURCE ? Z_ANY_SOURCE : zcomm_at(c, source);
}
static int to_z_tag(int tag) { return tag == MPI_ANY_TAG ? Z_ANY_TAG : tag; }
static int from_z_source(int source) { return source == Z_ANY_SOURCE ? MPI_ANY_SOURCE : source; }
static int from_z_tag(int tag) { return tag == Z_ANY_TAG ? MPI_ANY_TAG : tag; }

/* ---- callbacks ---- */

static void envelope(const zcomm *c, const MPI_Status *status, z_probe *out) {
  out->source = c->rank_of[status->MPI_SOURCE];
  out->tag = status->MPI_TAG;
  out->bytes = z_status_bytes(status);
}

int z_cb_improbe(void *comm, int32_t native_source, int32_t tag, z_probe *out) {
  Z_OUT_OF_ENGINE;
  zcomm *c = comm;
  MPI_Message message;
  MPI_Status status;
  int flag = 0;
  if (real.Improbe(from_z_source(native_source), from_z_tag(tag), c->native, &flag, &message, &status))
    return -Z_ERR_INTERNAL;
  if (!flag) return 0;
  envelope(c, &status, out);
  out->message = (uint64_t)(uintptr_t)message;
  return 1;
}

int z_cb_iprobe(void *comm, int32_t native_source, int32_t tag, z_probe *out) {
  Z_OUT_OF_ENGINE;
  zcomm *c = comm;
  MPI_Status status;
  int flag = 0;
  if (real.Iprobe(from_z_source(native_source), from_z_tag(tag), c->native, &flag, &status)) return -Z_ERR_INTERNAL;
  if (!flag) return 0;
  envelope(c, &status, out);
  out->message = 0;
  return 1;
}

/* ---- one try ---- */

/* The arguments and the result of a call that probes for a message. */
typedef struct probe {
  /* the spanning communicator, or NULL if the communicator does not span clusters */
  zcomm *c;
  MPI_Comm comm;   /* the communicator */
  int source, tag; /* the source and the tag, as the program has passed them */
  const char *function;
  MPI_Status *status;
  int matched; /* 1 for a matched probe, which stores the handle in *message */
  MPI_Message *message;
  /* flag is 1 if a message was found; rc is the code for the program */
  int flag, rc;
} probe;

/* Sets *message to a native message handle, for the program, that represents a message in the
 * engine: it belongs to an empty message that this process has sent to itself, by *self. Returns an
 * MPI error code. */
static int placeholder(MPI_Message *message, MPI_Request *self) {
  /* The lock makes each thread receive the placeholder that it has sent. In MPICH a send completes
   * only when its message has been received, which another thread might do much later */
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  z_lock(&one);
  int flag = 0, rc = real.Isend(NULL, 0, MPI_BYTE, zcluster_rank(z_layout.rank), ZTAG_PLACEHOLDER, z_private, self);
  while (!rc && !flag)
    rc = real.Improbe(zcluster_rank(z_layout.rank), ZTAG_PLACEHOLDER, z_private, &flag, message, MPI_STATUS_IGNORE);
  z_unlock(&one);
  return rc;
}

static int remember(probe *p, int remote, uint64_t engine, MPI_Request self) {
  zmessage *m = malloc(sizeof *m);
  if (!m) return z_raise(p->c, MPI_ERR_NO_MEM, p->function, "no memory");
  *m = (zmessage){zcomm_retain(p->c), remote, engine, self};
  zmap_put(&messages, z_key(*p->message), m);
  return MPI_SUCCESS;
}

static void found_natively(probe *p) {
  if (!p->c || p->rc || p->source == MPI_PROC_NULL) return;
  z_status_translate(p->c, p->status);
  if (p->matched) p->rc = remember(p, 0, 0, MPI_REQUEST_NULL);
}

static void try_native(probe *p) {
  int source = p->c ? p2p_native_rank(p->c, p->source) : p->source;
  if (p->matched) p->rc = real.Improbe(source, p->tag, p->comm, &p->flag, p->message, p->status);
  else p->rc = real.Iprobe(source, p->tag, p->comm, &p->flag, p->status);
  if (p->flag) found_natively(p);
}

static void try_engine(probe *p) {
  z_cell cell = {0};
  uint64_t message = 0;
  int32_t native = 0;
  int e = p->matched
              ? Z_ENGINE(ze_improbe(p->c->id, to_z_source(p->c, p->source), to_z_tag(p->tag), &cell, &message, &native))
              : Z_ENGINE(ze_iprobe(p->c->id, to_z_source(p->c, p->source), to_z_tag(p->tag), &cell));
  if (e) {
    p->rc = z_raise_engine(p->c, e, p->function);
    return;
  }
  p->flag = cell.done;
  if (!p->flag) return;
  MPI_Status status;
  z_status_set(&status, cell.source - p->c->base, cell.tag, MPI_SUCCESS, cell.bytes, 0);
  z_status_copy(p->status, &status);
  if (!p->matched) return;
  MPI_Request self = MPI_REQUEST_NULL;
  if (native) *p->message = (MPI_Message)(uintptr_t)message;
  else if ((p->rc = placeholder(p->message, &self))) return;
  p->rc = remember(p, !native, message, self);
}

/* Probes once for the probe *arg. Returns whether a message was found or an error occurred. The
 * engine probes for remote messages and for those of any source. For a source in this cluster
 * native MPI is asked, unless an earlier receive in the engine shadows the probe. */
static int try_once(void *arg) {
  probe *p = arg;
  p->flag = 0;
  if (!p->c || p2p_receives_natively(p->c, p->source, p->tag)) try_native(p);
  else try_engine(p);
  return p->flag || p->rc;
}

static int once(probe p, int *flag) {
  if (p.c && (p.rc = p2p_check(p.c, p.function, 0, MPI_BYTE, p.source, p.tag, 1))) return p.rc;
  if (!try_once(&p)) {
    z_poll();
    try_once(&p);
  }
  *flag = p.flag;
  return p.rc;
}

static int until(probe p) {
  if (p.c && (p.rc = p2p_check(p.c, p.function, 0, MPI_BYTE, p.source, p.tag, 1))) return p.rc;
  int native = !p.c || p2p_receives_natively(p.c, p.source, p.tag);
  if (native && z_may_block()) {
    int source = p.c ? p2p_native_rank(p.c, p.source) : p.source;
    Z_WAITS(p.rc = p.matched ? real.Mprobe(source, p.tag, p.comm, p.message, p.status)
                             : real.Probe(source, p.tag, p.comm, p.status));
    found_natively(&p);
  } else if (!try_once(&p)) {
    if (native) z_wait(try_once, &p);
    else z_wait_links(try_once, &p);
  }
  return p.rc;
}

int z_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  return once((probe){.c = zcomm_find(comm),
                      .comm = comm,
                      .source = source,
                      .tag = tag,
                      .function = "MPI_Iprobe",
                      .status = status},
              flag);
}

int z_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status) {
  return once((probe){.c = zcomm_find(comm),
                      .comm = comm,
                      .source = source,
                      .tag = tag,
                      .function = "MPI_Improbe",
                      .status = status,
                      .matched = 1,
                      .message = message},
              flag);
}

int z_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status) {
  return until((probe){
      .c = zcomm_find(comm), .comm = comm, .source = source, .tag = tag, .function = "MPI_Probe", .status = status});
}

int z_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
  return until((probe){.c = zcomm_find(comm),
                       .comm = comm,
                       .source = source,
                       .tag = tag,
                       .function = "MPI_Mprobe",
                       .status = status,
                       .matched = 1,
                       .message = message});
}

/* ---- receiving a matched message ---- */

/* Removes a matched message from the map and returns it, or NULL if it is not of a spanning
 * communicator. */
static zmessage *remove_message(MPI_Message message) {
  return zmap_count(&messages) ? zmap_remove(&messages, z_key(message)) : NULL;
}

static int start_remote(zreq *r, zmessage *m, void *buf, int count, MPI_Datatype type, MPI_Message *message) {
  /* the placeholder, which has arrived already */
  int rc = real.Mrecv(NULL, 0, MPI_BYTE, message, MPI_STATUS_IGNORE);
  if (!rc) rc = real.Wait(&m->self, MPI_STATUS_IGNORE);
  const ztype *t = ztype_get(type);
  if (rc) return rc;
  if (!t) return MPI_ERR_TYPE;
  void *data = buf;
  r->buf = buf, r->count = count, r->element = t->size;
  if (count && !ztype_in_place(t, buf, count * t->size)) {
    if (!(r->packed = ztype_packing(t, type, buf, count * t->size, &r->staged))) return MPI_ERR_NO_MEM;
    r->finish = p2p_unpack;
    data = r->packed;
    if (r->handle == MPI_REQUEST_NULL) r->type = type;
    else p2p_hold_type(r, type);
  }
  rc = Z_GUARDED(ze_mrecv(m->engine, data, count * t->size, &r->cell));
  return rc ? z_error_class(r->cell.error = rc) : MPI_SUCCESS;
}

/* Checks the buffer, the count and the type with which the program receives a matched message,
 * before the message is consumed, so that after an error the program may receive it with other
 * arguments. Returns MPI_SUCCESS, or the code of the error that was raised. */
static int check(const zmessage *m, const char *function, const void *buf, int count, MPI_Datatype type) {
  int rc = p2p_check(m->comm, function, count, type, MPI_PROC_NULL, 0, 1);
  const ztype *t = rc || !m->remote ? NULL : ztype_get(type);
  if (t && ztype_bad_buffer(t, buf, count * t->size))
    return z_raise(m->comm, MPI_ERR_BUFFER, function, "the receive buffer is NULL");
  return rc;
}

int z_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
  zmessage *m = remove_message(*message);
  zcomm *c = m ? m->comm : NULL;
  int rc;
  if (m && (rc = check(m, "MPI_Mrecv", buf, count, type))) {
    zmap_put(&messages, z_key(*message), m);
    return rc;
  }
  if (!m || !m->remote) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (z_may_block()) {
      Z_WAITS(rc = real.Mrecv(buf, count, type, message, status));
    } else if (!(rc = real.Imrecv(buf, count, type, message, &request))) {
      rc = z_wait_native(&request, status);
    }
    if (c) z_status_translate(c, status);
  } else {
    zreq *r = zreq_new_blocking(c, ZREQ_RECV, "MPI_Mrecv");
    rc = start_remote(r, m, buf, count, type, message);
    rc = rc ? p2p_failed(r, rc) : zreq_complete(r, status);
  }
  if (c) zcomm_release(c);
  free(m);
  return rc;
}

int z_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {
  zmessage *m = remove_message(*message);
  zcomm *c = m ? m->comm : NULL;
  int rc;
  if (!m) return real.Imrecv(buf, count, type, message, request);
  if ((rc = check(m, "MPI_Imrecv", buf, count, type))) {
    zmap_put(&messages, z_key(*message), m);
    return rc;
  }
  if (m->remote) {
    zreq *r = zreq_new(c, ZREQ_RECV, "MPI_Imrecv");
    if ((rc = start_remote(r, m, buf, count, type, message))) rc = p2p_failed(r, rc);
    else *request = r->handle;
    zcomm_release(c);
  } else if (!(rc = real.Imrecv(buf, count, type, message, request))) {
    zmap_put(&z_receives, z_key(*request), c); /* the map takes over the reference */
  } else {
    zcomm_release(c);
  }
  free(m);
  return rc;
}
