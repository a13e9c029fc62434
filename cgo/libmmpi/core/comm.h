/* Communicators that span clusters. */
#ifndef ZIPPER_CORE_COMM_H
#define ZIPPER_CORE_COMM_H
#include "core/job.h"
#include "core/map.h"

#pragma GCC visibility push(hidden)

/* The common head of the objects that a higher chapter (a folder of this library, such as coll)
 * attaches to a communicator. */
typedef struct zattached {
  /* Returns a copy of the object for a duplicate of the communicator, or NULL if memory is
   * exhausted. A NULL function: duplicates get no object. */
  struct zattached *(*copy)(const struct zattached *);
  /* frees the object, when the communicator is freed */
  void (*drop)(struct zattached *);
} zattached;

/* A communicator that spans clusters. Its local part is a native communicator of its ranks in this
 * cluster. */
typedef struct zcomm {
  MPI_Comm native; /* the local part; its handle is the program's handle */
  /* the context id: the number by which the processes tell this communicator's messages from those
   * of others */
  uint64_t context;
  /* The number of the connection (link) to the other job that some ranks belong to, or 0 if all
   * ranks are of this job. */
  int32_t link;
  /* the number by which the engine knows the communicator */
  int32_t id;
  int32_t size, rank; /* the number of ranks, and this process's rank */
  /* the size of the local part, and this process's rank in it */
  int32_t native_size, native_rank;
  /* [size] The virtual rank of each rank or, for a process of another job, the number by which this
   * process knows it. */
  int32_t *world;
  /* [size] The rank in the local part of each rank, or Z_REMOTE for a rank of another cluster. */
  int32_t *native_of;
  /* [native_size] the rank in this communicator of each rank of the local part */
  int32_t *rank_of;
  /* An intercommunicator has the ranks of both its groups, one group after the other. Rank p of the
   * other group, as the program numbers the peers of point-to-point calls, is rank base + p here.
   * In an intracommunicator all ranks are peers and base is 0. */
  int32_t inter; /* 1 if the communicator is an intercommunicator */
  /* the rank of the first peer, and the number of peers, the ranks that the program can name in
   * point-to-point calls */
  int32_t base, peers;
  /* The number of references: one of the program's handle, one of each operation or message in
   * flight, and one of each persistent request. */
  int32_t refs;
  /* the number of references that are those of persistent requests, whether they are active or
   * not */
  int32_t persistent;
  /* 1 once the program has freed the handle. The native communicator is freed only with the last
   * reference. */
  int32_t freed;
  /* The program's communicator whose operations run on this one, which the program does not know,
   * or NULL. Errors are raised there (core/error.h), and each request on this communicator holds a
   * reference of it. */
  struct zcomm *front;
  /* the objects that the chapters coll, topo and p2p have attached, or NULL */
  struct zattached *coll, *topo, *parts;
} zcomm;

/* Converts the number by which the program names a peer in a point-to-point call to the rank in c.
 * MPI_PROC_NULL and MPI_ANY_SOURCE are returned unchanged. */
static inline int zcomm_at(const zcomm *c, int peer) { return peer < 0 ? peer : c->base + peer; }
/* Returns the first rank of the group of c that this process belongs to. An intracommunicator has
 * one group. In an intercommunicator the peers are the other group. */
static inline int zcomm_first(const zcomm *c) { return c->inter && !c->base ? c->peers : 0; }
/* Returns the number of ranks of the group of c that this process belongs to. */
static inline int zcomm_members(const zcomm *c) { return c->inter ? c->size - c->peers : c->size; }

/* The map from native handle to zcomm. It holds the spanning communicators, and the copies of
 * communicators inside the cluster that zcomm_adopt has made. */
extern zmap z_comms;
/* The zcomm of MPI_COMM_WORLD, which z_comms has too. Most calls are on MPI_COMM_WORLD, and need no
 * hash because of this variable. It is NULL before the process has joined the job, after it has
 * left, and in a job of one cluster. */
extern zcomm *z_whole;

/* Looks a handle up in z_comms. Returns its zcomm, or NULL if the communicator does not span
 * clusters or the handle is invalid; native MPI reports an invalid handle. Call zcomm_find unless
 * the handle is known not to be MPI_COMM_WORLD. */
zcomm *zcomm_find_other(MPI_Comm comm);
/* Returns the zcomm of a handle, which may be MPI_COMM_WORLD, or NULL if the communicator does not
 * span clusters or the handle is invalid. */
static inline zcomm *zcomm_find(MPI_Comm comm) { return comm == MPI_COMM_WORLD ? z_whole : zcomm_find_other(comm); }

/* Adds a reference to c, and returns c. */
static inline zcomm *zcomm_retain(zcomm *c) {
  __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
  return c;
}
/* Allocates a communicator with one reference, which is not in the map yet. Rank i is virtual rank
 * world[i]; the array is copied. Returns NULL if memory is exhausted. */
zcomm *zcomm_make(MPI_Comm native, uint64_t context, const int32_t *world, int size);
/* Returns the index of this process's cluster among the clusters of the job or, if c has ranks of
 * other jobs, among the clusters of all its jobs. c may be NULL. */
static inline int zcomm_cluster(const zcomm *c) {
  return c && c->link ? Z_ENGINE(ze_cluster(c->link)) : z_layout.cluster;
}
/* Makes the communicator with the engine's number `id`, on which operations of c run and which the
 * program does not know, be revoked with c. Returns an MPI error class. */
int zcomm_follow(const zcomm *c, int32_t id);
/* frees the memory of c, but neither its native communicator nor its communicator in the engine */
void zcomm_discard(zcomm *c);
/* Returns 1 if some of c's ranks are in a lost cluster, or c is revoked, so that collectives on it
 * fail, otherwise 0. */
int zcomm_is_hurt(const zcomm *c);
/* Removes c from the map and the engine, and frees the native communicator and c. The caller has
 * dropped the last reference. A communicator that is hurt, and has several ranks in this cluster,
 * is kept natively, with its memory. */
void zcomm_destroy(zcomm *c);
/* Drops a reference to c, and destroys c if there are no more references. */
static inline void zcomm_release(zcomm *c) {
  if (!__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL)) zcomm_destroy(c);
}

#pragma GCC visibility pop
#endif
