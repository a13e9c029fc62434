/* Persistent collectives on spanning communicators. Each request has a communicator of its own,
 * because every process may start such requests in an order of its own (MPI 4.0, 6.13). MPI_Start
 * starts the nonblocking collective on that communicator. */
#include "comm/comm.h"
#include "wrap/collargs.h"
#include <stddef.h>
#include <string.h>

/* The data of the request of a persistent collective (zreq.extra). */
typedef struct collective {
  /* kept are the copied arguments of the collective, more those that zpersist_keep has added */
  zargs kept, more;
  /* the function that starts the nonblocking collective of a round */
  zstarter *start;
  /* the communicator that this request alone uses */
  MPI_Comm comm;
  /* the copied arguments that `start` gets */
  _Alignas(max_align_t) char args[];
} collective;

static int start(zreq *r) {
  collective *p = r->extra;
  MPI_Request inner;
  int rc = p->start(p->args, p->comm, &inner);
  if (!rc) r->inner = zreq_find(inner);
  return rc;
}

static void end(zreq *r) {
  collective *p = r->extra;
  zargs_free(&p->kept);
  zargs_free(&p->more);
  z_Comm_free(&p->comm); /* the communicator ends once the operations on it have completed */
}

/* Makes *out a communicator of the processes of c with the same topology, without the attributes of
 * c. It is revoked with c, and its errors are raised on c by the shim alone. Raises errors and
 * returns the code for the program. */
static int twin(zcomm *c, const char *function, MPI_Comm *out) {
  int rc = c->inter ? zcomm_split_groups(c, 0, c->rank, function, out) : zcomm_split(c, 0, c->rank, function, out);
  if (rc) return rc;
  zcomm *made = zcomm_find(*out);
  rc = zcomm_like(made, c);
  if (!rc) rc = zcomm_follow(c, made->id);
  if (!rc) rc = real.Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
  if (!rc) {
    made->front = c;
    return MPI_SUCCESS;
  }
  z_Comm_free(out);
  return z_raise(c, rc, function, "the communicator of the request cannot be made");
}

int zpersist_new(zargs *k, const char *function, zstarter *starter, const void *args, size_t size,
                 MPI_Request *request) {
  collective *p = calloc(1, sizeof *p + size);
  int rc =
      p ? twin(k->comm, function, &p->comm) : z_raise(k->comm, MPI_ERR_NO_MEM, function, "no memory for the request");
  if (rc) {
    zargs_free(k);
    free(p);
    return rc;
  }
  if (k->rc) {
    z_Comm_free(&p->comm);
    free(p);
    return zargs_refuse(k, function);
  }
  p->kept = *k;
  p->more = (zargs)ZARGS(k->comm);
  p->start = starter;
  memcpy(p->args, args, size);
  zreq *r = zreq_new(k->comm, ZREQ_PERSISTENT, function);
  r->extra = p, r->start = start, r->end = end;
  *request = r->handle;
  return MPI_SUCCESS;
}

void zpersist_keep(MPI_Request request, zargs *k) { ((collective *)zreq_find(request)->extra)->more = *k; }
