/* Point to point. Every call has one branch: if the peer is in this cluster, native MPI does the
 * operation on the local part, otherwise the engine does. */
#include "p2p/p2p.h"
#include "core/limits.h"
#include "type/use.h"
#include <limits.h>

/* ---- arguments of calls that do not reach native MPI ---- */

int p2p_check(zcomm *c, const char *function, int64_t count, MPI_Datatype type, int peer, int tag, int receiving) {
  if (count < 0) return z_raise(c, MPI_ERR_COUNT, function, "the count is negative: %lld", (long long)count);
  if (type == MPI_DATATYPE_NULL) return z_raise(c, MPI_ERR_TYPE, function, "the datatype is MPI_DATATYPE_NULL");
  if (!(receiving && tag == MPI_ANY_TAG) && (tag < 0 || tag > z_layout.tag_ub))
    return z_raise(c, MPI_ERR_TAG, function, "the tag is %d; tags of this job go from 0 to %d", tag, z_layout.tag_ub);
  if (!(receiving && peer == MPI_ANY_SOURCE) && peer != MPI_PROC_NULL && (peer < 0 || peer >= c->peers))
    return z_raise(c, MPI_ERR_RANK, function, "the rank is %d; the communicator has ranks 0 to %d", peer, c->peers - 1);
  return MPI_SUCCESS;
}

/* ---- starting ---- */

/* the list of requests that own the native sends which were left behind, and their data */
static struct {
  pthread_mutex_t lock;
  zreq *first;
} left_behind = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns whether a native send that was left behind has completed, because zcomm_destroy has
 * received its message. */
static int has_ended(zreq *owner) {
  int over = 0;
  return !real.Test(&owner->native, &over, MPI_STATUS_IGNORE) && over;
}

/* Gives the native send of r and its data, which native MPI may still read, to a request that is
 * kept until the send has completed. MPI_Request_free would not do: MPICH 4.0 over UCX ends the
 * process if the message of a send whose request was freed is received. */
static void leave_behind(zreq *r) {
  zreq *owner = zreq_new_blocking(NULL, ZREQ_SEND, r->function);
  owner->native = r->native, owner->packed = r->packed, owner->staged = r->staged;
  r->native = MPI_REQUEST_NULL, r->packed = NULL, r->staged = 0;
  z_lock(&left_behind.lock);
  for (zreq **at = &left_behind.first, *earlier; (earlier = *at);) {
    if (has_ended(earlier)) {
      *at = earlier->next;
      zreq_free(earlier);
    } else {
      at = &earlier->next;
    }
  }
  owner->next = left_behind.first;
  left_behind.first = owner;
  z_unlock(&left_behind.lock);
}

/* Ends the native send of r if its communicator has been revoked, and returns whether it has. No
 * process receives the message then, and native MPI cannot cancel sends, so it is left behind. */
static int end_revoked(zreq *r) {
  if (r->kind != ZREQ_SEND || !r->comm || !Z_ENGINE(ze_revoked(r->comm->id))) return 0;
  if (r->native != MPI_REQUEST_NULL) leave_behind(r);
  r->is_native = 0;
  r->cell.error = Z_ERR_REVOKED;
  return r->cell.done = 1;
}

static int poll_native(zreq *r) {
  if (r->cell.done || (z_cb_test(&r->cell) && (r->cell.done = 1))) return 1;
  return __builtin_expect(z_layout.on_loss, 0) && end_revoked(r);
}

void p2p_now_native(zreq *r) {
  r->is_native = 1;
  r->poll = poll_native;
}

/* Sets *data to the bytes to be sent, and r->count to their number. They are in the program's
 * memory, unless the send is buffered or they cannot be sent from there (ztype_in_place): then they
 * are in a copy that r owns. Returns an MPI error class. */
static int gather(zreq *r, const void *buf, int64_t count, MPI_Datatype type, enum p2p_mode mode, const void **data) {
  const ztype *t = ztype_get(type);
  if (!t) return MPI_ERR_TYPE;
  *data = buf;
  r->count = count * t->size;
  if (ztype_bad_buffer(t, buf, r->count)) return MPI_ERR_BUFFER;
  int in_place = !r->count || ztype_in_place(t, buf, r->count);
  if (in_place && (!r->count || mode < P2P_BUFFERED)) return MPI_SUCCESS;
  if (!(r->packed = ztype_packing(t, type, buf, r->count, &r->staged))) return MPI_ERR_NO_MEM;
  *data = r->packed;
  if (r->staged && t->contiguous && r->count > Z_DEVICE_PIECE && mode < P2P_BUFFERED) {
    const zdriver *device = zdevice_of(buf, r->count);
    r->cell.missing = r->count - Z_DEVICE_PIECE;
    r->feed = zfeed_new(device, buf, r->packed, r->count);
    return r->feed ? zdevice_copy(device, buf, r->packed, buf, Z_DEVICE_PIECE) : MPI_ERR_NO_MEM;
  }
  if (!in_place) return (mode == P2P_COPY ? ztype_pack : zexchange.pack)(buf, count, type, r->packed, z_private);
  memcpy(r->packed, buf, r->count);
  return MPI_SUCCESS;
}

static int start_engine_send(zreq *r, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag,
                             enum p2p_mode mode) {
  const void *data;
  int rc = gather(r, buf, count, type, mode, &data);
  if (rc) return rc;
  rc = Z_GUARDED(ze_isend(r->comm->id, Z_P2P, data, r->count, zcomm_at(r->comm, dest), tag,
                          mode == P2P_SYNCHRONOUS ? Z_SYNCHRONOUS : Z_STANDARD, &r->cell));
  if (!rc && r->feed) zfeed_start(r->feed, r->comm->id, &r->cell);
  return rc ? z_error_class(r->cell.error = rc) : MPI_SUCCESS;
}

int p2p_start_copy(zreq *r, const void *buf, int count, MPI_Datatype type, int native, int tag, MPI_Comm comm,
                   enum p2p_mode mode) {
  const void *data;
  int rc = gather(r, buf, count, type, P2P_COPY, &data), contiguous = !rc && ztype_get(type)->contiguous;
  if (!rc && !contiguous && r->count > INT_MAX) rc = MPI_ERR_COUNT;
  if (rc) return rc;
  p2p_now_native(r);
  if (contiguous) return p2p_native_isend(mode, data, count, type, native, tag, comm, &r->native);
  return p2p_native_isend(mode, data, (int)r->count, MPI_PACKED, native, tag, comm, &r->native);
}

int p2p_start_send(zreq *r, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag, enum p2p_mode mode) {
  int native = p2p_native_rank(r->comm, dest);
  if (native == Z_REMOTE && dest != MPI_PROC_NULL) return start_engine_send(r, buf, count, type, dest, tag, mode);
  p2p_now_native(r);
  if (!z_layout.on_loss || dest == MPI_PROC_NULL)
    return p2p_native_isend(mode, buf, (int)count, type, native, tag, r->comm->native, &r->native);
  if (end_revoked(r)) return MPI_SUCCESS;
  return p2p_start_copy(r, buf, (int)count, type, native, tag, r->comm->native, mode);
}

void p2p_hold_type(zreq *r, MPI_Datatype type) {
  r->type = type, r->type_held = 1;
  ztype_retain(type);
}

/* Returns whether native MPI receives the message of r as packed data, because the buffer is memory
 * of a device, which it may not accept. */
static int arrives_packed(const zreq *r) { return r->staged && r->count * r->element <= INT_MAX; }

/* Queues copies to the device of the data of a long receive that have arrived. Returns whether the
 * receive has completed; p2p_unpack copies the rest. It serves as r->poll. */
static int queue_pieces(zreq *r) {
  if (__atomic_load_n(&r->cell.done, __ATOMIC_ACQUIRE)) return 1;
  int64_t n = __atomic_load_n(&r->cell.arrived, __ATOMIC_ACQUIRE) - r->queued;
  if (n < Z_DEVICE_PIECE) return 0;
  zcopies c;
  char *to = (char *)r->buf + r->queued;
  const zdriver *device = zdevice_of(to, n);
  if (!device) return 0;
  zdevice_begin(&c, device, to);
  zdevice_add(&c, to, (char *)r->packed + r->queued, n);
  r->queued += n;
  if (zdevice_queue(&c)) r->queued = -1, r->poll = NULL; /* p2p_unpack reports the failure */
  return 0;
}

/* Copies those of the first `bytes` bytes of a long receive to the device that have not been
 * queued, and waits for all copies. Returns an MPI error class. */
static int copy_rest(const zreq *r, int64_t bytes) {
  const zdriver *device = zdevice_of(r->buf, r->count * r->element);
  char *rest = (char *)r->buf + r->queued;
  if (r->queued < 0) return MPI_ERR_OTHER;
  return device ? zdevice_copy(device, rest, rest, (char *)r->packed + r->queued, bytes - r->queued) : MPI_ERR_BUFFER;
}

int p2p_unpack(zreq *r) {
  /* Native MPI has written to the program's buffer, or there is no message: nothing is to be
   * unpacked */
  int64_t room = r->count * r->element, bytes = r->cell.bytes < room ? r->cell.bytes : room;
  int lost = r->cell.error && r->cell.error != Z_ERR_TRUNCATE;
  if (lost && r->queued > 0) copy_rest(r, r->queued); /* waits, because the copies use r->packed */
  if ((r->is_native && !arrives_packed(r)) || r->cell.cancelled || lost) return MPI_SUCCESS;
  int class_ = MPI_SUCCESS, rc;
  if (r->queued) rc = copy_rest(r, bytes);
  else if (r->is_native) rc = ztype_unpack(r->packed, bytes, r->buf, r->count, r->type, z_private);
  else rc = zexchange.unpack(r->packed, bytes, r->buf, r->count, r->type, z_private);
  if (rc && !r->cell.error) class_ = z_native_class(rc); /* an error that the engine found takes precedence */
  return class_;
}

/* Starts a receive that the engine has to match: its source is remote, or MPI_ANY_SOURCE, or local
 * and shadowed by an earlier receive of these. Returns an MPI error class. */
static int start_engine_recv(zreq *r, void *buf, int64_t count, MPI_Datatype type, int source, int tag, int local) {
  const ztype *t = ztype_get(type);
  if (!t) return MPI_ERR_TYPE;
  void *data = buf;
  int64_t bytes = count * t->size;
  if (ztype_bad_buffer(t, buf, bytes)) return MPI_ERR_BUFFER;
  r->buf = buf, r->count = count, r->element = t->size, r->peer = source, r->tag = tag;
  if (bytes && !ztype_in_place(t, buf, bytes)) {
    if (!(r->packed = ztype_packing(t, type, buf, bytes, &r->staged))) return MPI_ERR_NO_MEM;
    r->finish = p2p_unpack;
    if (r->staged && t->contiguous && !local && bytes > Z_DEVICE_PIECE) r->poll = queue_pieces;
    data = r->packed;
  }
  if (local || r->packed) {
    /* a blocking call: the program cannot free the type meanwhile */
    if (r->handle == MPI_REQUEST_NULL) r->type = type;
    else p2p_hold_type(r, type);
  }
  int rc = Z_GUARDED(ze_irecv(r->comm->id, Z_P2P, data, bytes,
                              source == MPI_ANY_SOURCE ? Z_ANY_SOURCE : zcomm_at(r->comm, source),
                              tag == MPI_ANY_TAG ? Z_ANY_TAG : tag, &r->cell));
  return rc ? z_error_class(r->cell.error = rc) : MPI_SUCCESS;
}

int p2p_receives_natively(const zcomm *c, int source, int tag) {
  if (source == MPI_PROC_NULL) return 1;
  if (z_layout.on_loss) return 0; /* the engine ends it when the communicator is revoked */
  if (source == MPI_ANY_SOURCE || p2p_native_rank(c, source) == Z_REMOTE) return 0;
  return !z_busy || !Z_ENGINE(ze_shadowed(c->id, zcomm_at(c, source), tag == MPI_ANY_TAG ? Z_ANY_TAG : tag));
}

int p2p_start_recv(zreq *r, void *buf, int64_t count, MPI_Datatype type, int source, int tag) {
  const zcomm *c = r->comm;
  if (p2p_receives_natively(c, source, tag)) {
    p2p_now_native(r);
    return real.Irecv(buf, (int)count, type, p2p_native_rank(c, source), tag, c->native, &r->native);
  }
  return start_engine_recv(r, buf, count, type, source, tag,
                           source == MPI_ANY_SOURCE || p2p_native_rank(c, source) != Z_REMOTE);
}

/* ---- callbacks: receives of the engine that native MPI does after all ---- */

/* The arguments with which native MPI receives the message of a request. */
#define PLACE(r) arrives_packed(r) ? (r)->packed : (r)->buf
#define COUNT(r) (int)(arrives_packed(r) ? (r)->count * (r)->element : (r)->count)
#define TYPE(r) arrives_packed(r) ? MPI_PACKED : (r)->type

int z_cb_imrecv(z_cell *cell, uint64_t token) {
  Z_OUT_OF_ENGINE;
  zreq *r = cell->owner;
  MPI_Message message = (MPI_Message)(uintptr_t)token;
  r->is_native = 1;
  return real.Imrecv(PLACE(r), COUNT(r), TYPE(r), &message, &r->native) ? Z_ERR_INTERNAL : Z_OK;
}

int z_cb_irecv(z_cell *cell) {
  Z_OUT_OF_ENGINE;
  zreq *r = cell->owner;
  r->is_native = 1;
  return real.Irecv(PLACE(r), COUNT(r), TYPE(r), p2p_native_rank(r->comm, r->peer), r->tag, r->comm->native, &r->native)
             ? Z_ERR_INTERNAL
             : Z_OK;
}

int z_cb_test(z_cell *cell) {
  Z_OUT_OF_ENGINE;
  zreq *r = cell->owner;
  int flag = 0, rc = real.Test(&r->native, &flag, &r->status);
  if (rc) { /* native MPI has raised the error */
    r->raised = 1;
    cell->error = z_native_class(rc);
  } else if (!flag) {
    z_looks++;
    return 0;
  }
  if (r->kind == ZREQ_RECV && r->comm && !rc) z_note_taken(r->comm->native, r->status.MPI_SOURCE, &r->status);
  if (r->comm) z_status_translate(r->comm, &r->status);
  cell->source = r->status.MPI_SOURCE;
  cell->tag = r->status.MPI_TAG;
  if (r->kind == ZREQ_RECV) cell->bytes = z_status_bytes(&r->status);
  z_must(real.Test_cancelled(&r->status, &cell->cancelled), "MPI_Test_cancelled");
  if (cell->cancelled) r->is_native = 0; /* the engine says in the cell why it has ended */
  return 1;
}

int z_cb_cancel(z_cell *cell) {
  Z_OUT_OF_ENGINE;
  zreq *r = cell->owner;
  return real.Cancel(&r->native) ? Z_ERR_INTERNAL : Z_OK;
}

/* ---- blocking ---- */

/* The attributes of functions that need not be fast. They are kept out of line, so that a message
 * inside the cluster takes few instructions while nothing else is in progress. */
#define UNHURRIED static __attribute__((noinline))

UNHURRIED int send_while_busy(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                              enum p2p_mode mode) {
  MPI_Request request = MPI_REQUEST_NULL;
  int rc = p2p_native_isend(mode, buf, count, type, dest, tag, comm, &request);
  return rc ? rc : z_wait_for_call(comm, &request, MPI_STATUS_IGNORE);
}

UNHURRIED int send_remote(const void *buf, int count, MPI_Datatype type, int dest, int tag, zcomm *c,
                          enum p2p_mode mode, const char *function) {
  int rc = p2p_check(c, function, count, type, dest, tag, 0);
  if (rc) return rc;
  zreq *r = zreq_new_blocking(c, ZREQ_SEND, function);
  if ((rc = p2p_start_send(r, buf, count, type, dest, tag, mode))) return p2p_failed(r, rc);
  return zreq_complete(r, MPI_STATUS_IGNORE);
}

static inline __attribute__((always_inline)) int send(const void *buf, int count, MPI_Datatype type, int dest, int tag,
                                                      MPI_Comm comm, enum p2p_mode mode, const char *function) {
  int native;
  zcomm *c = p2p_route_send(comm, dest, &native);
  if (c) return send_remote(buf, count, type, dest, tag, c, mode, function);
  if (z_may_block()) return p2p_native_send(mode, buf, count, type, native, tag, comm);
  return send_while_busy(buf, count, type, native, tag, comm, mode);
}

int z_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  return send(buf, count, type, dest, tag, comm, P2P_STANDARD, "MPI_Send");
}

int z_Ssend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  return send(buf, count, type, dest, tag, comm, P2P_SYNCHRONOUS, "MPI_Ssend");
}

int z_Rsend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  return send(buf, count, type, dest, tag, comm, P2P_READY, "MPI_Rsend");
}

UNHURRIED int receive(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
  zcomm *c = zcomm_find(comm);
  int rc;
  if (c && (rc = p2p_check(c, "MPI_Recv", count, type, source, tag, 1))) return rc;
  if (!c || p2p_receives_natively(c, source, tag)) {
    MPI_Request request = MPI_REQUEST_NULL;
    int native = c ? p2p_native_rank(c, source) : source;
    rc = real.Irecv(buf, count, type, native, tag, comm, &request);
    if (!rc && !(rc = z_wait_for_call(comm, &request, status))) z_note_taken(comm, native, status);
    if (c) z_status_translate(c, status);
    return rc;
  }
  zreq *r = zreq_new_blocking(c, ZREQ_RECV, "MPI_Recv");
  if ((rc = p2p_start_recv(r, buf, count, type, source, tag))) return p2p_failed(r, rc);
  return zreq_complete(r, status);
}

static inline int receive_natively(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                                   MPI_Status *status) {
  int rc;
  Z_WAITS(rc = real.Recv(buf, count, type, source, tag, comm, status));
  if (!rc) z_note_taken(comm, source, status);
  return rc;
}

/* Receives a message. From a source in this cluster it receives natively if the engine is idle,
 * because the engine then has no receive that could match the same message. */
int z_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
  if (!z_may_block()) return receive(buf, count, type, source, tag, comm, status);
  zcomm *c = source == MPI_PROC_NULL ? NULL : zcomm_find(comm);
  if (!c) return receive_natively(buf, count, type, source, tag, comm, status);
  if ((uint32_t)source >= (uint32_t)c->peers || p2p_native_rank(c, source) == Z_REMOTE)
    return receive(buf, count, type, source, tag, comm, status);
  if (status == MPI_STATUS_IGNORE)
    return receive_natively(buf, count, type, p2p_native_rank(c, source), tag, comm, MPI_STATUS_IGNORE);
  int rc = receive_natively(buf, count, type, p2p_native_rank(c, source), tag, comm, status);
  z_status_translate(c, status);
  return rc;
}

/* ---- nonblocking ---- */

static int isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request,
                 enum p2p_mode mode, const char *function) {
  int rc, native;
  zcomm *c = p2p_route_send(comm, dest, &native);
  if (!c) return p2p_native_isend(mode, buf, count, type, native, tag, comm, request);
  if ((rc = p2p_check(c, function, count, type, dest, tag, 0))) return rc;
  zreq *r = zreq_new(c, ZREQ_SEND, function);
  if ((rc = p2p_start_send(r, buf, count, type, dest, tag, mode))) return p2p_failed(r, rc);
  *request = r->handle;
  return MPI_SUCCESS;
}

int z_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
  return isend(buf, count, type, dest, tag, comm, request, P2P_STANDARD, "MPI_Isend");
}

int z_Issend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
  return isend(buf, count, type, dest, tag, comm, request, P2P_SYNCHRONOUS, "MPI_Issend");
}

int z_Irsend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
  return isend(buf, count, type, dest, tag, comm, request, P2P_READY, "MPI_Irsend");
}

int z_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  int rc;
  if (!c || source == MPI_PROC_NULL) return real.Irecv(buf, count, type, source, tag, comm, request);
  if ((rc = p2p_check(c, "MPI_Irecv", count, type, source, tag, 1))) return rc;
  if (p2p_receives_natively(c, source, tag)) {
    *request = MPI_REQUEST_NULL;
    rc = real.Irecv(buf, count, type, p2p_native_rank(c, source), tag, comm, request);
    if (!rc && *request != MPI_REQUEST_NULL) zmap_put(&z_receives, z_key(*request), zcomm_retain(c));
    return rc;
  }
  zreq *r = zreq_new(c, ZREQ_RECV, "MPI_Irecv");
  if ((rc = p2p_start_recv(r, buf, count, type, source, tag))) return p2p_failed(r, rc);
  *request = r->handle;
  return MPI_SUCCESS;
}

int p2p_failed(zreq *r, int rc) {
  if (r->cell.error) {
    rc = z_raise_cell(r->comm, &r->cell, r->function);
  } else if (!r->is_native) { /* otherwise native MPI has raised the error */
    char text[MPI_MAX_ERROR_STRING];
    int n;
    if (real.Error_string(rc, text, &n)) *text = 0;
    rc = z_raise_because(r->comm, z_native_class(rc), r->function, zdevice_blame(NULL), zexchange_blame(text));
  }
  zreq_free(r);
  return rc;
}
