/* One call of any collective: from the request to its start, in the engine or in this process
 * alone, and to its end. Blocking and nonblocking collectives share this code. */
#include "coll/coll.h"

_Thread_local MPI_Request *zfortran_request;

static void drop_state(zattached *base) { free(base); }

zattached *zcollstate_make(void) {
  zcollstate *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->base.drop = drop_state;
  pthread_mutex_init(&s->gate.lock, NULL);
  return &s->base;
}

static int finish(zreq *r) {
  zcoll *j = r->extra;
  if (r->cell.error && !j->rc) j->rc = z_error_class(r->cell.error);
  int rc = zcoll_finish(j);
  free(j);
  r->extra = NULL;
  return rc;
}

zreq *zcoll_begin(zcomm *c, int nonblocking, const char *function) {
  if (c->front) function = "MPI_Start"; /* of a persistent collective */
  zreq *r = nonblocking ? zreq_new(c, ZREQ_COLL, function) : zreq_new_blocking(c, ZREQ_COLL, function);
  zcoll *j = calloc(1, sizeof *j);
  if (!j) z_no_memory("a collective");
  j->comm = c;
  j->nonblocking = nonblocking;
  r->extra = j;
  r->finish = finish;
  return r;
}

/* Raises the error of a collective that was not started, with the text `why`, and frees its request
 * r. Returns the code that the MPI function must return. */
static int refuse(zreq *r, const char *why) {
  zcomm *c = zcomm_retain(r->comm);
  const char *function = r->function;
  int rc = finish(r);
  zreq_free(r);
  rc = z_raise_because(c, rc, function, zdevice_blame(NULL), why);
  zcomm_release(c);
  return rc;
}

int zcoll_submit(zcomm *c, z_coll *args, z_cell *cell) {
  zcollstate *m = zcollstate_of(c);
  args->skipped = m->skipped;
  m->skipped = 0;
  return Z_GUARDED(ze_coll(c->id, args, cell));
}

int zcoll_by_engine(zreq *r) {
  zcoll *j = r->extra;
  int failed = zcoll_submit(r->comm, &j->args, &r->cell);
  return failed ? j->rc = z_error_class(failed) : MPI_SUCCESS;
}

/* Starts the collective of request r. Returns as zcoll_by_engine does. */
static int launch(zreq *r) {
  zcoll *j = r->extra;
  return j->launch ? j->launch(r) : zcoll_by_engine(r);
}

/* Appends r to the requests that wait at the gate, if it has to wait there. Returns whether it has
 * to wait. */
static int wait_at(zgate *g, zreq *r) {
  z_lock(&g->lock);
  int waits = g->closed || g->launching || g->first;
  if (waits) {
    r->next = NULL;
    if (!g->first) g->end = &g->first;
    *g->end = r;
    g->end = &r->next;
  }
  z_unlock(&g->lock);
  return waits;
}

void zgate_close(zgate *g) {
  z_lock(&g->lock);
  g->closed = 1;
  z_unlock(&g->lock);
}

void zgate_open(zgate *g) {
  z_lock(&g->lock);
  g->closed = 0;
  /* otherwise the thread that is launching continues, so that collectives start one after the
   * other */
  if (!g->launching) {
    g->launching = 1;
    for (zreq *r; (r = g->first) && !g->closed;) {
      g->first = r->next;
      z_unlock(&g->lock);
      if (launch(r)) __atomic_store_n(&r->cell.done, 1, __ATOMIC_RELEASE); /* finish() returns the error */
      z_lock(&g->lock);
    }
    g->launching = 0;
  }
  z_unlock(&g->lock);
}

/* Stores the program's handle in *zfortran_request, and returns the request of a small native
 * collective, for a Fortran caller: Open MPI's Fortran functions store data in the request that
 * they get, so it must be one of Open MPI's collectives. If none can be started it returns
 * `handle`. */
static MPI_Request stand_in(MPI_Request handle) {
  static _Thread_local int in, out;
  MPI_Request native;
  if (real.Ireduce_scatter_block(&in, &out, 1, MPI_INT, MPI_SUM, z_self, &native)) return handle;
  *zfortran_request = handle;
  zfortran_request = NULL;
  return native;
}

int zcoll_start(zreq *r, MPI_Request *request) {
  zcoll *j = r->extra;
  MPI_Request handle = r->handle;
  if (j->rc) return refuse(r, zcoll_wrong(j->rc));
  if (!(j->nonblocking && zleaf_start(r)) && !wait_at(&zcollstate_of(r->comm)->gate, r) && launch(r))
    return refuse(r, Z_ENGINE(ze_error()));
  if (request) *request = zfortran_request ? stand_in(handle) : handle;
  return MPI_SUCCESS;
}

int zcoll_run(zreq *r) {
  if (zleaf_try(zcoll_of(r))) {
    r->cell.done = 1;
    return zreq_complete(r, MPI_STATUS_IGNORE);
  }
  int rc = zcoll_start(r, NULL);
  return rc ? rc : zreq_complete(r, MPI_STATUS_IGNORE);
}
