/* MPI_Comm_shrink and MPI_Comm_ishrink, in three steps. The living processes agree on the set of
 * living processes. Those in this cluster make the local part of the new communicator by native
 * messages, because the order of native collectives on the old communicator may differ between
 * them. Then the processes agree again: every native library has made its part, and the processes
 * that live now are the members. A cluster that is lost between the two agreements has no part in
 * the native communicators of the others, so these are not made again. */
#include "core/privcomm.h"
#include "failure/failure.h"

/* A shrink in progress. */
typedef struct shrink {
  zreq *user;    /* the request of the program's call, which is done at the end */
  MPI_Comm *out; /* the program's variable that gets the new communicator, if fortran is NULL */
  void *fortran; /* the MPI_Fint of a Fortran program that gets the new communicator, or NULL */
  /* the step in progress: the agreement on the members, or that on the native parts */
  enum { CHOOSING, CONFIRMING } step;
  /* The number of this shrink among those of this process. The native parts are made in this order,
   * because the native functions block. */
  uint32_t turn;
  uint64_t context; /* the context id of the new communicator */
  int32_t n;        /* the number of members that the last agreement has found */
  /* [n] The rank of each member in the old communicator, and the number by which this process knows
   * it. */
  int32_t *ranks, *world;
  MPI_Comm made; /* the native part, or MPI_COMM_NULL */
  int rc;        /* the MPI error class with which the shrink ends */
} shrink;

/* the number of shrinks that this process has started, and the turn of the one that makes its
 * native part next */
static uint32_t started, served;

/* Sets the context and the members to those of an agreement, whose cell is done. Returns an MPI
 * error class. */
static int take_members(zcomm *c, const z_cell *agreed, shrink *s) {
  int rc = z_error_class(Z_ENGINE(ze_shrunk(c->id, agreed, &s->context, s->ranks, c->size, &s->n)));
  for (int i = 0; i < s->n && !rc; i++) s->world[i] = c->world[s->ranks[i]];
  return rc;
}

/* Makes the native part of the new communicator. Returns an MPI error code. */
static int make_part(zcomm *c, const z_cell *chosen, shrink *s) {
  int32_t *memory = malloc(2 * (size_t)c->size * sizeof *memory);
  if (!memory) z_no_memory("the members of a communicator");
  s->ranks = memory, s->world = memory + c->size;
  int rc = take_members(c, chosen, s);
  if (!rc) rc = zcomm_part(z_private, s->world, s->n, (int)(s->context % ZTAG_CONTEXT), &s->made);
  return rc ? rc : zinter_inherit(c->native, s->made);
}

/* Adds the new communicator to MMPI's if it spans clusters, with two groups if the old one has two.
 * Its members are those of the agreement `confirmed`. Returns an MPI error code. */
static int complete(zcomm *c, const z_cell *confirmed, shrink *s) {
  int low = 0, old_low = c->base ? c->base : c->peers, spans = 0, rc = take_members(c, confirmed, s);
  zcomm *made = NULL;
  if (rc) return rc;
  for (int i = 0; i < s->n; i++) {
    spans |= c->native_of[s->ranks[i]] == Z_REMOTE;
    low += s->ranks[i] < old_low;
  }
  if (c->inter && (low == 0 || low == s->n)) return Z_CLASS_PROC_FAILED; /* a whole group is lost */
  if (spans) rc = zcomm_add(c->link, s->made, s->context, s->world, s->n, &made);
  else if (c->inter) rc = zinter_native(&s->made, low);
  if (!rc && spans && c->inter) zinter_set(made, low);
  return rc;
}

static int over(shrink *s, int rc) {
  if (rc && s->made != MPI_COMM_NULL) real.Comm_free(&s->made);
  zcomm_store(s->made, s->out, s->fortran);
  s->rc = rc;
  __atomic_store_n(&s->user->cell.done, 1, __ATOMIC_RELEASE);
  return 1;
}

/* Advances a shrink. It serves as the `poll` of a request that the program does not see. */
static int advance(zreq *r) {
  shrink *s = r->extra;
  if (!__atomic_load_n(&r->cell.done, __ATOMIC_ACQUIRE)) return 0;
  if (s->step == CHOOSING) {
    if (s->turn != __atomic_load_n(&served, __ATOMIC_ACQUIRE)) return 0;
    int rc = r->cell.error ? z_error_class(r->cell.error) : make_part(r->comm, &r->cell, s);
    __atomic_add_fetch(&served, 1, __ATOMIC_RELEASE);
    if (r->cell.error) return over(s, rc);
    s->step = CONFIRMING;
    r->cell = (z_cell){.owner = r};
    int failed = Z_ENGINE(ze_shrink(r->comm->id, rc == MPI_SUCCESS, &r->cell));
    return failed ? over(s, z_error_class(failed)) : 0;
  }
  if (r->cell.error) return over(s, z_error_class(r->cell.error));
  return over(s, r->cell.tag ? complete(r->comm, &r->cell, s) : MPI_ERR_OTHER);
}

/* Ends the program's request of a shrink. It serves as user->finish, and returns an MPI error
 * class. */
static int finish(zreq *user) {
  shrink *s = user->extra;
  int rc = s->rc;
  free(s->ranks);
  free(s);
  user->extra = NULL;
  return rc;
}

int zfailure_shrink(MPI_Comm comm, MPI_Comm *out, MPI_Request *request, const char *function) {
  zcomm *c = zcomm_find(comm);
  int rc = zfailure_check(comm, c, function);
  *out = MPI_COMM_NULL;
  if (rc) return rc;
  if (!c) return request ? real.Comm_idup(comm, out, request) : z_Comm_dup(comm, out);
  zreq *user = request ? zreq_new(c, ZREQ_COLL, function) : zreq_new_blocking(c, ZREQ_COLL, function);
  zreq *r = zreq_new_blocking(c, ZREQ_COLL, function);
  shrink *s = calloc(1, sizeof *s);
  if (!s) z_no_memory("a communicator");
  *s = (shrink){.user = user, .out = out, .fortran = zcomm_fortran, .made = MPI_COMM_NULL};
  user->extra = r->extra = s;
  user->finish = finish, r->poll = advance;
  int failed = Z_ENGINE(ze_shrink(c->id, 1, &r->cell));
  if (failed) {
    zreq_free(r);
    zreq_free(user);
    free(s);
    return z_raise_engine(c, failed, function);
  }
  s->turn = __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
  zcomm_fortran = NULL;
  zreq_release(r);
  if (!request) return zreq_complete(user, MPI_STATUS_IGNORE);
  *request = user->handle;
  return MPI_SUCCESS;
}
