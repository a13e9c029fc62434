/* MPI_Waitall and MPI_Testall. */
#include "request/completion.h"

/* The state of a call of MPI_Waitall that waits. */
typedef struct all {
  zbatch b; /* the requests of the call */
  /* the program's array of statuses, or MPI_STATUSES_IGNORE */
  MPI_Status *statuses;
  char *done; /* [b.n] 1 once the request has been concluded */
  /* left is the number of requests that have not been concluded; failed is 1 if one has failed */
  int left, failed;
  zunraised unraised; /* the error that the call raises */
} all;

static void note_done(all *a, int i, int rc) {
  a->done[i] = 1;
  a->left--;
  zbatch_set_error(a->statuses, i, rc);
  if (rc) a->failed = 1;
}

/* Waits for one request of *a after the other, which suffices if the engine completes all of them
 * without being polled for each. */
static void each_over(all *a) {
  for (int i = 0; i < a->b.n; i++) {
    zreq *r = a->b.ours[i];
    zdone_wait(r);
    note_done(a, i, zdone_conclude(r, &a->b.requests[i], zbatch_status(a->statuses, i), &a->unraised));
  }
}

/* Concludes those of the requests of the MPI_Waitall *arg that have completed. Returns whether all
 * requests have been concluded. */
static int all_over(void *arg) {
  all *a = arg;
  for (int i = 0; i < a->b.n; i++) {
    int flag = 0, rc = MPI_SUCCESS;
    MPI_Status *status = zbatch_status(a->statuses, i);
    zreq *r = a->b.ours[i];
    if (a->done[i]) continue;
    if (!r) {
      rc = zdone_test_native(&a->b.requests[i], &flag, status);
    } else if (zdone_over(r)) {
      flag = 1;
      rc = zdone_conclude(r, &a->b.requests[i], status, &a->unraised);
    }
    if (flag || rc) note_done(a, i, rc);
  }
  return !a->left;
}

int z_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
  if (zbatch_untouched(n, requests)) return z_wait_natives(n, requests, statuses);
  all a = {.statuses = statuses, .left = n};
  if (zbatch_open(&a.b, n, requests)) return zbatch_no_memory("MPI_Waitall");
  if (!(a.done = calloc(n, 1))) {
    zbatch_close(&a.b);
    return zbatch_no_memory("MPI_Waitall");
  }
  if (a.b.looked_at) {
    if (!all_over(&a)) z_wait(all_over, &a);
  } else {
    each_over(&a);
  }
  free(a.done);
  zbatch_close(&a.b);
  return a.failed ? zbatch_failed(&a.unraised, "MPI_Waitall") : MPI_SUCCESS;
}

static int all_requests_over(const zbatch *b) {
  for (int i = 0; i < b->n; i++)
    if (b->ours[i] && !zdone_over(b->ours[i])) return 0;
  return 1;
}

/* Tests whether all requests have completed. It tests the shim's requests first, because a
 * completed one stays complete, and then the native requests, of which native MPI_Testall completes
 * all or none. */
int z_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
  if (zbatch_untouched(n, requests)) {
    int rc = real.Testall(n, requests, flag, statuses);
    if (!*flag) z_poll_if_busy();
    return rc;
  }
  zbatch b;
  int rc = MPI_SUCCESS, failed = 0;
  zunraised unraised = {NULL, MPI_SUCCESS};
  if (zbatch_open(&b, n, requests)) return zbatch_no_memory("MPI_Testall");
  *flag = all_requests_over(&b) || (z_poll(), all_requests_over(&b));
  if (*flag) {
    zbatch_take(&b);
    rc = real.Testall(b.natives, b.native, flag, b.status);
    if (!*flag && !rc) zbatch_put_back(&b);
  }
  if (*flag || rc) {
    for (int k = 0; k < b.natives; k++) zbatch_native_done(&b, k, zbatch_status(statuses, b.at[k]));
    for (int i = 0; i < n && *flag; i++) {
      if (!b.ours[i]) continue;
      int rc2 = zdone_conclude(b.ours[i], &requests[i], zbatch_status(statuses, i), &unraised);
      zbatch_set_error(statuses, i, rc2);
      if (rc2) failed = 1;
    }
  } else {
    z_poll();
  }
  zbatch_close(&b);
  if (rc) return rc; /* native MPI has raised the error */
  return failed ? zbatch_failed(&unraised, "MPI_Testall") : MPI_SUCCESS;
}
