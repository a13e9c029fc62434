/* Partitioned communication of MPI 4 with another cluster. Initializations match in order, as
 * messages do. With its initialization the sender tells the receiver how it cuts the data, and a
 * context of their own, in which part i is a message with tag i. So a part is sent as soon as it is
 * ready, whatever the receiver's partitions are, and rounds cannot overtake each other. Inside a
 * cluster partitioned communication is native. In a job that goes on when a cluster is lost it is
 * not, except from a process to itself, because native MPI cannot end an operation whose
 * communicator is revoked.
 *
 * Several threads may mark partitions, or test them, at once; `lock` protects the data that they
 * share. */
#include "p2p/p2p.h"

#ifdef Z_HAVE_Psend_init

/* How the sender cuts the data of a partitioned operation into messages. The structure is sent
 * between clusters as it is. */
typedef struct cut {
  uint64_t context; /* the context id of the messages with the parts */
  /* the number of parts, each of which is one message, and the size in bytes of each */
  int64_t parts, bytes;
} cut;

/* A partitioned operation with a process of another cluster, from its initialization until
 * MPI_Request_free. */
typedef struct parted {
  pthread_mutex_t lock; /* held while the fields change */
  /* The number of references to this object: the program's request, and the round in progress. */
  int refs;
  int sends; /* 1 at the sender, 0 at the receiver */
  /* the number of partitions, the peer and the tag that the program has passed */
  int partitions, peer, tag;
  int64_t bytes; /* the packed size in bytes of one partition of this process */
  /* the sender's cut; at the receiver it is unset until `hello` is done */
  cut cut;
  z_cell hello; /* the message by which the sender tells the receiver its cut */
  /* The number in the engine of the communicator of these two processes, on which the parts are
   * sent, valid if joined is 1. */
  int32_t id;
  int joined;
  int class_; /* the MPI error class of the operation, or MPI_SUCCESS */
  /* the program's memory, or a packed copy of the data without the gaps of the type */
  char *data;
  /* [cut.parts] the operation of each part in this round */
  z_cell *cells;
  /* [partitions] 1 once the program has marked the partition as ready in this round or, at the
   * receiver, once it has arrived and been unpacked. */
  char *marked;
  /* At the sender: the number of partitions that the program has not marked as ready in this round.
   * At the receiver: -1 until the receives of the round have been posted, then 0. */
  int left;
} parted;

/* ---- the communicator on which initializations match ---- */

/* A twin of the program's communicator with another context, on which the messages about cuts are
 * sent, so that they match no message of the program. It lives as long as the program's
 * communicator, because a message may arrive when this process has no request left. */
typedef struct meeting {
  /* the head by which zcomm.parts refers to it */
  zattached head;
  /* the number in the engine of the twin */
  int32_t id;
} meeting;

/* the bit of a context id in which the twin's differs; no process sets it in a context id that it
 * makes */
enum { CONTEXT_BIT = 63 };

static void drop_meeting(zattached *a) {
  Z_ENGINE(ze_comm_drop(((meeting *)a)->id));
  free(a);
}

/* Makes the twin of c. The engine treats all of its ranks as remote, because its messages never go
 * through native MPI. Returns an MPI error class. */
static int make_meeting(zcomm *c, meeting **out) {
  meeting *m = *out = malloc(sizeof *m);
  int32_t *remote = malloc((size_t)c->size * sizeof *remote);
  int rc = m && remote ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  for (int i = 0; i < c->size && !rc; i++) remote[i] = Z_REMOTE;
  if (!rc)
    rc = z_error_class(Z_ENGINE(ze_comm_add(c->link, c, c->context ^ ((uint64_t)1 << CONTEXT_BIT), c->size, c->rank,
                                            c->world, remote, 0, &m->id)));
  if (!rc && (rc = zcomm_follow(c, m->id))) Z_ENGINE(ze_comm_drop(m->id));
  free(remote);
  if (rc) free(m);
  else m->head = (zattached){.drop = drop_meeting};
  return rc;
}

static int meet(zcomm *c, int32_t *id) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int rc = MPI_SUCCESS;
  z_lock(&lock);
  meeting *m = (meeting *)c->parts;
  if (!m && !(rc = make_meeting(c, &m))) c->parts = &m->head;
  z_unlock(&lock);
  if (!rc) *id = m->id;
  return rc;
}

/* ---- both ends ---- */

static void release(parted *p) {
  if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL)) return;
  if (p->joined) Z_ENGINE(ze_comm_drop(p->id));
  pthread_mutex_destroy(&p->lock);
  free(p->cells);
  free(p->marked);
  free(p);
}

/* the data of a partitioned request (zreq.extra), which MPI_Request_free frees */
typedef struct kept {
  /* The operation, or NULL for a receive inside the cluster, which is a request of the shim only
   * because its status needs translation. */
  parted *p;
  /* the native request of a receive inside the cluster (p is NULL) */
  MPI_Request native;
} kept;

static parted *parted_of(const zreq *r) { return ((kept *)r->extra)->p; }

static void end(zreq *r) {
  parted *p = parted_of(r);
  if (!p) {
    real.Request_free(&((kept *)r->extra)->native);
    return;
  }
  if (!p->sends) Z_ENGINE(ze_cancel(r->comm->id, &p->hello));
  z_wait_cell(&p->hello);
  release(p);
}

static int join(zreq *r, parted *p) {
  int32_t mine = z_layout.rank, other = r->comm->world[zcomm_at(r->comm, p->peer)];
  int32_t world[2] = {p->sends ? mine : other, p->sends ? other : mine};
  int32_t native[2] = {p->sends ? 0 : Z_REMOTE, p->sends ? Z_REMOTE : 0};
  int failed = Z_ENGINE(ze_comm_add(r->comm->link, r->comm, p->cut.context, 2, !p->sends, world, native, 1, &p->id));
  p->cells = calloc((size_t)p->cut.parts + 1, sizeof *p->cells);
  p->joined = !failed;
  return failed ? z_error_class(failed) : p->cells ? zcomm_follow(r->comm, p->id) : MPI_ERR_NO_MEM;
}

/* Returns the enum z_error of the failure that ends the sends of p even before all partitions are
 * ready: Z_ERR_REVOKED, Z_ERR_PROC_FAILED, or Z_OK if there is none. */
static int broken(const parted *p) {
  int32_t lost = 0;
  if (!z_layout.on_loss) return Z_OK;
  if (Z_ENGINE(ze_revoked(p->id))) return Z_ERR_REVOKED;
  Z_ENGINE(ze_failed(p->id, NULL, 0, &lost));
  return lost ? Z_ERR_PROC_FAILED : Z_OK;
}

static int failed_round(zreq *in) {
  parted *p = in->extra;
  if (p->hello.error) in->cell.error = p->hello.error;
  for (int64_t i = 0; i < p->cut.parts && p->cells; i++)
    if (p->cells[i].error) in->cell.error = p->cells[i].error;
  return p->class_;
}

static zreq *round_of(zreq *r, int kind) {
  parted *p = parted_of(r);
  zreq *in = zreq_new_blocking(r->comm, kind, "MPI_Start");
  in->extra = p;
  __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
  memset(p->marked, 0, (size_t)p->partitions);
  p->left = p->partitions;
  return in;
}

static int all_done(parted *p, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++)
    if (!__atomic_load_n(&p->cells[i].done, __ATOMIC_ACQUIRE)) return 0;
  return 1;
}

/* ---- sending ---- */

static int sent(zreq *in) {
  parted *p = in->extra;
  int over = __atomic_load_n(&p->hello.done, __ATOMIC_ACQUIRE);
  if (!over) return 0;
  if (__atomic_load_n(&p->left, __ATOMIC_ACQUIRE)) { /* the program has not marked all partitions as ready */
    int failed = broken(p);
    if (!failed) return 0;
    in->cell.error = failed;
  }
  z_lock(&p->lock);
  for (int i = 0; i < p->partitions && over; i++) over = !p->marked[i] || all_done(p, i, i + 1);
  z_unlock(&p->lock);
  return over;
}

static int finish_send(zreq *in) {
  int class_ = failed_round(in);
  release(in->extra);
  return class_;
}

static int start_send(zreq *r) {
  parted *p = parted_of(r);
  zreq *in = round_of(r, ZREQ_SEND);
  in->poll = sent, in->finish = finish_send;
  memset(p->cells, 0, (size_t)p->cut.parts * sizeof *p->cells);
  r->inner = in;
  return MPI_SUCCESS;
}

static int send_part(zreq *r, parted *p, int i) {
  char *data = p->data + i * p->bytes;
  if (data != (char *)r->buf + i * p->bytes) { /* the partition is sent from a packed copy */
    const char *from = (const char *)r->buf + i * r->count * ztype_get(r->type)->extent;
    int rc = zexchange.pack(from, r->count, r->type, data, z_private);
    if (rc) return rc;
  }
  int failed = Z_GUARDED(ze_isend(p->id, Z_P2P, data, p->bytes, 1, i, Z_STANDARD, &p->cells[i]));
  if (!failed) __atomic_sub_fetch(&p->left, 1, __ATOMIC_RELEASE);
  return z_error_class(failed);
}

static int ready(zreq *r, int low, int high, const char *function) {
  parted *p = r->end == end ? parted_of(r) : NULL;
  if (!p || !p->sends || !r->inner)
    return z_raise(r->comm, MPI_ERR_REQUEST, function, "the request is not a partitioned send that has been started");
  if (low < 0 || high >= p->partitions)
    return z_raise(r->comm, MPI_ERR_ARG, function, "the request has partitions 0 to %d", p->partitions - 1);
  for (int i = low; i <= high; i++) {
    z_lock(&p->lock);
    int again = p->marked[i];
    p->marked[i] = 1;
    z_unlock(&p->lock);
    int rc = again ? MPI_ERR_ARG : send_part(r, p, i);
    if (rc && !again) __atomic_store_n(&p->marked[i], 0, __ATOMIC_RELAXED); /* it has not been sent */
    if (rc)
      return z_raise(r->comm, rc, function, "partition %d %s", i,
                     again ? "is ready already" : zdevice_blame("cannot be sent"));
  }
  return MPI_SUCCESS;
}

int z_Pready(int partition, MPI_Request request) {
  zreq *r = zreq_find(request);
  return r ? ready(r, partition, partition, "MPI_Pready") : real.Pready(partition, request);
}

int z_Pready_range(int low, int high, MPI_Request request) {
  zreq *r = zreq_find(request);
  return r ? ready(r, low, high, "MPI_Pready_range") : real.Pready_range(low, high, request);
}

/* MPICH 4.0 and Open MPI 5.0 lack a const in this prototype. */
#if (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000) || \
    (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 6)
typedef int listed;
#else
typedef const int listed;
#endif

int z_Pready_list(int n, listed partitions[], MPI_Request request) {
  zreq *r = zreq_find(request);
  int rc = r ? MPI_SUCCESS : real.Pready_list(n, partitions, request);
  for (int i = 0; i < n && r && !rc; i++) rc = ready(r, partitions[i], partitions[i], "MPI_Pready_list");
  return rc;
}

/* ---- receiving ---- */

/* Posts the receives of this round of the operation p of request r, unless they have been posted or
 * the sender's message about its cut has not arrived. The caller holds the lock. */
static void post(zreq *r, parted *p) {
  if (p->left >= 0 || !__atomic_load_n(&p->hello.done, __ATOMIC_ACQUIRE)) return;
  p->left = 0;
  if (p->class_) return;
  const cut *c = &p->cut;
  int wrong = p->hello.error || p->hello.bytes != sizeof *c || c->parts < 1 || c->parts > INT32_MAX || c->bytes < 0;
  if (wrong) p->class_ = p->hello.error ? z_error_class(p->hello.error) : MPI_ERR_OTHER;
  else if (c->bytes && c->parts > p->partitions * p->bytes / c->bytes) p->class_ = MPI_ERR_TRUNCATE;
  else if (!p->joined) p->class_ = join(r, p);
  if (p->class_) {
    p->cut.parts = 0;
    return;
  }
  memset(p->cells, 0, (size_t)c->parts * sizeof *p->cells);
  for (int64_t i = 0; i < c->parts; i++) {
    int failed = Z_GUARDED(ze_irecv(p->id, Z_P2P, p->data + i * c->bytes, c->bytes, 0, (int32_t)i, &p->cells[i]));
    if (failed) p->cells[i].error = failed, p->cells[i].done = 1;
  }
}

/* Returns whether partition i of the receiver's buffer has arrived, and if so unpacks it into the
 * program's memory. The caller holds the lock. */
static int there(parted *p, const zreq *r, int i) {
  if (p->left < 0) return 0;
  if (p->class_ || p->marked[i]) return 1;
  const cut *c = &p->cut;
  int64_t from = c->bytes ? i * p->bytes / c->bytes : 0;
  int64_t to = c->bytes ? ((i + 1) * p->bytes + c->bytes - 1) / c->bytes : c->parts;
  if (to > c->parts) to = c->parts;
  if (!all_done(p, from < to ? from : to, to)) return 0;
  if (p->data != r->buf && p->bytes) {
    char *into = (char *)r->buf + i * r->count * ztype_get(r->type)->extent;
    int rc = zexchange.unpack(p->data + i * p->bytes, p->bytes, into, r->count, r->type, z_private);
    if (rc && !p->class_) p->class_ = z_native_class(rc);
  }
  p->marked[i] = 1;
  return 1;
}

static int received(zreq *in) {
  parted *p = in->extra;
  z_lock(&p->lock);
  post(in->inner, p);
  int over = p->left == 0 && (p->class_ || all_done(p, 0, p->cut.parts));
  z_unlock(&p->lock);
  return over;
}

static int finish_recv(zreq *in) {
  parted *p = in->extra;
  z_lock(&p->lock);
  for (int i = 0; i < p->partitions; i++) there(p, in->inner, i);
  int class_ = failed_round(in);
  z_unlock(&p->lock);
  in->cell.source = zcomm_at(in->comm, p->peer), in->cell.tag = p->tag;
  in->cell.bytes = class_ ? 0 : p->cut.parts * p->cut.bytes;
  in->inner = NULL;
  release(p);
  return class_;
}

static int start_recv(zreq *r) {
  parted *p = parted_of(r);
  zreq *in = round_of(r, ZREQ_RECV);
  in->poll = received, in->finish = finish_recv;
  in->inner = r; /* for its buffer and type; a program may not free a request with a round in progress */
  p->left = -1;  /* the receives have not been posted */
  r->inner = in;
  z_lock(&p->lock);
  post(r, p);
  z_unlock(&p->lock);
  return MPI_SUCCESS;
}

static int arrived_natively(MPI_Request request, int partition, int *flag) {
  int rc = real.Parrived(request, partition, flag);
  if (!rc && !*flag) z_poll_if_busy();
  return rc;
}

int z_Parrived(MPI_Request request, int partition, int *flag) {
  zreq *r = zreq_find(request);
  if (!r) return arrived_natively(request, partition, flag);
  parted *p = r->end == end ? parted_of(r) : NULL;
  if (r->end == end && !p) return arrived_natively(((kept *)r->extra)->native, partition, flag);
  if (!p || p->sends)
    return z_raise(r->comm, MPI_ERR_REQUEST, "MPI_Parrived", "the request is not a partitioned receive");
  if (partition < 0 || partition >= p->partitions)
    return z_raise(r->comm, MPI_ERR_ARG, "MPI_Parrived", "the request has partitions 0 to %d", p->partitions - 1);
  *flag = !r->inner;
  for (int turn = 0; turn < 2 && !*flag; turn++) {
    if (turn) z_poll();
    z_lock(&p->lock);
    post(r, p);
    *flag = there(p, r, partition);
    z_unlock(&p->lock);
  }
  return MPI_SUCCESS;
}

/* ---- initialization ---- */

static int init(zcomm *c, int sends, void *buf, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag,
                MPI_Request *request, const char *function) {
  int rc = p2p_check(c, function, count, type, peer, tag, 0);
  if (rc) return rc;
  if (partitions < 1) return z_raise(c, MPI_ERR_ARG, function, "%d partitions", partitions);
  const ztype *t = ztype_get(type);
  if (!t) return z_raise(c, MPI_ERR_TYPE, function, "%s", zexchange_blame("the datatype cannot be sent"));
  zreq *r = zreq_new(c, ZREQ_PERSISTENT, function);
  kept *k = r->extra = malloc(sizeof *k);
  parted *p = k ? k->p = calloc(1, sizeof *p) : NULL;
  if (!p) return p2p_failed(r, MPI_ERR_NO_MEM);
  *p = (parted){.lock = PTHREAD_MUTEX_INITIALIZER,
                .refs = 1,
                .sends = sends,
                .partitions = partitions,
                .peer = peer,
                .tag = tag,
                .bytes = count * t->size,
                .data = buf,
                .marked = calloc((size_t)partitions, 1)};
  r->buf = buf, r->count = count;
  int32_t id = 0;
  rc = p->marked ? meet(c, &id) : MPI_ERR_NO_MEM;
  if (!rc && p->bytes && !ztype_in_place(t, buf, p->bytes) &&
      !(p->data = r->packed = ztype_packing(t, type, buf, partitions * p->bytes, &r->staged)))
    rc = MPI_ERR_NO_MEM;
  if (!rc && sends) {
    p->cut = (cut){Z_ENGINE(ze_next_context(r->comm->link)), partitions, p->bytes};
    rc = join(r, p);
  }
  if (!rc) {
    p2p_hold_type(r, type);
    int at = zcomm_at(c, peer);
    int failed = sends ? Z_ENGINE(ze_isend(id, Z_P2P, &p->cut, sizeof p->cut, at, tag, Z_STANDARD, &p->hello))
                       : Z_ENGINE(ze_irecv(id, Z_P2P, &p->cut, sizeof p->cut, at, tag, &p->hello));
    rc = z_error_class(failed);
  }
  if (rc) {
    release(p);
    free(k);
    return p2p_failed(r, rc);
  }
  r->start = sends ? start_send : start_recv;
  r->end = end;
  *request = r->handle;
  return MPI_SUCCESS;
}

/* The type of counts, which is MPI_Count in the MPI standard. In MPICH 5's header of the standard
 * ABI it is int, and a form with _c exists beside it. */
#ifdef Z_HAVE_Psend_init_c
typedef int counted;
#else
typedef MPI_Count counted;
#endif

/* Decides whether native MPI or the engine does an operation with a peer, as p2p_route does. */
static zcomm *route(MPI_Comm comm, int peer, int *native) {
  zcomm *c = p2p_route_send(comm, peer, native);
  if (!c || (uint32_t)peer >= (uint32_t)c->peers) return c;
  return c->world[zcomm_at(c, peer)] == z_layout.rank ? NULL : c;
}

static int start_inside(zreq *r) {
  kept *k = r->extra;
  int rc = real.Start(&k->native);
  if (rc) return rc;
  r->inner = zreq_new_blocking(r->comm, ZREQ_RECV, "MPI_Start");
  r->inner->native = k->native;
  p2p_now_native(r->inner);
  return MPI_SUCCESS;
}

static int init_inside(zcomm *c, void *buf, int partitions, counted count, MPI_Datatype type, int native, int tag,
                       MPI_Info info, MPI_Request *request) {
  kept *k = malloc(sizeof *k);
  if (!k) return z_raise(c, MPI_ERR_NO_MEM, "MPI_Precv_init", "no memory");
  k->p = NULL;
  int rc = real.Precv_init(buf, partitions, count, type, native, tag, c->native, info, &k->native);
  if (rc) {
    free(k);
    return rc;
  }
  zreq *r = zreq_new(c, ZREQ_PERSISTENT, "MPI_Precv_init");
  r->extra = k, r->start = start_inside, r->end = end;
  *request = r->handle;
  return MPI_SUCCESS;
}

int z_Psend_init(const void *buf, int partitions, counted count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                 MPI_Info info, MPI_Request *request) {
  int native;
  zcomm *c = route(comm, dest, &native);
  if (!c) return real.Psend_init(buf, partitions, count, type, native, tag, comm, info, request);
  return init(c, 1, (void *)buf, partitions, count, type, dest, tag, request, "MPI_Psend_init");
}

int z_Precv_init(void *buf, int partitions, counted count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Info info, MPI_Request *request) {
  int native;
  zcomm *c = route(comm, source, &native), *spanning = source == MPI_PROC_NULL ? NULL : zcomm_find(comm);
  if (!spanning) return real.Precv_init(buf, partitions, count, type, source, tag, comm, info, request);
  if (!c) return init_inside(spanning, buf, partitions, count, type, native, tag, info, request);
  return init(c, 0, buf, partitions, count, type, source, tag, request, "MPI_Precv_init");
}
#endif
