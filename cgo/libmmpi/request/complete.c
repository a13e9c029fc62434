/* Wait and Test × one, any, all, some; Request_free, Request_get_status, Cancel. Arrays may mix the shim's requests and native ones:
 * such an array never goes whole to native MPI. */
#include "core/error.h"
#include "core/status.h"
#include "request/request.h"
#include "request/wait.h"
#include <string.h>

/* ---- one of the shim's requests ---- */

static int is_active(const zreq *r) { return r->kind != ZREQ_PERSISTENT || r->inner; }
static zreq *work(zreq *r) { return r->kind == ZREQ_PERSISTENT ? r->inner : r; }
static int request_over(zreq *r) { return !is_active(r) || zreq_over(work(r)); }
static int over(void *r) { return request_over(r); }

/* It is over: status and handle to the user. Without blame an error is raised and its code returned; else its class, and *blame is the
 * communicator, referenced, of the first request whose error nobody has raised yet. */
static int conclude(zreq *r, MPI_Request *handle, MPI_Status *status, zcomm **blame) {
  zreq *w = work(r);
  if (!w) { /* an inactive persistent request */
    z_status_empty(status);
    return MPI_SUCCESS;
  }
  int rc = zreq_finish(w, status);
  if (rc && !blame) rc = zreq_raise(w);
  else if (rc && !*blame && !w->raised) *blame = zcomm_retain(r->comm);
  if (r->kind == ZREQ_PERSISTENT) {
    r->inner = NULL;
    zreq_free(w);
  } else {
    *handle = MPI_REQUEST_NULL;
    zreq_free(r);
  }
  return rc;
}

/* ---- one native request: its status may need translation ---- */

static void translate(zcomm *c, MPI_Status *status) {
  if (!c) return;
  z_status_translate(c, status);
  zcomm_release(c);
}

/* Tests one native request. Once *flag is set its entry is gone. As soon as native MPI is through with a request another thread may be given its handle
 * for a receive of its own: so with threads the entry is taken out first, and put back if the request is not over. */
static int test_native(MPI_Request *request, int *flag, MPI_Status *status) {
  MPI_Request was = *request;
  zcomm *c = z_threads ? z_receives_take(was) : NULL;
  *flag = 0;
  int rc = real.Test(request, flag, status);
  if (*flag || rc) translate(z_threads ? c : z_receives_take(was), status);
  else if (c) zmap_put(&z_receives, z_key(was), c);
  return rc;
}

int z_Wait(MPI_Request *request, MPI_Status *status) {
  zreq *r = zreq_find(*request);
  if (r) {
    if (!request_over(r)) z_wait(over, r);
    return conclude(r, request, status, NULL);
  }
  zcomm *c = z_receives_take(*request); /* first: see test_native */
  int rc = z_wait_native(request, status);
  translate(c, status);
  return rc;
}

int z_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  zreq *r = zreq_find(*request);
  if (r) {
    *flag = request_over(r) || (z_poll(), request_over(r));
    return *flag ? conclude(r, request, status, NULL) : MPI_SUCCESS;
  }
  int rc = test_native(request, flag, status);
  if (!*flag) z_poll_if_busy();
  return rc;
}

/* ---- arrays ---- */

/* An array seen as the shim's requests and a compact array of the native ones. Small arrays live on the stack. */
typedef struct batch {
  int n, natives, active; /* all; native ones; active ones of the shim's */
  int looked_at;          /* so many move on only when they are looked at */
  MPI_Request *requests;
  zreq **ours;            /* [n] NULL: native */
  MPI_Request *native;    /* [natives] */
  MPI_Status *status;     /* [natives] */
  zcomm **from;           /* [natives] for translation: their entries, if batch_take has taken them out; NULL: none */
  int *at;                /* [natives] index in requests */
  void *memory;
} batch;

static void batch_load(batch *b) {
  b->natives = b->active = b->looked_at = 0;
  for (int i = 0; i < b->n; i++) {
    zreq *r = b->ours[i] = zreq_find(b->requests[i]);
    b->looked_at += !r || (is_active(r) && work(r)->poll);
    if (r) {
      b->active += is_active(r);
      continue;
    }
    b->native[b->natives] = b->requests[i];
    b->at[b->natives++] = i;
  }
}

static int batch_open(batch *b, int n, MPI_Request requests[]) {
  size_t each = sizeof *b->status + sizeof *b->ours + sizeof *b->native + sizeof *b->from + sizeof *b->at;
  memset(b, 0, sizeof *b);
  if (!(b->memory = malloc(each * (n ? n : 1)))) return MPI_ERR_NO_MEM;
  b->n = n;
  b->requests = requests;
  b->ours = b->memory;
  b->from = (zcomm **)(b->ours + n);
  b->status = (MPI_Status *)(b->from + n);
  b->native = (MPI_Request *)(b->status + n);
  b->at = (int *)(b->native + n);
  memset(b->status, 0, n * sizeof *b->status);
  memset(b->from, 0, n * sizeof *b->from);
  batch_load(b);
  return MPI_SUCCESS;
}

/* With threads the entries of native receives are taken out before native MPI looks at them (test_native), and those of what is not over are put back. */
static void batch_take(batch *b) {
  for (int k = 0; k < b->natives && z_threads; k++) b->from[k] = z_receives_take(b->native[k]);
}

static void batch_put_back(batch *b) {
  for (int k = 0; k < b->natives && z_threads; k++)
    if (b->from[k]) zmap_put(&z_receives, z_key(b->native[k]), b->from[k]);
}

static void batch_close(batch *b) { free(b->memory); }

/* Whether an array has none of the shim's requests and no native receive that needs translation, so that native MPI can have it as it is. */
static int untouched(int n, const MPI_Request requests[]) {
  if (!zmap_count(&z_requests) && !zmap_count(&z_receives)) return 1;
  for (int i = 0; i < n; i++)
    if (zreq_find(requests[i]) || (zmap_count(&z_receives) && zmap_get(&z_receives, z_key(requests[i])))) return 0;
  return 1;
}

static int no_memory(const char *function) { return z_raise(NULL, MPI_ERR_NO_MEM, function, "no memory for the array of requests"); }

/* What a call for several requests returns after a failure. MPI_COMM_WORLD has nothing to do with it. */
static int in_status(zcomm *blame, const char *function) {
  if (!blame) return MPI_ERR_IN_STATUS; /* native MPI has raised it */
  int rc = z_raise(blame, MPI_ERR_IN_STATUS, function, "an operation failed: see the statuses");
  zcomm_release(blame);
  return rc;
}

static MPI_Status *nth(MPI_Status statuses[], int i) { return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]; }

static void set_error(MPI_Status statuses[], int i, int rc) {
  if (statuses != MPI_STATUSES_IGNORE) statuses[i].MPI_ERROR = rc;
}

/* ---- all ---- */

typedef struct all {
  batch b;
  MPI_Status *statuses;
  char *done;
  int left, failed;
  zcomm *blame;
} all;

static void settle(all *a, int i, int rc) {
  a->done[i] = 1;
  a->left--;
  set_error(a->statuses, i, rc);
  if (rc) a->failed = 1;
}

/* One after the other, which is all that requests need that the engine completes by itself. */
static void each_over(all *a) {
  for (int i = 0; i < a->b.n; i++) {
    zreq *r = a->b.ours[i];
    if (!request_over(r)) z_wait(over, r);
    settle(a, i, conclude(r, &a->b.requests[i], nth(a->statuses, i), &a->blame));
  }
}

/* Concludes whatever is over; true when all is. */
static int all_over(void *arg) {
  all *a = arg;
  for (int i = 0; i < a->b.n; i++) {
    int flag = 0, rc = MPI_SUCCESS;
    MPI_Status *status = nth(a->statuses, i);
    zreq *r = a->b.ours[i];
    if (a->done[i]) continue;
    if (!r) {
      rc = test_native(&a->b.requests[i], &flag, status);
    } else if (request_over(r)) {
      flag = 1;
      rc = conclude(r, &a->b.requests[i], status, &a->blame);
    }
    if (flag || rc) settle(a, i, rc);
  }
  return !a->left;
}

int z_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
  if (untouched(n, requests)) return z_wait_natives(n, requests, statuses);
  all a = {.statuses = statuses, .left = n};
  if (batch_open(&a.b, n, requests)) return no_memory("MPI_Waitall");
  if (!(a.done = calloc(n, 1))) {
    batch_close(&a.b);
    return no_memory("MPI_Waitall");
  }
  if (a.b.looked_at) {
    if (!all_over(&a)) z_wait(all_over, &a);
  } else {
    each_over(&a);
  }
  free(a.done);
  batch_close(&a.b);
  return a.failed ? in_status(a.blame, "MPI_Waitall") : MPI_SUCCESS;
}

/* Native ones that are over: handles, statuses and entries of all in the batch. */
static void native_done(batch *b, int k, MPI_Status *to) {
  int i = b->at[k];
  MPI_Request was = b->requests[i];
  b->requests[i] = b->native[k];
  translate(z_threads ? b->from[k] : z_receives_take(was), &b->status[k]);
  b->from[k] = NULL;
  if (to != MPI_STATUS_IGNORE) *to = b->status[k];
}

static int all_requests_over(const batch *b) {
  for (int i = 0; i < b->n; i++)
    if (b->ours[i] && !request_over(b->ours[i])) return 0;
  return 1;
}

/* The shim's first, whose being over lasts; then the native ones, all or none. */
int z_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
  if (untouched(n, requests)) {
    int rc = real.Testall(n, requests, flag, statuses);
    if (!*flag) z_poll_if_busy();
    return rc;
  }
  batch b;
  int rc = MPI_SUCCESS, failed = 0;
  zcomm *blame = NULL;
  if (batch_open(&b, n, requests)) return no_memory("MPI_Testall");
  *flag = all_requests_over(&b) || (z_poll(), all_requests_over(&b));
  if (*flag) {
    batch_take(&b);
    rc = real.Testall(b.natives, b.native, flag, b.status);
    if (!*flag && !rc) batch_put_back(&b);
  }
  if (*flag || rc) {
    for (int k = 0; k < b.natives; k++) native_done(&b, k, nth(statuses, b.at[k]));
    for (int i = 0; i < n && *flag; i++) {
      if (!b.ours[i]) continue;
      int rc2 = conclude(b.ours[i], &requests[i], nth(statuses, i), &blame);
      set_error(statuses, i, rc2);
      if (rc2) failed = 1;
    }
  } else {
    z_poll();
  }
  batch_close(&b);
  if (rc) return rc; /* raised natively */
  return failed ? in_status(blame, "MPI_Testall") : MPI_SUCCESS;
}

/* ---- any and some ---- */

typedef struct some {
  batch b;
  int most;             /* 1: any; else as many as are over */
  int count, rc, failed;
  zcomm *blame;
  int *indices;
  MPI_Status *statuses; /* [count], in the order of indices; for any: the one status, MPI_ERROR untouched */
} some;

static void take_native(some *s, int k) {
  native_done(&s->b, k, s->most == 1 ? MPI_STATUS_IGNORE : nth(s->statuses, s->count));
  if (s->most == 1) z_status_copy(s->statuses, &s->b.status[k]);
  s->indices[s->count++] = s->b.at[k];
}

/* Concludes what is over, at most s->most; true when there is something or nothing is active. */
static int some_over(void *arg) {
  some *s = arg;
  batch *b = &s->b;
  int nothing_native = 1;
  for (int i = 0; i < b->n && s->count < s->most; i++) {
    zreq *r = b->ours[i];
    if (!r || !is_active(r) || !request_over(r)) continue;
    MPI_Status *to = s->most == 1 ? s->statuses : nth(s->statuses, s->count);
    int rc = conclude(r, &b->requests[i], to, s->most == 1 ? NULL : &s->blame);
    if (s->most > 1) set_error(s->statuses, s->count, rc);
    if (rc) s->failed = 1, s->rc = rc;
    s->indices[s->count++] = i;
  }
  if (b->natives && s->count < s->most) {
    int rc, index = MPI_UNDEFINED, flag = 0, out = 0;
    if (s->most == 1) {
      rc = real.Testany(b->natives, b->native, &index, &flag, b->status);
      nothing_native = flag && index == MPI_UNDEFINED;
      if ((flag || rc) && index != MPI_UNDEFINED) {
        b->status[index] = b->status[0]; /* the one status belongs to that request */
        take_native(s, index);
      }
      if (rc) s->rc = rc, s->failed = 1;
    } else {
      int *which = malloc(b->natives * sizeof *which);
      MPI_Status *status = calloc(b->natives, sizeof *status); /* MPICH leaves MPI_ERROR as it was unless one has failed: no error */
      if (!which || !status) abort();
      rc = real.Testsome(b->natives, b->native, &out, which, status);
      nothing_native = out == MPI_UNDEFINED;
      for (int j = 0; j < out; j++) {
        b->status[which[j]] = status[j];
        take_native(s, which[j]);
      }
      if (rc) s->failed = 1;
      free(which), free(status);
    }
  }
  return s->count || s->rc || (nothing_native && !b->active);
}

/* 0 and nothing to conclude: no request is active. */
static int some_run(some *s, int n, MPI_Request requests[], int blocking, const char *function) {
  if (batch_open(&s->b, n, requests)) return no_memory(function);
  batch_take(&s->b);
  int found = some_over(s);
  if (!found && blocking) {
    z_wait(some_over, s);
    found = 1;
  } else if (!found) {
    z_poll();
    found = some_over(s);
  }
  batch_put_back(&s->b);
  batch_close(&s->b);
  return found;
}

static int any(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status, const char *function) {
  int at = MPI_UNDEFINED;
  some s = {.most = 1, .indices = &at, .statuses = status};
  int found = some_run(&s, n, requests, !flag, function);
  if (flag) *flag = found;
  *index = at;
  if (found && at == MPI_UNDEFINED && !s.rc) z_status_empty(status);
  return s.rc;
}

int z_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status) {
  if (z_may_block() && untouched(n, requests)) return real.Waitany(n, requests, index, status);
  return any(n, requests, index, NULL, status, "MPI_Waitany");
}

int z_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
  return any(n, requests, index, flag, status, "MPI_Testany");
}

static int several(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[], int blocking, const char *function) {
  some s = {.most = n > 1 ? n : 2, .indices = indices, .statuses = statuses};
  int found = some_run(&s, n, requests, blocking, function);
  *count = found && !s.count ? MPI_UNDEFINED : s.count;
  return s.failed ? in_status(s.blame, function) : MPI_SUCCESS;
}

int z_Waitsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]) {
  if (z_may_block() && untouched(n, requests)) return real.Waitsome(n, requests, count, indices, statuses);
  return several(n, requests, count, indices, statuses, 1, "MPI_Waitsome");
}

int z_Testsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]) {
  return several(n, requests, count, indices, statuses, 0, "MPI_Testsome");
}

/* ---- the rest ---- */

int z_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
  zreq *r = zreq_find(request);
  if (!r) {
    int rc = real.Request_get_status(request, flag, status);
    zcomm *c = *flag && zmap_count(&z_receives) ? zmap_get(&z_receives, z_key(request)) : NULL;
    if (c) z_status_translate(c, status);
    if (!*flag) z_poll_if_busy();
    return rc;
  }
  *flag = request_over(r) || (z_poll(), request_over(r));
  if (!*flag) return MPI_SUCCESS;
  if (!work(r)) z_status_empty(status);
  else zreq_finish(work(r), status);
  return MPI_SUCCESS;
}

int z_Request_free(MPI_Request *request) {
  zreq *r = zreq_find(*request);
  if (!r) {
    zcomm *c = z_receives_take(*request); /* first: see test_native */
    int rc = real.Request_free(request);
    if (c) zcomm_release(c);
    return rc;
  }
  *request = MPI_REQUEST_NULL;
  if (r->kind == ZREQ_PERSISTENT) {
    if (r->inner) {
      if (r->type_owned) r->inner->type_owned = 1, r->type_owned = 0, r->inner->type = r->type; /* it may need it to unpack */
      zreq_release(r->inner);
    }
    r->inner = NULL;
    if (r->end) r->end(r);
    free(r->extra);
    zreq_free(r);
  } else {
    zreq_release(r);
  }
  return MPI_SUCCESS;
}

int z_Cancel(MPI_Request *request) {
  zreq *r = zreq_find(*request);
  if (!r) return real.Cancel(request);
  zreq *w = work(r);
  return w ? zreq_cancel(w) : MPI_SUCCESS;
}

int z_Start(MPI_Request *request) {
  zreq *r = zreq_find(*request);
  if (!r) return real.Start(request);
  if (r->kind != ZREQ_PERSISTENT || r->inner) return z_raise(r->comm, MPI_ERR_REQUEST, "MPI_Start", "the request is not an inactive persistent request");
  return r->start(r);
}

int z_Startall(int n, MPI_Request requests[]) {
  for (int i = 0; i < n; i++) {
    int rc = z_Start(&requests[i]);
    if (rc) return rc;
  }
  return MPI_SUCCESS;
}
