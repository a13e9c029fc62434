/* Requests of the shim. */
#ifndef ZIPPER_REQUEST_H
#define ZIPPER_REQUEST_H
#include "core/comm.h"

#pragma GCC visibility push(hidden)

/* The kind of a request: a send, a receive, a collective, or a persistent request of any of
 * these. */
enum zreq_kind { ZREQ_SEND, ZREQ_RECV, ZREQ_COLL, ZREQ_PERSISTENT };

/* A request of the shim behind a native placeholder handle. */
typedef struct zreq {
  z_cell cell; /* its owner is this zreq */
  /* The placeholder that the program holds, or MPI_REQUEST_NULL if the program holds none. */
  MPI_Request handle;
  zcomm *comm;      /* referenced */
  int32_t kind;     /* enum zreq_kind */
  int32_t finished; /* 1 once zreq_finish has run and set status and class_ */
  int32_t class_;   /* the MPI error class of the result */
  int32_t raised;   /* 1 once the error has been raised */
  /* 1 for a buffered send, which counts against the attached buffer. */
  int32_t bsend;
  /* The arguments of the program's call. */
  void *buf;
  int64_t count;
  MPI_Datatype type;
  /* 1 if the type is released with the request (type/use.h). */
  int32_t type_held;
  int32_t peer, tag; /* the peer's rank as the program numbers it, and the tag */
  int64_t element;   /* the bytes of data in one element of type */
  /* The packed copy of buf, or NULL if there is none. */
  void *packed;
  /* The native operation that does the work. The shim has started it with a local peer, or the
   * engine has (imrecv, irecv). is_native stays set after completion; status is then the native
   * status, with the source translated. */
  MPI_Request native;
  int32_t is_native;
  MPI_Status status;
  const char *function; /* the name of the MPI function, such as "MPI_Irecv", for errors */
  /* Advances an operation of several stages, and returns 1 once it has completed. If poll is NULL
   * the operation has completed when cell.done is set. It is called by threads of the program, one
   * at a time. */
  int (*poll)(struct zreq *);
  /* Called once after completion: copies results to the program, frees extra, and returns an error
   * class or MPI_SUCCESS. NULL: nothing is to be done. */
  int (*finish)(struct zreq *);
  void *extra; /* the data of poll and finish */
  /* For persistent requests: the operation that was started last, or NULL while the request is
   * inactive. */
  struct zreq *inner;
  /* For persistent requests: starts an operation and sets inner. Returns the code for the program,
   * after raising an error. */
  int (*start)(struct zreq *);
  /* For persistent requests: called when the program frees the request, to free what extra refers
   * to. NULL: nothing is to be done. */
  void (*end)(struct zreq *);
  struct zreq *next; /* the next object of a list of free, released or waiting requests */
} zreq;

extern zmap z_requests; /* the map from placeholder handle to zreq */
/* The map from a native receive on a spanning communicator to its zcomm (referenced), by which its
 * status is translated. */
extern zmap z_receives;

/* Returns the shim's request behind a handle, or NULL if the request is native. */
static inline zreq *zreq_find(MPI_Request handle) {
  return zmap_count(&z_requests) ? (zreq *)zmap_get(&z_requests, z_key(handle)) : NULL;
}
/* Removes the entry of a native receive and returns its communicator, whose reference passes to the
 * caller, or NULL if there is no entry. */
static inline zcomm *z_receives_take(MPI_Request handle) {
  return zmap_count(&z_receives) ? (zcomm *)zmap_remove(&z_receives, z_key(handle)) : NULL;
}

/* Allocates a request on c, of which it takes a reference, with a placeholder handle for the
 * program. All other fields are 0. */
zreq *zreq_new(zcomm *c, int kind, const char *function);
/* Allocates a request without a handle, for blocking calls. The caller then calls zreq_complete, or
 * z_wait_cell, zreq_finish and zreq_free. */
zreq *zreq_new_blocking(zcomm *c, int kind, const char *function);
int zreq_over(zreq *r); /* polls the request once and returns whether it has completed */
/* Hands results and status of a completed request to the program and returns its error class.
 * Further calls return the same. */
int zreq_finish(zreq *r, MPI_Status *status);
/* Raises the error that zreq_finish has found, if any, and returns the code for the program. */
int zreq_raise(zreq *r);
/* Waits for the request of a blocking call, finishes it, raises its error, frees it and returns the
 * code for the program. */
int zreq_complete(zreq *r, MPI_Status *status);
/* Requests cancellation; after completion the status tells whether the operation was cancelled.
 * Raises an error and returns its code if the request cannot be cancelled. */
int zreq_cancel(zreq *r);
/* Cancels the request, waits until it has completed, possibly because its message has arrived after
 * all, and frees it. No error is raised. */
void zreq_withdraw(zreq *r);
/* Releases a request that the program no longer holds: zreq_reap finishes and frees it once it has
 * completed. */
void zreq_release(zreq *r);
void zreq_reap(void);            /* finishes and frees released requests that have completed */
void zreq_finish_released(void); /* waits until all released requests have completed */
/* Returns the number of released buffered sends that have not completed, and sets *bytes to their
 * total size. */
int64_t zreq_bsends(int64_t *bytes);
void zreq_stop(void); /* frees the pool and the placeholders */
/* Drops the type, the packed copy and the communicator's reference, and returns the object with its
 * handle to the pool. */
void zreq_free(zreq *r);

#pragma GCC visibility pop
#endif
