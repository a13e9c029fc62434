/* Buffers of buffered sends: MPI_Buffer_attach, MPI_Comm_attach_buffer, MPI_Session_attach_buffer,
 * and the functions that flush and detach buffers.
 *
 * The shim keeps the copies of messages in memory of its own. A buffer is only an account of them,
 * as MPI's model prescribes: the bytes of each message and MPI_BSEND_OVERHEAD. A buffer is attached
 * natively, too, for two reasons: native MPI checks the arguments and returns them when the buffer
 * is detached, and persistent sends to local peers, which are native, use it. */
#include "p2p/buffer.h"

/* An attached buffer, or a detached one with messages or calls that still refer to it. */
typedef struct zbuffer {
  int64_t size;     /* the size in bytes, or -1 for MPI_BUFFER_AUTOMATIC, which has no limit */
  int64_t used;     /* the bytes that the messages take, with MPI_BSEND_OVERHEAD for each */
  zbuffered *first; /* the list of messages, the newest one first */
  int32_t refs;     /* the number of references: of the owner, messages and flushes */
} zbuffer;

struct zbuffered {
  zbuffer *buffer;
  int64_t bytes;   /* the bytes of the buffer that the message takes */
  uint64_t number; /* the number of the message among all messages of this process */
  zbuffered *next;
};

/* The key in `buffers` of the process's buffer, which is the z_key of no handle. */
enum { PROCESS = 1 };
/* the map from the z_key of a communicator or a session to its buffer */
static zmap buffers;
zmap zbuffer_sessions;

/* the lock of the fields of all buffers, and the number of the newest message */
static struct {
  pthread_mutex_t lock;
  uint64_t newest;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static zbuffer *find(uint64_t owner) { return zmap_count(&buffers) ? zmap_get(&buffers, owner) : NULL; }

/* Returns the buffer for messages on a communicator, or NULL if there is none: its own, else that
 * of its session, else that of the process. */
static zbuffer *find_for(MPI_Comm comm) {
  zbuffer *b = find(z_key(comm));
  if (!b && zmap_count(&zbuffer_sessions)) b = find((uintptr_t)zmap_get(&zbuffer_sessions, z_key(comm)));
  return b ? b : find(PROCESS);
}

/* Drops a reference; the caller holds the lock. */
static void drop(zbuffer *b) {
  if (!--b->refs) free(b);
}

/* ---- messages ---- */

/* Takes room if there is enough. Returns 1, or 0 after storing in *used how many bytes are used. */
static int take(zbuffer *b, zbuffered *message, int64_t *used) {
  z_lock(&state.lock);
  *used = b->used;
  int fits = b->size < 0 || b->used + message->bytes <= b->size;
  if (fits) {
    message->buffer = b, message->number = ++state.newest;
    message->next = b->first, b->first = message;
    b->used += message->bytes, b->refs++;
  }
  z_unlock(&state.lock);
  return fits;
}

int zbuffer_take(MPI_Comm comm, int64_t bytes, const char *function, zbuffered **out) {
  zbuffer *b = find_for(comm);
  if (!b) return z_raise_on(comm, MPI_ERR_BUFFER, function, "no buffer is attached: call MPI_Buffer_attach first");
  zbuffered *m = *out = malloc(sizeof *m);
  if (!m) return z_raise_on(comm, MPI_ERR_NO_MEM, function, "no memory for a buffered message");
  *m = (zbuffered){.bytes = bytes + MPI_BSEND_OVERHEAD};
  int64_t used;
  if (take(b, m, &used)) return MPI_SUCCESS;
  zreq_reap();
  z_poll();
  if (take(b, m, &used)) return MPI_SUCCESS;
  int64_t need = m->bytes;
  free(m);
  return z_raise_on(comm, MPI_ERR_BUFFER, function,
                    "the attached buffer of %lld bytes is too small: %lld bytes are in use and %lld are needed",
                    (long long)b->size, (long long)used, (long long)need);
}

void zbuffer_give_back(zbuffered *message) {
  zbuffer *b = message->buffer;
  z_lock(&state.lock);
  zbuffered **at = &b->first;
  while (*at != message) at = &(*at)->next;
  *at = message->next;
  b->used -= message->bytes;
  drop(b);
  z_unlock(&state.lock);
  free(message);
}

/* ---- attaching ---- */

static void detach(uint64_t owner) {
  zbuffer *b = find(owner) ? zmap_remove(&buffers, owner) : NULL;
  if (!b) return;
  z_lock(&state.lock);
  drop(b);
  z_unlock(&state.lock);
}

/* Records a buffer that native MPI has attached to an owner, if rc, the native call's code, is
 * MPI_SUCCESS. Returns rc, or the code of an error that has been raised. */
static int attached(int rc, uint64_t owner, const void *address, int64_t size, const char *function) {
  if (rc) return rc;
  zbuffer *b = calloc(1, sizeof *b);
  if (!b) return z_raise(NULL, MPI_ERR_NO_MEM, function, "no memory for the account of the buffer");
  b->size = size, b->refs = 1;
#ifdef MPI_BUFFER_AUTOMATIC
  if (address == MPI_BUFFER_AUTOMATIC) b->size = -1;
#else
  (void)address;
#endif
  detach(owner);
  zmap_put(&buffers, owner, b);
  return MPI_SUCCESS;
}

void zbuffer_forget(uint64_t owner) {
  detach(owner);
  if (zmap_count(&zbuffer_sessions)) zmap_remove(&zbuffer_sessions, owner);
}

/* ---- flushing ---- */

/* A wait for all messages that a buffer has when the wait begins, but not for later ones: their
 * receivers may depend on what the program does after the wait. */
typedef struct flush {
  zbuffer *buffer; /* a reference */
  uint64_t last;   /* the number of the newest of these messages */
  /* the native request for the messages that native MPI has buffered, or MPI_REQUEST_NULL */
  MPI_Request native;
  int rc; /* the code of an error of the native request, or MPI_SUCCESS */
} flush;

static int flushed(void *arg) {
  flush *f = arg;
  int over = 1;
  zreq_reap();
  z_lock(&state.lock);
  for (const zbuffered *m = f->buffer->first; m && over; m = m->next) over = m->number > f->last;
  z_unlock(&state.lock);
  if (over && f->native != MPI_REQUEST_NULL) {
    f->rc = real.Test(&f->native, &over, MPI_STATUS_IGNORE);
    z_looks += !over;
  }
  return over || f->rc;
}

static flush begin_flush(zbuffer *b, MPI_Request native) {
  z_lock(&state.lock);
  flush f = {.buffer = b, .last = state.newest, .native = native};
  b->refs++;
  z_unlock(&state.lock);
  return f;
}

static void end_flush(flush *f) {
  z_lock(&state.lock);
  drop(f->buffer);
  z_unlock(&state.lock);
}

/* Waits until all messages of a buffer have been sent, those of the native request among them.
 * Returns the native code. */
static int flush_now(zbuffer *b, MPI_Request native) {
  flush f = begin_flush(b, native);
  if (!flushed(&f)) z_wait(flushed, &f);
  end_flush(&f);
  return f.rc;
}

/* Detaches an owner's buffer, if rc, the code of the native call, is MPI_SUCCESS. Returns rc. */
static int detached(int rc, uint64_t owner) {
  if (!rc) detach(owner);
  return rc;
}

/* Waits for all messages of an owner's buffer, if it has one. Native MPI's function that detaches
 * the buffer would wait without serving the links, on which the receivers may depend. */
static void finish(uint64_t owner) {
  zbuffer *b = find(owner);
  if (b) flush_now(b, MPI_REQUEST_NULL);
}

/* ---- the functions of the process ---- */

int z_Buffer_attach(void *buffer, int size) {
  return attached(real.Buffer_attach(buffer, size), PROCESS, buffer, size, "MPI_Buffer_attach");
}

int z_Buffer_detach(void *buffer, int *size) {
  finish(PROCESS);
  return detached(real.Buffer_detach(buffer, size), PROCESS);
}

#ifdef Z_HAVE_Buffer_attach_c
int z_Buffer_attach_c(void *buffer, MPI_Count size) {
  return attached(real.Buffer_attach_c(buffer, size), PROCESS, buffer, size, "MPI_Buffer_attach_c");
}

int z_Buffer_detach_c(void *buffer, MPI_Count *size) {
  finish(PROCESS);
  return detached(real.Buffer_detach_c(buffer, size), PROCESS);
}
#endif

/* ---- MPI 4.1: flushes, and the functions of communicators and sessions ---- */

#ifdef Z_HAVE_Buffer_iflush

static int flush_over(zreq *r) { return flushed(r->extra); }

static int flush_ends(zreq *r) {
  flush *f = r->extra;
  int class_ = f->rc ? z_native_class(f->rc) : MPI_SUCCESS;
  r->raised = f->rc != MPI_SUCCESS; /* native MPI has raised the error */
  end_flush(f);
  free(f);
  return class_;
}

/* Ends a function that flushes a buffer and returns, after the native nonblocking function, whose
 * code is rc, has stored its request in `native`. If the owner has no buffer the native function
 * has done everything. */
static int flush_and_wait(int rc, uint64_t owner, MPI_Request native) {
  zbuffer *b = find(owner);
  if (rc) return rc;
  return b ? flush_now(b, native) : z_wait_native(&native, MPI_STATUS_IGNORE);
}

/* Ends a function that starts to flush a buffer, in the same way, and stores its request in
 * *request. */
static int flush_begins(int rc, uint64_t owner, MPI_Request native, const char *function, MPI_Request *request) {
  zbuffer *b = find(owner);
  *request = native;
  if (rc || !b) return rc;
  flush *f = malloc(sizeof *f);
  if (!f) return z_raise(NULL, MPI_ERR_NO_MEM, function, "no memory for the request");
  *f = begin_flush(b, native);
  zreq *r = zreq_new(NULL, ZREQ_SEND, function);
  r->extra = f, r->poll = flush_over, r->finish = flush_ends;
  *request = r->handle;
  return MPI_SUCCESS;
}

int z_Buffer_flush(void) {
  MPI_Request native = MPI_REQUEST_NULL;
  int rc = real.Buffer_iflush(&native);
  return flush_and_wait(rc, PROCESS, native);
}

int z_Buffer_iflush(MPI_Request *request) {
  MPI_Request native = MPI_REQUEST_NULL;
  int rc = real.Buffer_iflush(&native);
  return flush_begins(rc, PROCESS, native, "MPI_Buffer_iflush", request);
}

/* Defines the functions of communicators or sessions, with NAME and TYPE Comm or Session. */
#define OWNED(NAME, TYPE)                                                                         \
  int z_##NAME##_attach_buffer(TYPE owner, void *buffer, int size) {                              \
    return attached(real.NAME##_attach_buffer(owner, buffer, size), z_key(owner), buffer, size,   \
                    "MPI_" #NAME "_attach_buffer");                                               \
  }                                                                                               \
  int z_##NAME##_attach_buffer_c(TYPE owner, void *buffer, MPI_Count size) {                      \
    return attached(real.NAME##_attach_buffer_c(owner, buffer, size), z_key(owner), buffer, size, \
                    "MPI_" #NAME "_attach_buffer_c");                                             \
  }                                                                                               \
  int z_##NAME##_detach_buffer(TYPE owner, void *buffer, int *size) {                             \
    finish(z_key(owner));                                                                         \
    return detached(real.NAME##_detach_buffer(owner, buffer, size), z_key(owner));                \
  }                                                                                               \
  int z_##NAME##_detach_buffer_c(TYPE owner, void *buffer, MPI_Count *size) {                     \
    finish(z_key(owner));                                                                         \
    return detached(real.NAME##_detach_buffer_c(owner, buffer, size), z_key(owner));              \
  }                                                                                               \
  int z_##NAME##_flush_buffer(TYPE owner) {                                                       \
    MPI_Request native = MPI_REQUEST_NULL;                                                        \
    int rc = real.NAME##_iflush_buffer(owner, &native);                                           \
    return flush_and_wait(rc, z_key(owner), native);                                              \
  }                                                                                               \
  int z_##NAME##_iflush_buffer(TYPE owner, MPI_Request *request) {                                \
    MPI_Request native = MPI_REQUEST_NULL;                                                        \
    int rc = real.NAME##_iflush_buffer(owner, &native);                                           \
    return flush_begins(rc, z_key(owner), native, "MPI_" #NAME "_iflush_buffer", request);        \
  }
OWNED(Comm, MPI_Comm)
OWNED(Session, MPI_Session)
#endif
