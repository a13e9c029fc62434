/* Requests of the shim. */
#ifndef ZIPPER_REQUEST_H
#define ZIPPER_REQUEST_H
#include "core/comm.h"

#pragma GCC visibility push(hidden)

enum zreq_kind { ZREQ_SEND, ZREQ_RECV, ZREQ_COLL, ZREQ_PERSISTENT };

/* A request of the shim behind a native placeholder handle. */
typedef struct zreq {
  z_cell cell;        /* cell.owner = this */
  MPI_Request handle; /* the placeholder that the user holds; MPI_REQUEST_NULL if the user has none */
  zcomm *comm;        /* referenced */
  int32_t kind;
  int32_t finished; /* zreq_finish has run; status and class_ hold what it found */
  int32_t class_;   /* error class */
  int32_t raised;   /* native MPI has raised the error already */
  int32_t bsend;    /* a buffered send: counts against the attached buffer */
  /* What the program gave. */
  void *buf;
  int64_t count;
  MPI_Datatype type;
  int32_t type_held; /* 1: type is released with the request (type/use.h) */
  int32_t peer, tag;
  int64_t element; /* bytes of data in one element of type */
  void *packed;    /* packed copy of buf; NULL: none */
  /* The native operation that does the work: the shim has started it with a local peer, or the
   * engine has (imrecv, irecv). is_native stays set when it is over; status is its status then,
   * with the source translated. */
  MPI_Request native;
  int32_t is_native;
  MPI_Status status;
  const char *function; /* "MPI_Irecv", for errors */
  /* Moves an operation of several stages on, and returns 1 when it is over. NULL: it is over when
   * cell.done. Called by a thread of the program, one at a time. */
  int (*poll)(struct zreq *);
  /* Called once when it is over: copies results to the user and frees extra. Error class or
   * MPI_SUCCESS. NULL: nothing to do. */
  int (*finish)(struct zreq *);
  void *extra;
  struct zreq *inner;          /* persistent: the operation started last, NULL = inactive */
  int (*start)(struct zreq *); /* persistent: sets inner; the code to return, raised */
  /* persistent: called when the program frees it, to free what extra holds. NULL: nothing to do */
  void (*end)(struct zreq *);
  struct zreq *next; /* lists: free objects, released requests */
} zreq;

extern zmap z_requests; /* placeholder handle → zreq */
/* Native receive on a spanning communicator → zcomm (referenced): its status needs translation */
extern zmap z_receives;

/* The shim's request behind a handle, or NULL: a native one. */
static inline zreq *zreq_find(MPI_Request handle) {
  return zmap_count(&z_requests) ? (zreq *)zmap_get(&z_requests, z_key(handle)) : NULL;
}
/* Takes out the entry of a native receive; NULL: there is none. The caller gets its reference. */
static inline zcomm *z_receives_take(MPI_Request handle) {
  return zmap_count(&z_receives) ? (zcomm *)zmap_remove(&z_receives, z_key(handle)) : NULL;
}

/* A new request on c (it takes a reference) with a placeholder handle for the user. All other
 * fields are 0. */
zreq *zreq_new(zcomm *c, int kind, const char *function);
/* … without a handle, for blocking calls: then come z_wait_cell, zreq_finish and zreq_free. */
zreq *zreq_new_blocking(zcomm *c, int kind, const char *function);
int zreq_over(zreq *r); /* polls this request once */
/* Gives results and status of a request that is over to the user; its error class. A second call
 * returns the same */
int zreq_finish(zreq *r, MPI_Status *status);
int zreq_raise(zreq *r); /* raises the error that zreq_finish found, if any; the code to return */
/* Waits for a blocking call's request, finishes, raises, frees; the code to return */
int zreq_complete(zreq *r, MPI_Status *status);
/* Tries to cancel it. When it is over the status says whether that was so. MPI error code,
 * raised */
int zreq_cancel(zreq *r);
/* Cancels it, waits for its end, which may be that its message comes after all, and frees it. No
 * error is raised */
void zreq_withdraw(zreq *r);
void zreq_release(zreq *r);          /* the user has let it go: it is finished and freed when it is over */
void zreq_reap(void);                /* … that happens here */
void zreq_finish_released(void);     /* waits for all of them */
int64_t zreq_bsends(int64_t *bytes); /* released buffered sends that are not over; *bytes: their sizes */
void zreq_stop(void);                /* frees the placeholders */
void zreq_free(zreq *r);             /* gives back handle, type, packed copy, reference and object */

#pragma GCC visibility pop
#endif
