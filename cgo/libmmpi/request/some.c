/* MPI_Waitany, MPI_Testany, MPI_Waitsome and MPI_Testsome. */
#include "request/completion.h"
#include <string.h>

/* The state of a call that concludes some requests of an array, such as MPI_Waitany or
 * MPI_Testsome. */
typedef struct some {
  zbatch b; /* the requests of the call */
  /* the most requests to conclude: 1 for MPI_Waitany and MPI_Testany, otherwise n */
  int most;
  int count;          /* the number of requests that have been concluded */
  int rc;             /* the code of the last error, or MPI_SUCCESS */
  int failed;         /* 1 if a request has failed */
  zunraised unraised; /* the error that MPI_Waitsome or MPI_Testsome raises */
  int *indices;       /* [count] the indices of the requests that have been concluded */
  /* [count] The statuses in the order of `indices`, or MPI_STATUSES_IGNORE. For MPI_Waitany and
   * MPI_Testany: the one status, whose MPI_ERROR stays unchanged. */
  MPI_Status *statuses;
} some;

static MPI_Status *next_status(some *s) { return s->most == 1 ? s->statuses : zbatch_status(s->statuses, s->count); }

/* Concludes those of the shim's requests that have completed, as long as fewer than s->most
 * requests have been concluded. */
static void conclude_ours(some *s) {
  zbatch *b = &s->b;
  for (int i = 0; i < b->n && s->count < s->most; i++) {
    zreq *r = b->ours[i];
    if (!r || !zdone_active(r) || !zdone_over(r)) continue;
    int rc = zdone_conclude(r, &b->requests[i], next_status(s), s->most == 1 ? NULL : &s->unraised);
    if (s->most > 1) zbatch_set_error(s->statuses, s->count, rc);
    if (rc) s->failed = 1, s->rc = rc;
    s->indices[s->count++] = i;
  }
}

static void conclude_native(some *s, int k) {
  zbatch_native_done(&s->b, k, s->most == 1 ? MPI_STATUS_IGNORE : next_status(s));
  if (s->most == 1) z_status_copy(s->statuses, &s->b.status[k]);
  s->indices[s->count++] = s->b.at[k];
}

/* Concludes one native request that has completed, by MPI_Testany, if there is one. Returns whether
 * no native request is active. */
static int any_native(some *s) {
  zbatch *b = &s->b;
  int index = MPI_UNDEFINED, flag = 0, rc = real.Testany(b->natives, b->native, &index, &flag, b->status);
  if ((flag || rc) && index != MPI_UNDEFINED) {
    b->status[index] = b->status[0]; /* the one status is that of this request */
    conclude_native(s, index);
  }
  if (rc) s->rc = rc, s->failed = 1;
  return flag && index == MPI_UNDEFINED;
}

/* Concludes all native requests that have completed, by MPI_Testsome. Returns whether no native
 * request is active. */
static int some_native(some *s) {
  zbatch *b = &s->b;
  int out = 0;
  /* MPICH leaves MPI_ERROR unset unless a request has failed: set it to no error */
  memset(b->status_of, 0, b->natives * sizeof *b->status_of);
  if (real.Testsome(b->natives, b->native, &out, b->which, b->status_of)) s->failed = 1;
  for (int j = 0; j < out; j++) {
    b->status[b->which[j]] = b->status_of[j];
    conclude_native(s, b->which[j]);
  }
  return out == MPI_UNDEFINED;
}

/* Concludes at most s->most of the requests that have completed. Returns 1 if at least one was
 * concluded, an error occurred, or no request is active, otherwise 0. */
static int some_over(void *arg) {
  some *s = arg;
  int nothing_native = 1;
  conclude_ours(s);
  if (s->b.natives && s->count < s->most) nothing_native = s->most == 1 ? any_native(s) : some_native(s);
  return s->count || s->rc || (nothing_native && !s->b.active);
}

/* Concludes requests, waiting for the first if blocking is 1. *found with nothing concluded means
 * that no request is active. Returns MPI_SUCCESS, or MPI_ERR_NO_MEM after raising it. */
static int some_run(some *s, int n, MPI_Request requests[], int blocking, const char *function, int *found) {
  if (zbatch_open(&s->b, n, requests)) return zbatch_no_memory(function);
  zbatch_take(&s->b);
  *found = some_over(s);
  if (!*found && blocking) {
    z_wait(some_over, s);
    *found = 1;
  } else if (!*found) {
    z_poll();
    *found = some_over(s);
  }
  zbatch_put_back(&s->b);
  zbatch_close(&s->b);
  return MPI_SUCCESS;
}

static int any(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status, const char *function) {
  int at = MPI_UNDEFINED, found = 0;
  some s = {.most = 1, .indices = &at, .statuses = status};
  int rc = some_run(&s, n, requests, !flag, function, &found);
  if (flag) *flag = found;
  *index = at;
  if (found && at == MPI_UNDEFINED && !s.rc) z_status_empty(status);
  return rc ? rc : s.rc;
}

int z_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status) {
  if (z_may_block() && zbatch_untouched(n, requests)) {
    int rc;
    Z_WAITS(rc = real.Waitany(n, requests, index, status));
    return rc;
  }
  return any(n, requests, index, NULL, status, "MPI_Waitany");
}

int z_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
  return any(n, requests, index, flag, status, "MPI_Testany");
}

static int several(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[], int blocking,
                   const char *function) {
  some s = {.most = n > 1 ? n : 2, .indices = indices, .statuses = statuses};
  int found = 0, rc = some_run(&s, n, requests, blocking, function, &found);
  *count = found && !s.count ? MPI_UNDEFINED : s.count;
  if (rc) return rc;
  return s.failed ? zbatch_failed(&s.unraised, function) : MPI_SUCCESS;
}

int z_Waitsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]) {
  if (z_may_block() && zbatch_untouched(n, requests)) {
    int rc;
    Z_WAITS(rc = real.Waitsome(n, requests, count, indices, statuses));
    return rc;
  }
  return several(n, requests, count, indices, statuses, 1, "MPI_Waitsome");
}

int z_Testsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]) {
  return several(n, requests, count, indices, statuses, 0, "MPI_Testsome");
}
