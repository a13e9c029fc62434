/* Communicators that span clusters. */
#ifndef ZIPPER_CORE_COMM_H
#define ZIPPER_CORE_COMM_H
#include "core/job.h"
#include "core/map.h"

#pragma GCC visibility push(hidden)

/* How what a higher chapter keeps with a communicator begins. */
typedef struct zattached {
  struct zattached *(*copy)(const struct zattached *); /* for a duplicate; NULL: no memory */
  void (*drop)(struct zattached *);
} zattached;

typedef struct zcomm {
  MPI_Comm native; /* the local part; its handle is the user's handle */
  uint64_t context;
  int32_t link; /* 0: all ranks are of this job; else the connection to the other job that some of them are of */
  int32_t id;   /* the engine's */
  int32_t size, rank;
  int32_t native_size, native_rank;
  int32_t *world;     /* [size] rank → virtual world rank, or number of a process of another job */
  int32_t *native_of; /* [size] rank → rank in the local part, or Z_REMOTE */
  int32_t *rank_of;   /* [native_size] the other way */
  /* An intercommunicator has the ranks of both its groups, one group after the other. What the
   * program calls rank p of the other group, the peers of point to point, is rank base + p. In an
   * intracommunicator all are peers. */
  int32_t inter;                         /* 1: it is one */
  int32_t base, peers;                   /* rank of the first peer; how many there are */
  int32_t refs;                          /* the user's handle, and each operation or message in flight */
  int32_t freed;                         /* the user has freed it: native free waits for the last reference */
  struct zattached *coll, *topo, *parts; /* what those chapters keep with it; NULL: nothing */
} zcomm;

/* The rank of a peer; MPI_PROC_NULL and MPI_ANY_SOURCE stay. */
static inline int zcomm_at(const zcomm *c, int peer) { return peer < 0 ? peer : c->base + peer; }
/* The process's own group: all, or the other half of an intercommunicator. */
static inline int zcomm_first(const zcomm *c) { return c->inter && !c->base ? c->peers : 0; }
static inline int zcomm_members(const zcomm *c) { return c->inter ? c->size - c->peers : c->size; }

extern zmap z_comms; /* native handle → zcomm; only spanning ones */
/* That of MPI_COMM_WORLD, kept apart because most calls are on it and need no hash then. NULL:
 * before the job has begun, or after its end. */
extern zcomm *z_whole;

/* The spanning communicator of a handle. NULL: it does not span, or is no communicator at all,
 * which native MPI will say. */
zcomm *zcomm_find_other(MPI_Comm comm); /* of any but MPI_COMM_WORLD: out of the way of most calls */
static inline zcomm *zcomm_find(MPI_Comm comm) { return comm == MPI_COMM_WORLD ? z_whole : zcomm_find_other(comm); }

static inline zcomm *zcomm_retain(zcomm *c) {
  __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
  return c;
}
/* Makes a communicator that nobody can find yet, whose rank i is virtual rank world[i] (copied).
 * NULL: no memory. */
zcomm *zcomm_make(MPI_Comm native, uint64_t context, const int32_t *world, int size);
/* Number of this process's cluster among those of the ranks. */
static inline int zcomm_cluster(const zcomm *c) {
  return c && c->link ? Z_ENGINE(ze_cluster(c->link)) : z_layout.cluster;
}
void zcomm_discard(zcomm *c); /* frees c, and nothing outside of it */
void zcomm_destroy(zcomm *c); /* refs are 0: drop it in the engine, free the native communicator and c */
static inline void zcomm_release(zcomm *c) {
  if (!__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL)) zcomm_destroy(c);
}

#pragma GCC visibility pop
#endif
