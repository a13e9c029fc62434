/* Arguments of a collective that are copied, or changed in form, before they are passed to z_X;
 * used by generated code (cgo/libmmpi/gen/collective.go). */
#ifndef ZIPPER_COLLARGS_H
#define ZIPPER_COLLARGS_H
#include "coll/coll.h"

/* The copied arguments of one call of a collective. */
typedef struct zargs {
  zcomm *comm; /* the program's communicator, which spans clusters */
  /* the list of copied arrays and retained types, freed by zargs_free */
  struct zpiece *pieces;
  /* the operator that is retained until zargs_free, or MPI_OP_NULL */
  MPI_Op op;
  /* the class of the first error, or MPI_SUCCESS */
  int rc;
} zargs;

/* The initializer of a zargs for a call on the communicator C, which has no copied arguments
 * yet. */
#define ZARGS(C) \
  { .comm = (C), .op = MPI_OP_NULL }

/* The length of an array of arguments: one element for each peer, for each member of the process's
 * own group, or for each neighbour from which the process receives or to which it sends. */
enum zeach { Z_PEERS, Z_MEMBERS, Z_SOURCES, Z_DESTINATIONS };

/* Returns whether this process is the root of a collective on c to which it has passed `root`. */
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
/* Returns a type of which *count elements, an int, are n elements of the given type. A type that it
 * makes is freed with k. */
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

/* Raises the error k->rc on the communicator of the call, frees the arguments, and returns the code
 * that the MPI function must return. */
int zargs_refuse(zargs *k, const char *function);
/* Frees the copied arguments of k, and releases the types and the operator that it has retained. */
void zargs_free(zargs *k);

/* The type of a function that starts one round of a persistent collective: the nonblocking
 * collective with the copied arguments args on comm, the request's own communicator. Returns an MPI
 * error code. */
typedef int zstarter(const void *args, MPI_Comm comm, MPI_Request *request);
/* Makes *request a persistent collective (persistcoll.c), whose MPI_Start calls `start` with a copy
 * of the `size` bytes at args. The function takes ownership of the content of k, also if it fails.
 * Collective. Raises errors and returns the code for the program. */
int zpersist_new(zargs *k, const char *function, zstarter *start, const void *args, size_t size, MPI_Request *request);
/* Keeps the content of k, further arguments of a persistent collective, until its request is
 * freed. */
void zpersist_keep(MPI_Request request, zargs *k);
#endif
