/* What the calls that complete requests have in common: one request, and arrays of them. */
#ifndef ZIPPER_COMPLETION_H
#define ZIPPER_COMPLETION_H
#include "core/error.h"
#include "core/status.h"
#include "request/record.h"
#include "request/request.h"
#include "request/wait.h"

#pragma GCC visibility push(hidden)

/* ---- one of the shim's requests (single.c) ---- */

static inline int zdone_active(const zreq *r) { return r->kind != ZREQ_PERSISTENT || r->inner; }
static inline zreq *zdone_work(zreq *r) { return r->kind == ZREQ_PERSISTENT ? r->inner : r; }
static inline int zdone_over(zreq *r) { return !zdone_active(r) || zreq_over(zdone_work(r)); }
void zdone_wait(zreq *r); /* until it is over */

/* Gives status and handle of a request that is over to the user. Where blame is NULL an error is
 * raised, and its code returned. Else its class is returned, and *blame becomes the communicator
 * (referenced) of the first request whose error has not been raised yet. */
int zdone_conclude(zreq *r, MPI_Request *handle, MPI_Status *status, zcomm **blame);

/* ---- one native request: its status may need translation ---- */

void zdone_translate(zcomm *c, MPI_Status *status); /* … and c's reference is given back. NULL: it needs none */

/* Tests one. Once *flag is set its entry is gone. When native MPI is through with a request another
 * thread may be given the same handle for a receive of its own. So with threads the entry is taken
 * out first, and put back if the request is not over. */
int zdone_test_native(MPI_Request *request, int *flag, MPI_Status *status);

/* ---- arrays (batch.c) ---- */

/* An array seen as the shim's requests and a compact array of the native ones. */
typedef struct zbatch {
  int n, natives, active; /* all; native ones; active ones of the shim's */
  int looked_at;          /* so many move on only when they are looked at */
  MPI_Request *requests;
  zreq **ours;           /* [n] NULL: native */
  MPI_Request *native;   /* [natives] */
  MPI_Status *status;    /* [natives] */
  zcomm **from;          /* [natives] for translation: their entries, if zbatch_take has taken them out; NULL: none */
  int *at;               /* [natives] index in requests */
  int *which;            /* [natives] and … */
  MPI_Status *status_of; /* [natives] … what MPI_Testsome says, in its order */
  void *memory;
} zbatch;

int zbatch_open(zbatch *b, int n, MPI_Request requests[]); /* MPI_ERR_NO_MEM, not raised: the batch is not open */
void zbatch_close(zbatch *b);

/* With threads: takes the entries of native receives out before native MPI looks at them, as
 * zdone_test_native does. Those of requests that are not over are put back. */
void zbatch_take(zbatch *b);
void zbatch_put_back(zbatch *b);

/* Native request k is over: handle, status (to *to, too) and entry. */
void zbatch_native_done(zbatch *b, int k, MPI_Status *to);

/* Whether native MPI can have an array as it is: it has none of the shim's requests, and no native
 * receive whose status needs translation. */
int zbatch_untouched(int n, const MPI_Request requests[]);

int zbatch_no_memory(const char *function); /* raises it */

/* What a call for several requests returns after a failure. Gives blame's reference back. The error
 * is not raised on MPI_COMM_WORLD, which has nothing to do with it. */
int zbatch_failed(zcomm *blame, const char *function);

static inline MPI_Status *zbatch_status(MPI_Status statuses[], int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static inline void zbatch_set_error(MPI_Status statuses[], int i, int rc) {
  if (statuses != MPI_STATUSES_IGNORE) statuses[i].MPI_ERROR = rc;
}

#pragma GCC visibility pop
#endif
