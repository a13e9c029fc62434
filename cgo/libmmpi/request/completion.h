/* Functions for the MPI calls that complete requests, such as MPI_Wait and MPI_Testsome: for one
 * request, and for an array of requests. */
#ifndef ZIPPER_COMPLETION_H
#define ZIPPER_COMPLETION_H
#include "core/error.h"
#include "core/status.h"
#include "request/record.h"
#include "request/request.h"
#include "request/wait.h"

#pragma GCC visibility push(hidden)

/* ---- one of the shim's requests (single.c) ---- */

/* Returns whether a request has an operation in progress or completed. Only a persistent request
 * that has not been started can be inactive. */
static inline int zdone_active(const zreq *r) { return r->kind != ZREQ_PERSISTENT || r->inner; }
/* Returns the request whose operation is in progress: the request that MPI_Start made last if r is
 * persistent, otherwise r. */
static inline zreq *zdone_work(zreq *r) { return r->kind == ZREQ_PERSISTENT ? r->inner : r; }
/* Polls r once, and returns whether it has completed or is inactive. */
static inline int zdone_over(zreq *r) { return !zdone_active(r) || zreq_over(zdone_work(r)); }
/* waits until the operation of r has completed; returns at once if r is inactive */
void zdone_wait(zreq *r);

/* Concludes a completed request: stores its status in *status, and frees the request and sets
 * *handle to MPI_REQUEST_NULL unless it is persistent. If unraised is NULL an error is raised and
 * its code returned. Otherwise its class is returned, and *unraised is set to the first error that
 * has not been raised. A pending receive (zreq_stays) is not concluded: the request and its status
 * stay as they are. */
int zdone_conclude(zreq *r, MPI_Request *handle, MPI_Status *status, zunraised *unraised);

/* ---- one native request, whose status may need translation ---- */

/* Replaces the source in a status, a native rank, by the rank with which the program knows it in c,
 * and drops the caller's reference to c. A NULL c leaves the status as it is. */
void zdone_translate(zcomm *c, MPI_Status *status);

/* Tests a native request as MPI_Test does, and translates the source in *status if the request is a
 * receive on a spanning communicator. Once *flag is set the request's entry in z_receives is gone.
 * When native MPI has completed a request, another thread may get the same handle for a receive of
 * its own. So with MPI_THREAD_MULTIPLE the entry is removed before the test, and put back if the
 * request has not completed. */
int zdone_test_native(MPI_Request *request, int *flag, MPI_Status *status);

/* ---- arrays (batch.c) ---- */

/* An array of the program's requests, split into the shim's requests and a compact array of the
 * native ones. */
typedef struct zbatch {
  /* the number of all requests, of the native ones, and of the shim's active ones */
  int n, natives, active;
  /* the number of requests that advance only when they are polled: the native ones, and the shim's
   * active ones with a function `poll` */
  int looked_at;
  /* [n] the program's array of handles */
  MPI_Request *requests;
  /* [n] the shim's request behind each handle, or NULL for a native one */
  zreq **ours;
  MPI_Request *native; /* [natives] the native requests */
  /* [natives] the statuses of the native requests */
  MPI_Status *status;
  /* [natives] The communicator whose entry zbatch_take has removed from z_receives for each native
   * request, for the translation of its status. NULL: no entry was removed. */
  zcomm **from;
  /* [natives] the index in `requests` of each native request */
  int *at;
  /* [natives] the indices in `native` that MPI_Testsome has returned */
  int *which;
  MPI_Status *status_of; /* [natives] the statuses that MPI_Testsome has returned, in the order of `which` */
  void *memory;          /* the allocation that holds the arrays, or NULL */
} zbatch;

/* Splits the program's array of n requests into the native ones and the shim's, and stores both in
 * the batch b. Returns MPI_SUCCESS, or MPI_ERR_NO_MEM without raising it; zbatch_close must not be
 * called then. */
int zbatch_open(zbatch *b, int n, MPI_Request requests[]);
void zbatch_close(zbatch *b); /* frees the memory of a batch that zbatch_open has made */

/* Remove the entries of a batch's native receives from z_receives before native MPI tests them, and
 * put back those of the requests that have not completed, for the reason given at
 * zdone_test_native. They do so with MPI_THREAD_MULTIPLE only. */
void zbatch_take(zbatch *b);
void zbatch_put_back(zbatch *b);

/* Records that native request k of the batch has completed: stores its handle in the program's
 * array, copies its translated status to *to, and removes its entry from z_receives. */
void zbatch_native_done(zbatch *b, int k, MPI_Status *to);

/* Returns whether native MPI can complete an array of n requests as it is: the array holds none of
 * the shim's requests, and no native receive whose status needs translation. */
int zbatch_untouched(int n, const MPI_Request requests[]);

/* raises MPI_ERR_NO_MEM on MPI_COMM_WORLD, and returns its code */
int zbatch_no_memory(const char *function);

/* Returns the code of a call for several requests after a failure, MPI_ERR_IN_STATUS. The error
 * handler of the failed request's communicator gets the code of that request, as MPI demands (MPI
 * 4.1, 9.3), and the reference of *unraised is dropped. If *unraised has no request the errors have
 * been raised already. */
int zbatch_failed(const zunraised *unraised, const char *function);

/* Returns the address of status i of the program's array, or MPI_STATUS_IGNORE if there is no
 * array. */
static inline MPI_Status *zbatch_status(MPI_Status statuses[], int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* Sets MPI_ERROR of status i of the program's array to rc, if there is an array. */
static inline void zbatch_set_error(MPI_Status statuses[], int i, int rc) {
  if (statuses != MPI_STATUSES_IGNORE) statuses[i].MPI_ERROR = rc;
}

#pragma GCC visibility pop
#endif
