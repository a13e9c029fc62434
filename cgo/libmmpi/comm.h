/* Making communicators. Owner: comms. */
#ifndef ZIPPER_COMM_H
#define ZIPPER_COMM_H
#include "coll.h"
#include "group.h"
#include "shim.h"
#include "topo.h"

/* What else belongs to a spanning communicator. */
typedef struct zmore {
  zgate gate;
  ztopo *topo; /* NULL: none */
} zmore;

static inline zmore *zcomm_more(zcomm *c) { return (zmore *)c->extra; }

/* Makes a native communicator of this cluster's ranks, in order of rank, the local part of a spanning communicator whose rank i
 * is virtual rank world[i]. MPI error code. */
int zcomm_add(MPI_Comm native, uint64_t context, const int32_t *world, int size, zcomm **out);

/* All collectives that this process started on c before are over in it when this returns: native collectives
 * on the local part come in the same order everywhere. Rank `root` gives bytes that all get. */
int zcomm_bcast(zcomm *c, void *data, int bytes, int root, const char *function);
int zcomm_allgather(zcomm *c, const void *mine, int bytes, void *all, const char *function);
int zcomm_allgatherv(zcomm *c, const void *mine, const int64_t *bytes, void *all, const char *function); /* bytes[i] of rank i */

/* The part of c with this color (< 0: none), in order of key, then rank. *out: MPI_COMM_NULL without color. The error is raised. */
int zcomm_split(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* Before a native function that blocks and has no nonblocking form, on a communicator that does not span. Idle or not: it
 * is a collective, so all ranks have to do it or none. */
static inline int zcomm_meet(MPI_Comm comm) { return z_native_barrier(comm); }
#endif
