/* Request objects: their pool, their placeholders, their completion, and requests that the program
 * has released. */
#include "request/request.h"
#include "core/error.h"
#include "core/privcomm.h"
#include "core/status.h"
#include "device/device.h"
#include "request/wait.h"
#include "type/use.h"

zmap z_requests;
zmap z_receives;

/* The pool of free request objects, with and without a placeholder handle. A placeholder (Recv_init
 * on MPI_PROC_NULL) is a native request that no native call ever completes, and that has a Fortran
 * index. An object with a placeholder keeps it for good, and stays in z_requests. */
static struct {
  pthread_mutex_t lock;
  zreq *with_handle, *bare;
} pool = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL};

static struct {
  pthread_mutex_t lock;
  zreq *first;
} released = {PTHREAD_MUTEX_INITIALIZER, NULL};

static zreq *fresh(zcomm *c, int kind, const char *function, int with_handle) {
  z_lock(&pool.lock);
  zreq **list = with_handle ? &pool.with_handle : &pool.bare, *r = *list;
  if (r) *list = r->next;
  z_unlock(&pool.lock);
  MPI_Request handle = r ? r->handle : MPI_REQUEST_NULL;
  if (!r && !(r = malloc(sizeof *r))) z_no_memory("a request");
  *r = (zreq){
      .handle = handle, .kind = kind, .function = function, .type = MPI_DATATYPE_NULL, .native = MPI_REQUEST_NULL};
  r->cell.owner = r;
  if (c) r->comm = zcomm_retain(c);
  if (c && c->front) zcomm_retain(c->front);
  if (c && kind == ZREQ_PERSISTENT) __atomic_add_fetch(&c->persistent, 1, __ATOMIC_RELEASE);
  if (with_handle && handle == MPI_REQUEST_NULL) {
    z_must(real.Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, z_self, &r->handle), "MPI_Recv_init");
    zmap_put(&z_requests, z_key(r->handle), r);
  }
  return r;
}

zreq *zreq_new(zcomm *c, int kind, const char *function) { return fresh(c, kind, function, 1); }
zreq *zreq_new_blocking(zcomm *c, int kind, const char *function) { return fresh(c, kind, function, 0); }

void zreq_free(zreq *r) {
  if (r->feed) zfeed_end(r->feed);
  if (r->staged) zstage_free(r->packed);
  else free(r->packed);
  if (r->type_held) ztype_release(r->type);
  if (r->comm) {
    zcomm *front = r->comm->front;
    if (r->kind == ZREQ_PERSISTENT) __atomic_sub_fetch(&r->comm->persistent, 1, __ATOMIC_RELEASE);
    zcomm_release(r->comm);
    if (front) zcomm_release(front);
  }
  r->comm = NULL;
  z_lock(&pool.lock);
  zreq **list = r->handle != MPI_REQUEST_NULL ? &pool.with_handle : &pool.bare;
  r->next = *list;
  *list = r;
  z_unlock(&pool.lock);
}

void zreq_stop(void) {
  for (zreq *r; (r = pool.with_handle);) {
    pool.with_handle = r->next;
    zmap_remove(&z_requests, z_key(r->handle));
    real.Request_free(&r->handle);
    free(r);
  }
  for (zreq *r; (r = pool.bare);) {
    pool.bare = r->next;
    free(r);
  }
}

/* ---- completion ---- */

/* Continues a pending receive, and returns whether it is over again: the loss may still not be
 * acknowledged, or a message may have come. */
static int resume(zreq *r) {
  int failed = Z_ENGINE(ze_resume(r->comm->id, &r->cell));
  if (failed) r->cell.error = failed;
  return failed || __atomic_load_n(&r->cell.done, __ATOMIC_ACQUIRE);
}

int zreq_over(zreq *r) {
  if (r->finished) return 1;
  if (r->poll) return r->poll(r);
  int done = __atomic_load_n(&r->cell.done, __ATOMIC_ACQUIRE);
  return done && zreq_stays(r) ? resume(r) : done;
}

void zunraised_note(zunraised *unraised, const zreq *r, int class_) {
  if (!unraised->comm) *unraised = (zunraised){zcomm_retain(r->comm), class_};
}

int zreq_tell(zreq *r, zunraised *unraised) {
  if (!unraised) return z_raise_cell(r->comm, &r->cell, r->function);
  int class_ = z_error_class(r->cell.error);
  zunraised_note(unraised, r, class_);
  return class_;
}

/* Ends a pending receive for good. */
static void give_up(zreq *r) {
  Z_ENGINE(ze_cancel(r->comm->id, &r->cell));
  r->cell.error = Z_ERR_PROC_FAILED;
  r->cell.cancelled = 0;
}

int zreq_finish(zreq *r, MPI_Status *status) {
  if (!r->finished) {
    if (zreq_stays(r)) give_up(r);
    r->finished = 1;
    /* counts the wait even if the message had arrived before any wait */
    if (r->kind == ZREQ_RECV) Z_WAITS((void)0);
    if (r->finish) r->class_ = r->finish(r);
    if (r->is_native) {
      if (!r->class_) r->class_ = r->cell.error;
    } else {
      if (!r->class_) r->class_ = z_error_class(r->cell.error);
      if (r->kind == ZREQ_RECV) {
        z_status_set(&r->status, r->cell.source < 0 ? r->cell.source : r->cell.source - r->comm->base, r->cell.tag,
                     MPI_SUCCESS, r->cell.bytes, r->cell.cancelled);
      } else {
        z_status_set(&r->status, Z_ANY_SOURCE, Z_ANY_TAG, MPI_SUCCESS, 0, r->cell.cancelled);
      }
    }
  }
  z_status_copy(status, &r->status);
  return r->class_;
}

int zreq_raise(zreq *r) {
  if (!r->class_ || r->raised) return r->class_;
  r->raised = 1;
  if (!r->is_native && r->cell.error) return z_raise_cell(r->comm, &r->cell, r->function);
  return z_raise_because(r->comm, r->class_, r->function, zdevice_blame(NULL), "the operation failed");
}

static int over(void *r) { return zreq_over(r); }

int zreq_complete(zreq *r, MPI_Status *status) {
  if (!zreq_over(r)) z_wait(over, r);
  zreq_finish(r, status);
  int rc = zreq_raise(r);
  zreq_free(r);
  return rc;
}

int zreq_cancel(zreq *r) {
  if (zreq_over(r) && !zreq_stays(r)) return MPI_SUCCESS;
  /* The shim polls what it has started natively itself. For a request of the engine another thread
   * may just be handing it to native MPI, or ending it there; the engine holds the lock and knows
   * its state. */
  if (r->poll && r->is_native) return real.Cancel(&r->native);
  if (!r->comm) return z_raise(NULL, MPI_ERR_REQUEST, "MPI_Cancel", "a request of %s cannot be cancelled", r->function);
  int e = Z_ENGINE(ze_cancel(r->comm->id, &r->cell));
  return e ? z_raise_engine(r->comm, e, "MPI_Cancel") : MPI_SUCCESS;
}

void zreq_withdraw(zreq *r) {
  zreq_cancel(r);
  if (!zreq_over(r)) z_wait(over, r);
  zreq_finish(r, MPI_STATUS_IGNORE);
  zreq_free(r);
}

/* ---- released requests ---- */

void zreq_release(zreq *r) {
  z_lock(&released.lock);
  r->next = released.first;
  __atomic_store_n(&released.first, r, __ATOMIC_RELEASE);
  z_unlock(&released.lock);
}

void zreq_reap(void) {
  if (!__atomic_load_n(&released.first, __ATOMIC_RELAXED)) return;
  zreq *all = NULL, *keep = NULL, **end = &keep;
  z_lock(&released.lock);
  all = released.first;
  released.first = NULL;
  z_unlock(&released.lock);
  for (zreq *r = all, *next; r; r = next) {
    next = r->next;
    if (zreq_over(r)) {
      zreq_finish(r, MPI_STATUS_IGNORE);
      zreq_free(r);
    } else {
      *end = r;
      end = &r->next;
    }
  }
  *end = NULL;
  if (!keep) return;
  z_lock(&released.lock);
  *end = released.first;
  __atomic_store_n(&released.first, keep, __ATOMIC_RELEASE);
  z_unlock(&released.lock);
}

static int none_released(void *arg) {
  (void)arg;
  return !__atomic_load_n(&released.first, __ATOMIC_RELAXED);
}

void zreq_finish_released(void) {
  zreq_reap();
  z_wait(none_released, NULL);
}
