/* MPI_Request_get_status, its forms for arrays (MPI 4.1), and MPIX_Request_is_complete. They leave
 * every request as it is. In arrays, completed requests take precedence over pending receives
 * (zreq_stays), whose error is raised only if no request has completed. */
#include "request/completion.h"

static int is_pending(zreq *r) { return zdone_work(r) && zreq_stays(zdone_work(r)); }

/* Polls r once, and returns whether it is inactive or its operation has completed for good. */
static int is_complete(zreq *r) { return zdone_over(r) && !is_pending(r); }

/* Stores the status of r, for which is_complete has returned 1. */
static void put_status(zreq *r, MPI_Status *status) {
  if (zdone_work(r)) zreq_finish(zdone_work(r), status);
  else z_status_empty(status);
}

/* Translates the source in the status of a completed native request, which z_receives still has. */
static void translate(MPI_Request native, MPI_Status *status) {
  zcomm *c = zmap_count(&z_receives) ? zmap_get(&z_receives, z_key(native)) : NULL;
  if (c) z_status_translate(c, status);
}

/* Does what MPI_Request_get_status does, but does not serve the links. */
static int get_status(MPI_Request request, int *flag, MPI_Status *status) {
  zreq *r = zreq_find(request);
  if (!r) {
    int rc = real.Request_get_status(request, flag, status);
    if (*flag) translate(request, status);
    return rc;
  }
  *flag = is_complete(r);
  if (*flag) put_status(r, status);
  return !*flag && is_pending(r) ? zreq_tell(zdone_work(r), NULL) : MPI_SUCCESS;
}

int z_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
  int rc = get_status(request, flag, status);
  if (rc || *flag) return rc;
  if (!zreq_find(request)) return z_poll_if_busy(), MPI_SUCCESS;
  z_poll();
  return get_status(request, flag, status);
}

#ifdef Z_HAVE_X_Request_is_complete
/* Returns whether a request is complete. MPICH's function makes no progress, because a program that
 * calls it makes progress by MPIX_Stream_progress, which does not serve the links. So this one
 * does. */
int z_X_Request_is_complete(MPI_Request request) {
  zreq *r = zreq_find(request);
  if (r) return is_complete(r) || (z_poll(), is_complete(r));
  z_poll_if_busy();
  return real.X_Request_is_complete(request);
}
#endif

#ifdef Z_HAVE_Request_get_status_any

static int all_complete(int n, Z_READ_REQUEST requests[], int *flag) {
  int rc = MPI_SUCCESS;
  *flag = 1;
  for (int i = 0; i < n && *flag && !rc; i++) rc = get_status(requests[i], flag, MPI_STATUS_IGNORE);
  return rc;
}

int z_Request_get_status_all(int n, Z_READ_REQUEST requests[], int *flag, MPI_Status statuses[]) {
  int rc;
  if (zbatch_untouched(n, requests)) {
    rc = real.Request_get_status_all(n, requests, flag, statuses);
    if (!*flag) z_poll_if_busy();
    return rc;
  }
  rc = all_complete(n, requests, flag);
  if (!rc && !*flag) z_poll(), rc = all_complete(n, requests, flag);
  for (int i = 0; i < n && *flag && !rc && statuses != MPI_STATUSES_IGNORE; i++)
    rc = get_status(requests[i], flag, &statuses[i]);
  return rc;
}

/* The state of a call of MPI_Request_get_status_any or _some. */
typedef struct look {
  zbatch b; /* the requests of the call */
  /* the most requests to report: 1 for MPI_Request_get_status_any, otherwise n */
  int most;
  int count;            /* the number of completed requests that have been found */
  int rc;               /* the code of the native function, or MPI_SUCCESS */
  int *indices;         /* [count] the indices of these requests */
  MPI_Status *statuses; /* [count] their statuses, or MPI_STATUSES_IGNORE */
} look;

static MPI_Status *next_status(look *l) { return zbatch_status(l->statuses, l->count); }

static void look_at_ours(look *l) {
  for (int i = 0; i < l->b.n && l->count < l->most; i++) {
    zreq *r = l->b.ours[i];
    if (!r || !zdone_active(r) || !is_complete(r)) continue;
    put_status(r, next_status(l));
    l->indices[l->count++] = i;
  }
}

static void found_native(look *l, int k, MPI_Status *status) {
  translate(l->b.native[k], status);
  z_status_copy(next_status(l), status);
  l->indices[l->count++] = l->b.at[k];
}

/* Reports native requests that have completed, and returns whether no native request is active,
 * which native MPI alone can tell. */
static int look_at_natives(look *l) {
  zbatch *b = &l->b;
  int n = 0, flag = 0;
  if (l->most == 1) {
    l->rc = real.Request_get_status_any(b->natives, b->native, b->which, &flag, b->status_of);
    if (flag && b->which[0] == MPI_UNDEFINED) return 1;
    n = flag;
  } else {
    l->rc = real.Request_get_status_some(b->natives, b->native, &n, b->which, b->status_of);
  }
  for (int j = 0; j < n; j++) found_native(l, b->which[j], &b->status_of[j]);
  return n == MPI_UNDEFINED;
}

/* Looks at the requests once. Returns 1 if at least one has completed, an error occurred, or no
 * request is active, otherwise 0. */
static int look_once(look *l) {
  int nothing_native = 1;
  look_at_ours(l);
  if (l->b.natives && l->count < l->most) nothing_native = look_at_natives(l);
  return l->count || l->rc || (nothing_native && !l->b.active);
}

/* Raises the error of the first pending receive, whose index is stored in indices[0], and returns
 * its code, or MPI_SUCCESS if no receive is pending. */
static int tell_pending(look *l) {
  for (int i = 0; i < l->b.n; i++) {
    zreq *r = l->b.ours[i];
    if (!r || !zdone_over(r) || !is_pending(r)) continue;
    l->indices[0] = i;
    return zreq_tell(zdone_work(r), NULL);
  }
  return MPI_SUCCESS;
}

/* Looks at the requests, and once more after serving the links if none has completed. *found with
 * no completed request means that no request is active. */
static int look_at(look *l, int n, Z_READ_REQUEST requests[], const char *function, int *found) {
  if (zbatch_open(&l->b, n, (MPI_Request *)requests)) return zbatch_no_memory(function);
  *found = look_once(l) || (z_poll(), look_once(l));
  int rc = *found ? l->rc : tell_pending(l);
  zbatch_close(&l->b);
  return rc;
}

int z_Request_get_status_any(int n, Z_READ_REQUEST requests[], int *index, int *flag, MPI_Status *status) {
  if (zbatch_untouched(n, requests)) {
    int rc = real.Request_get_status_any(n, requests, index, flag, status);
    if (!*flag) z_poll_if_busy();
    return rc;
  }
  *index = MPI_UNDEFINED, *flag = 0;
  look l = {.most = 1, .indices = index, .statuses = status};
  int rc = look_at(&l, n, requests, "MPI_Request_get_status_any", flag);
  if (!rc && *flag && !l.count) z_status_empty(status);
  return rc;
}

int z_Request_get_status_some(int n, Z_READ_REQUEST requests[], int *count, int indices[], MPI_Status statuses[]) {
  if (zbatch_untouched(n, requests)) {
    int rc = real.Request_get_status_some(n, requests, count, indices, statuses);
    if (!*count) z_poll_if_busy();
    return rc;
  }
  look l = {.most = n > 1 ? n : 2, .indices = indices, .statuses = statuses};
  int found = 0, rc = look_at(&l, n, requests, "MPI_Request_get_status_some", &found);
  *count = found && !l.count && !rc ? MPI_UNDEFINED : l.count;
  return rc;
}
#endif
