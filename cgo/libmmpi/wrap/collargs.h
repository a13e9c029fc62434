/* Arguments of a collective that are copied, or changed in form, before they are passed to z_X;
 * used by generated code (cgo/libmmpi/gen/collective.go). */
#ifndef ZIPPER_COLLARGS_H
#define ZIPPER_COLLARGS_H
#include "coll/coll.h"

/* The copied arguments of a collective. */
typedef struct zargs {
  zcomm *comm;           /* the program's communicator, which spans clusters */
  struct zpiece *pieces; /* memory and types, freed by zargs_free */
  MPI_Op op;             /* a retained operator, or MPI_OP_NULL */
  int rc;                /* the first error class, or MPI_SUCCESS */
} zargs;

/* The initializer of a zargs without copied arguments. */
#define ZARGS(C) \
  { .comm = (C), .op = MPI_OP_NULL }

/* The dimension of an array of arguments: an element for each peer, for each member of the
 * process's own group, or for each neighbour from which the process receives or to which it
 * sends. */
enum zeach { Z_PEERS, Z_MEMBERS, Z_SOURCES, Z_DESTINATIONS };

/* Returns whether this process is the root of a collective. */
static inline int zargs_root(const zcomm *c, int root) { return c->inter ? root == MPI_ROOT : root == c->rank; }
/* Returns whether this process has the role of the processes that exchange data with the root of a
 * collective. In an intracommunicator the root has this role too. In an intercommunicator the
 * processes of the root's group, except the root, have neither role, and their arguments have no
 * meaning. */
static inline int zargs_leaf(const zcomm *c, int root) { return !c->inter || root >= 0; }

/* Returns an array of int with the values of an array of 64-bit numbers. If a value does not fit an
 * int, the address of the array of int stands for the 64-bit array (zcoll_number). Returns NULL if
 * counts is 0, because the argument has no meaning in this process. */
const int *zargs_ints(zargs *k, const void *wide, int counts, enum zeach each);
/* Describes n elements of a type as *count elements of the type that is returned. */
MPI_Datatype zargs_many(zargs *k, int64_t n, MPI_Datatype type, int *count);

/* Retains a datatype, so that its handle stays valid after the program has freed it, and returns
 * the handle. A datatype without meaning (counts is 0) is returned unchanged. */
MPI_Datatype zargs_type(zargs *k, MPI_Datatype type, int counts);
/* Retains the datatypes of an array, and returns a copy of the array. An array without meaning
 * (counts is 0) is returned unchanged. */
const MPI_Datatype *zargs_types(zargs *k, const MPI_Datatype *types, int counts, enum zeach each);
/* Retains an operator, so that its handle stays valid after the program has freed it, and returns
 * the handle. */
MPI_Op zargs_op(zargs *k, MPI_Op op);

/* Raises k->rc, frees the arguments, and returns the code for the program. */
int zargs_refuse(zargs *k, const char *function);
/* Frees the copied arguments, and releases the retained handles. */
void zargs_free(zargs *k);

/* Makes a persistent collective (persistcoll.c). `start` starts the nonblocking one with the copied
 * arguments, on a communicator of the request's own. The function takes ownership of the content of
 * k, also if it fails. Collective. */
typedef int zstarter(const void *args, MPI_Comm comm, MPI_Request *request);
int zpersist_new(zargs *k, const char *function, zstarter *start, const void *args, size_t size, MPI_Request *request);
/* Keeps the content of k until the request is freed. */
void zpersist_keep(MPI_Request request, zargs *k);
#endif
