/* MPI_Comm_idup and MPI_Comm_idup_with_info, in three steps. All ranks get the new context id from
 * rank 0, by a collective of the engine. The native library duplicates the local part. Then the
 * processes exchange their results, and the copy exists. A process that waits for anything advances
 * its duplications. Collectives that the program starts on the communicator meanwhile are
 * delayed. */
#include "comm/comm.h"
#include "p2p/buffer.h"

/* A nonblocking duplication of a communicator (MPI_Comm_idup) in progress. */
typedef struct idup {
  /* the request that the program holds */
  zreq *user;
  /* the program's variable that gets the duplicate */
  MPI_Comm *out;
  /* the MPI_Fint of a Fortran program that gets it instead, or NULL */
  void *fortran;
  /* context is the new communicator's context id, which rank 0 has chosen. contexts is an array
   * with the number that each rank has sent in the last exchange: first the context id, where the
   * numbers of the ranks other than 0 only show that they have called the function, then the
   * verdict. */
  uint64_t context, *contexts;
  /* the native duplicate, or MPI_COMM_NULL until it exists */
  MPI_Comm made;
  /* the native request of the native duplication, or MPI_REQUEST_NULL */
  MPI_Request native;
  /* the step in progress: the exchange of the context id, the native duplication, or the exchange
   * of the results */
  enum { ASKING, COPYING, AGREEING } step;
  /* the arguments of the collective by which each rank sends one number to all */
  z_coll exchange;
  /* copies is 1 once the native duplication has been started; rc is the MPI error code of the
   * native part. */
  int copies, rc;
  /* the result that this process sends to the others: not 0 if its native part has failed */
  uint64_t verdict;
  /* 1 if the program has called MPI_Comm_idup_with_info, 0 for MPI_Comm_idup */
  int with_info;
  /* a duplicate of the info that the program has passed, or MPI_INFO_NULL */
  MPI_Info info;
} idup;

_Thread_local void *zcomm_fortran;

void zcomm_store(MPI_Comm made, MPI_Comm *out, void *fortran) {
#ifndef Z_STANDARD_ABI /* it has no Fortran */
  if (fortran) *(MPI_Fint *)fortran = MPI_Comm_c2f(made);
#endif
  if (!fortran) *out = made;
}

static int copy(idup *d, MPI_Comm from) {
#ifdef Z_HAVE_Comm_idup_with_info
  if (d->with_info) return real.Comm_idup_with_info(from, d->info, &d->made, &d->native);
#endif
  return real.Comm_idup(from, &d->made, &d->native);
}

/* Tests whether the native library has completed the duplication d, sets *flag to 1 or 0, and
 * returns the MPI error code of the duplication. The status has the error even where a handler of
 * the program's turns it into MPI_SUCCESS. */
static int copied(idup *d, int *flag) {
  MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
  int rc = real.Testall(1, &d->native, flag, &status);
  if (rc || *flag) rc = status.MPI_ERROR ? status.MPI_ERROR : rc;
  return *flag ? zcomm_made(rc, d->made) : rc;
}

static int over(zreq *r, idup *d, int rc) {
  zcomm *c = r->comm;
  if (d->info != MPI_INFO_NULL) real.Info_free(&d->info);
  if (!rc && !(rc = zcomm_add_like(d->made, d->context, c))) {
    zbuffer_inherit(c->native, d->made);
    zcomm_store(d->made, d->out, d->fortran);
  }
  zcoll_of(d->user)->rc = rc;
  __atomic_store_n(&d->user->cell.done, 1, __ATOMIC_RELEASE);
  __atomic_sub_fetch(&z_pending, 1, __ATOMIC_RELAXED);
  zgate_open(&zcollstate_of(c)->gate);
  return 1;
}

/* Starts the collective by which every rank gets the *number of each rank; r->cell is done when it
 * has completed. Returns MPI_SUCCESS, or an error class if it cannot start. */
static int exchange(zreq *r, idup *d, const uint64_t *number) {
  d->exchange.send = number;
  int failed = zcoll_submit(r->comm, &d->exchange, &r->cell);
  return failed ? z_error_class(failed) : MPI_SUCCESS;
}

static int failed_anywhere(const idup *d, int size) {
  int any = 0;
  for (int i = 0; i < size; i++) any |= d->contexts[i] != 0;
  return any;
}

static int move(zreq *r) {
  idup *d = r->extra;
  int flag, rc;
  if (d->step != COPYING) {
    if (!__atomic_load_n(&r->cell.done, __ATOMIC_ACQUIRE)) return 0;
    if (r->cell.error) return over(r, d, z_error_class(r->cell.error));
  }
  switch (d->step) {
  case ASKING:
    /* Another thread that forbids the native part sees this count, or is seen here. */
    zmeet_copying(1);
    if (zmeet_held()) {
      zmeet_copying(-1);
      return 0;
    }
    d->context = d->contexts[0];
    rc = copy(d, r->comm->native);
    if (rc) zmeet_copying(-1);
    d->step = COPYING, d->rc = rc, d->copies = !rc;
    return 0;
  case COPYING:
    flag = 1;
    if (d->copies) d->rc = copied(d, &flag);
    if (!d->rc && !flag) return 0;
    if (d->copies) zmeet_copying(-1);
    d->step = AGREEING, d->verdict = d->rc != MPI_SUCCESS;
    r->cell = (z_cell){.owner = r};
    rc = exchange(r, d, &d->verdict);
    return rc ? over(r, d, rc) : 0;
  default:
    rc = zcomm_verdict(r->comm, d->rc, failed_anywhere(d, r->comm->size), &d->made, d->user->function);
    return over(r, d, rc);
  }
}

/* Starts the duplication that belongs to `user`, the program's request, and returns an MPI error
 * class. A second request, which the program does not see, goes through the steps of the
 * duplication, and then completes `user`. */
static int launch(zreq *user) {
  zcoll *j = user->extra;
  idup *d = j->args.recv;
  zcomm *c = user->comm;
  int64_t *counts = zcoll_grab(j, c->size * 8), *displs = zcoll_grab(j, c->size * 8);
  d->contexts = zcoll_grab(j, c->size * 8);
  if (j->rc && d->info != MPI_INFO_NULL) real.Info_free(&d->info);
  if (j->rc) return j->rc;
  for (int i = 0; i < c->size; i++) counts[i] = 8, displs[i] = i * 8;
  d->exchange = (z_coll){.op = Z_ALLGATHERV,
                         .send_bytes = 8,
                         .recv = d->contexts,
                         .recv_counts = counts,
                         .recv_displs = displs,
                         .uniform = 1};
  d->user = user;
  if (c->rank == 0) d->context = Z_ENGINE(ze_next_context(c->link));
  zreq *r = zreq_new_blocking(c, ZREQ_COLL, user->function);
  r->extra = d;
  r->poll = move;
  if ((j->rc = exchange(r, d, &d->context))) {
    if (d->info != MPI_INFO_NULL) real.Info_free(&d->info);
    zreq_free(r);
    return j->rc;
  }
  __atomic_add_fetch(&z_pending, 1, __ATOMIC_RELAXED);
  zgate_close(&zcollstate_of(c)->gate);
  zreq_release(r);
  return MPI_SUCCESS;
}

static int duplicate(zcomm *c, int with_info, MPI_Info info, const char *function, MPI_Comm *out,
                     MPI_Request *request) {
  *out = MPI_COMM_NULL; /* Open MPI's Fortran functions convert it at once */
  if (z_layout.on_loss) /* a native duplication that some processes do not start never ends */
    return z_raise(c, MPI_ERR_UNSUPPORTED_OPERATION, function,
                   "not in a job with --on-loss continue: call MPI_Comm_dup");
  zreq *user = zcoll_begin(c, 1, function);
  zcoll *j = zcoll_of(user);
  idup *d = zcoll_grab(j, sizeof *d);
  if (d) {
    *d = (idup){.out = out,
                .fortran = zcomm_fortran,
                .made = MPI_COMM_NULL,
                .native = MPI_REQUEST_NULL,
                .with_info = with_info,
                .info = MPI_INFO_NULL};
    zcomm_fortran = NULL;
    if (info != MPI_INFO_NULL) zcoll_fail(j, real.Info_dup(info, &d->info));
  }
  j->args.recv = d;
  j->launch = launch;
  return zcoll_start(user, request);
}

int z_Comm_idup(MPI_Comm comm, MPI_Comm *out, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  return c ? duplicate(c, 0, MPI_INFO_NULL, "MPI_Comm_idup", out, request) : real.Comm_idup(comm, out, request);
}

#ifdef Z_HAVE_Comm_idup_with_info
int z_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *out, MPI_Request *request) {
  zcomm *c = zcomm_find(comm);
  return c ? duplicate(c, 1, info, "MPI_Comm_idup_with_info", out, request)
           : real.Comm_idup_with_info(comm, info, out, request);
}
#endif
