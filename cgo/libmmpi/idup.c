/* MPI_Comm_idup: first the engine brings the new context id to all, then the native library duplicates the local part, then the
 * copy exists. Whoever waits for anything moves it on; collectives that the program starts meanwhile wait. Owner: comms. */
#include "comm.h"

int32_t z_pending;

typedef struct idup {
  zreq *user;        /* the program's request */
  MPI_Comm *out;     /* the program's variable */
  uint64_t context;
  MPI_Comm made;
  MPI_Request native;
  int copying;       /* the native library is at it */
} idup;

static int over(zreq *r, idup *d, int rc) {
  zcomm *c = r->comm, *made;
  if (!rc && !(rc = zcomm_add(d->made, d->context, c->world, c->size, &made))) {
    zcomm_like(made, r->comm);
    *d->out = d->made;
  }
  zcoll_of(d->user)->rc = rc;
  __atomic_store_n(&d->user->cell.done, 1, __ATOMIC_RELEASE);
  __atomic_sub_fetch(&z_pending, 1, __ATOMIC_RELAXED);
  zgate_open(&zcomm_more(c)->gate);
  return 1;
}

static int move(zreq *r) {
  idup *d = r->extra;
  int flag;
  if (!d->copying) {
    if (!__atomic_load_n(&r->cell.done, __ATOMIC_ACQUIRE)) return 0;
    if (r->cell.error) return over(r, d, z_error_class(r->cell.error));
    int rc = real.Comm_idup(r->comm->native, &d->made, &d->native);
    if (rc) return over(r, d, rc);
    d->copying = 1;
  }
  int rc = real.Test(&d->native, &flag, MPI_STATUS_IGNORE);
  return rc || flag ? over(r, d, rc) : 0;
}

/* The program's request waits; another, which the program does not see, goes through the steps. */
static void launch(zreq *user) {
  zcoll *j = user->extra;
  idup *d = j->args.recv;
  zcomm *c = user->comm;
  z_coll a = {.op = Z_BCAST, .recv = &d->context, .send_bytes = sizeof d->context};
  d->user = user;
  if (c->rank == 0) d->context = z_eng.ze_next_context();
  zreq *r = zreq_new_blocking(c, ZREQ_COLL, user->function);
  r->extra = d;
  r->poll = move;
  int failed = z_eng.ze_coll(c->id, &a, &r->cell);
  if (failed) {
    j->rc = z_error_class(failed);
    zreq_free(r);
    return;
  }
  __atomic_add_fetch(&z_pending, 1, __ATOMIC_RELAXED);
  zgate_close(&zcomm_more(c)->gate);
  zreq_release(r);
}

int z_Comm_idup(MPI_Comm comm, MPI_Comm *out, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Comm_idup(comm, out, request);
  zreq *user = zcoll_begin(c, 1, "MPI_Comm_idup");
  zcoll *j = zcoll_of(user);
  idup *d = zcoll_grab(j, sizeof *d);
  if (d) d->out = out;
  j->args.recv = d;
  j->launch = launch;
  return zcoll_start(user, request);
}
