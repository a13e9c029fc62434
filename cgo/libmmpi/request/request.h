/* Requests of the shim: objects for the operations that native MPI does not do alone. */
#ifndef ZIPPER_REQUEST_H
#define ZIPPER_REQUEST_H
#include "core/comm.h"
#include "device/device.h"

#pragma GCC visibility push(hidden)

/* The kind of a request: a send, a receive, a collective, or a persistent request of any of
 * these. */
enum zreq_kind { ZREQ_SEND, ZREQ_RECV, ZREQ_COLL, ZREQ_PERSISTENT };

/* A request of the shim. The program's handle of it is a native placeholder. */
typedef struct zreq {
  /* the state of the engine's operation; its owner is this zreq */
  z_cell cell;
  /* The native placeholder by which the program knows the request, or MPI_REQUEST_NULL for a
   * request without a handle. */
  MPI_Request handle;
  /* the communicator, of which the request holds a reference, or NULL */
  zcomm *comm;
  /* the kind of the request, enum zreq_kind */
  int32_t kind;
  int32_t finished; /* 1 once zreq_finish has run and set status and class_ */
  /* the MPI error class of the result, or MPI_SUCCESS */
  int32_t class_;
  /* 1 once the error of the operation has been raised */
  int32_t raised;
  /* The arguments of the program's call: the buffer, the number of elements and their datatype. For
   * a send `count` becomes the number of bytes. */
  void *buf;
  int64_t count;
  MPI_Datatype type;
  /* 1 if the request holds a use of the datatype, which is dropped with the request
   * (type/use.h). */
  int32_t type_held;
  /* the peer as the program numbers it, and the tag that it has passed */
  int32_t peer, tag;
  /* the size in bytes of the data in one element of the datatype */
  int64_t element;
  /* The packed copy of the data of buf, or NULL if there is none. */
  void *packed;
  /* 1 if buf is memory of a device, so that `packed` is freed by zstage_free. */
  int32_t staged;
  /* the copying of the data of a long send from a device, or NULL */
  zfeed *feed;
  /* The number of bytes of a long receive whose copies to the device have been queued, or -1
   * after a failure. */
  int64_t queued;
  /* The native request of the operation that does the work, if is_native is 1. The shim has started
   * it with a local peer, or the engine has (imrecv, irecv). is_native stays set after completion;
   * status is then the native status, with the source translated. */
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
  /* the data of `poll`, `finish`, `start` and `end` */
  void *extra;
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

/* the map from placeholder handle to zreq, for the requests with a handle */
extern zmap z_requests;
/* The map from a native receive on a spanning communicator to the communicator's zcomm
 * (referenced), by which the source in the receive's status is translated. */
extern zmap z_receives;

/* Returns the shim's request with this handle, or NULL if the handle is that of a native
 * request. */
static inline zreq *zreq_find(MPI_Request handle) {
  return zmap_count(&z_requests) ? (zreq *)zmap_get(&z_requests, z_key(handle)) : NULL;
}
/* Removes the entry of a native receive from z_receives and returns its communicator, whose
 * reference passes to the caller, or NULL if there is no entry. */
static inline zcomm *z_receives_take(MPI_Request handle) {
  return zmap_count(&z_receives) ? (zcomm *)zmap_remove(&z_receives, z_key(handle)) : NULL;
}

/* Allocates a request on c, of which it takes a reference, with a placeholder handle for the
 * program. All other fields are 0. */
zreq *zreq_new(zcomm *c, int kind, const char *function);
/* Allocates a request without a handle, for blocking calls. The caller then calls zreq_complete, or
 * z_wait_cell, zreq_finish and zreq_free. */
zreq *zreq_new_blocking(zcomm *c, int kind, const char *function);
/* Polls r once, and returns whether its operation has completed. A receive that is still pending
 * (zreq_stays) counts as completed. */
int zreq_over(zreq *r);
/* Returns whether r is a receive from any source whose sender may be in a lost cluster. The program
 * gets the error Z_ERR_PROC_FAILED_PENDING, but the receive stays posted and the request active. */
static inline int zreq_stays(const zreq *r) { return r->cell.error == Z_ERR_PROC_FAILED_PENDING && !r->finished; }
/* The error of a call for several requests: that of the first failed request whose error has not
 * been raised. comm is the request's communicator, referenced, or NULL if there is no such request,
 * and class_ the class of its error. */
typedef struct zunraised {
  zcomm *comm;
  int class_;
} zunraised;
/* Raises the error of a pending receive (zreq_stays) and returns its code or, if `unraised` is not
 * NULL, returns the class and sets *unraised as zdone_conclude does. */
int zreq_tell(zreq *r, zunraised *unraised);
/* Sets *unraised to the error class_ of the request r, unless it has another request's already. */
void zunraised_note(zunraised *unraised, const zreq *r, int class_);
/* Copies the results of a completed request to the program's buffer and its status to *status, and
 * returns its MPI error class without raising it. Further calls return the same. A pending receive
 * (zreq_stays) is cancelled, and its error is Z_ERR_PROC_FAILED. */
int zreq_finish(zreq *r, MPI_Status *status);
/* Raises the error of the operation of r, if zreq_finish has found one, and returns the code for
 * the program. */
int zreq_raise(zreq *r);
/* Waits for the request r of a blocking call, finishes it (zreq_finish), raises its error, frees r
 * and returns the code for the program. */
int zreq_complete(zreq *r, MPI_Status *status);
/* Requests that the operation of r is cancelled; after completion its status tells whether it was.
 * Returns MPI_SUCCESS, or the code of an error that has been raised, because the request is of a
 * kind that cannot be cancelled. */
int zreq_cancel(zreq *r);
/* Cancels the request r of a call that has failed, waits until r has completed, possibly because
 * its message has arrived after all, and frees r. No error is raised. */
void zreq_withdraw(zreq *r);
/* Adds a request that the program no longer holds to the list of released ones: zreq_reap finishes
 * and frees it once it has completed. */
void zreq_release(zreq *r);
/* finishes and frees those of the requests passed to zreq_release that have completed */
void zreq_reap(void);
/* waits until all requests passed to zreq_release have completed, and frees them */
void zreq_finish_released(void);
void zreq_stop(void); /* frees the unused request objects and their placeholders */
/* Frees r: drops its use of the datatype, its packed copy and its reference to the communicator,
 * and returns the object with its handle to the pool. */
void zreq_free(zreq *r);

#pragma GCC visibility pop
#endif
