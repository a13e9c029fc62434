/* Arguments of a collective that are kept, or changed in form, before z_X gets them; used by
 * generated code (cgo/libmmpi/gen/collective.go). */
#ifndef ZIPPER_COLLARGS_H
#define ZIPPER_COLLARGS_H
#include "coll/coll.h"

typedef struct zargs {
  zcomm *comm;           /* spans; the program's */
  struct zpiece *pieces; /* memory and types, freed by zargs_free */
  MPI_Op op;             /* held; MPI_OP_NULL: none */
  int rc;                /* the first error class met */
} zargs;

#define ZARGS(C) \
  { .comm = (C), .op = MPI_OP_NULL }

/* What an array has an element for: each peer, each member of the process's own group, or each
 * neighbour that the process receives from or sends to. */
enum zeach { Z_PEERS, Z_MEMBERS, Z_SOURCES, Z_DESTINATIONS };

/* In collectives with a root: whether this process is the root, and whether it has the other role.
 * If neither, its arguments mean nothing. */
static inline int zargs_root(const zcomm *c, int root) { return c->inter ? root == MPI_ROOT : root == c->rank; }
static inline int zargs_leaf(const zcomm *c, int root) { return !c->inter || root >= 0; }

/* An array of int for one of 64-bit numbers. Where these do not fit, the array of int stands for
 * the other one (zcoll_number). An array that does not count becomes NULL. */
const int *zargs_ints(zargs *k, const void *wide, int counts, enum zeach each);
/* n elements of a type as *count of the type returned. */
MPI_Datatype zargs_many(zargs *k, int64_t n, MPI_Datatype type, int *count);

/* Handles that stay valid when the program frees its own. What does not count is passed through. */
MPI_Datatype zargs_type(zargs *k, MPI_Datatype type, int counts);
const MPI_Datatype *zargs_types(zargs *k, const MPI_Datatype *types, int counts, enum zeach each);
MPI_Op zargs_op(zargs *k, MPI_Op op);

int zargs_refuse(zargs *k, const char *function); /* raises k->rc and frees; the code to return */
void zargs_free(zargs *k);

/* Makes a persistent collective (persistcoll.c). start calls the nonblocking one with the arguments
 * that were kept, on a communicator of the request's own. It takes over what k holds, also if it
 * fails. Collective. */
typedef int zstarter(const void *args, MPI_Comm comm, MPI_Request *request);
int zpersist_new(zargs *k, const char *function, zstarter *start, const void *args, size_t size, MPI_Request *request);
void zpersist_keep(MPI_Request request, zargs *k); /* … and k too, until the request is freed */
#endif
