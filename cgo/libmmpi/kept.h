/* Arguments of a collective that are kept, or changed in form, before z_X gets them; used by generated code (cgo/mpi/gen/collective.go). */
#ifndef ZIPPER_KEPT_H
#define ZIPPER_KEPT_H
#include "coll.h"

typedef struct zkept {
  zcomm *comm;         /* spans; the program's */
  struct zpiece *pieces; /* memory and types, freed by zkept_free */
  MPI_Op op;           /* held; MPI_OP_NULL: none */
  int rc;              /* the first error class met */
} zkept;

#define ZKEPT(C) {.comm = (C), .op = MPI_OP_NULL}

/* What an array has one element for: each peer, each member of the process's own group, each neighbour it receives from or sends to. */
enum zeach { Z_PEERS, Z_MEMBERS, Z_SOURCES, Z_DESTINATIONS };

/* In collectives with a root: whether this process is it; whether it has the other role. Its arguments for neither mean nothing. */
static inline int zkept_root(const zcomm *c, int root) { return c->inter ? root == MPI_ROOT : root == c->rank; }
static inline int zkept_leaf(const zcomm *c, int root) { return !c->inter || root >= 0; }

/* An array of 64-bit numbers as one of int: MPI_ERR_COUNT if one does not fit. An array that does not count is passed through as NULL. */
const int *zkept_ints(zkept *k, const void *wide, int counts, enum zeach each);
int zkept_int(zkept *k, int64_t wide);

/* Handles that stay valid when the program frees its own. One that does not count is passed through. */
MPI_Datatype zkept_type(zkept *k, MPI_Datatype type, int counts);
const MPI_Datatype *zkept_types(zkept *k, const MPI_Datatype *types, int counts, enum zeach each);
MPI_Op zkept_op(zkept *k, MPI_Op op);

int zkept_refuse(zkept *k, const char *function); /* raises k->rc and frees; the code to return */
void zkept_free(zkept *k);

/* A persistent collective (persistcoll.c): start calls the nonblocking one with the arguments kept, on a communicator of the request's own.
 * Takes over what k holds, also if it fails. Collective. */
typedef int zstarter(const void *args, MPI_Comm comm, MPI_Request *request);
int zpersist_new(zkept *k, const char *function, zstarter *start, const void *args, size_t size, MPI_Request *request);
void zpersist_keep(MPI_Request request, zkept *k); /* … and k too, until the request is freed */
#endif
