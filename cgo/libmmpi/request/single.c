/* One request: MPI_Wait, MPI_Test, MPI_Request_free, MPI_Cancel, MPI_Start. */
#include "request/completion.h"

static int over(void *r) { return zdone_over(r); }

void zdone_wait(zreq *r) {
  if (!zdone_over(r)) z_wait(over, r);
}

int zdone_conclude(zreq *r, MPI_Request *handle, MPI_Status *status, zunraised *unraised) {
  zreq *w = zdone_work(r);
  if (!w) { /* an inactive persistent request */
    z_status_empty(status);
    return MPI_SUCCESS;
  }
  if (zreq_stays(w)) return zreq_tell(w, unraised);
  int rc = zreq_finish(w, status);
  if (rc && !unraised) rc = zreq_raise(w);
  else if (rc && !w->raised) zunraised_note(unraised, r, rc);
  if (r->kind == ZREQ_PERSISTENT) {
    r->inner = NULL;
    zreq_free(w);
  } else {
    *handle = MPI_REQUEST_NULL;
    zreq_free(r);
  }
  return rc;
}

void zdone_translate(zcomm *c, MPI_Status *status) {
  if (!c) return;
  z_note_taken(c->native, MPI_ANY_SOURCE, status);
  z_status_translate(c, status);
  zcomm_release(c);
}

/* Returns the address where native MPI is to store a status: that of the program or, if the program
 * passes MPI_STATUS_IGNORE and traffic is recorded, `own`, which then tells the source of the
 * message. */
static MPI_Status *status_for(MPI_Status *status, MPI_Status *own) {
  return z_layout.recording && status == MPI_STATUS_IGNORE ? own : status;
}

int zdone_test_native(MPI_Request *request, int *flag, MPI_Status *status) {
  MPI_Status own;
  MPI_Request was = *request;
  status = status_for(status, &own);
  zcomm *c = z_threads ? z_receives_take(was) : NULL;
  *flag = 0;
  int rc = real.Test(request, flag, status);
  if (*flag || rc) zdone_translate(z_threads ? c : z_receives_take(was), status);
  else if (c) zmap_put(&z_receives, z_key(was), c);
  return rc;
}

int z_Wait(MPI_Request *request, MPI_Status *status) {
  zreq *r = zreq_find(*request);
  if (r) {
    zdone_wait(r);
    return zdone_conclude(r, request, status, NULL);
  }
  zcomm *c = z_receives_take(*request); /* before the wait, for the reason given at zdone_test_native */
  MPI_Status own;
  status = status_for(status, &own);
  int rc = z_wait_native(request, status);
  zdone_translate(c, status);
  return rc;
}

int z_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  zreq *r = zreq_find(*request);
  if (r) {
    *flag = zdone_over(r) || (z_poll(), zdone_over(r));
    return *flag ? zdone_conclude(r, request, status, NULL) : MPI_SUCCESS;
  }
  int rc = zdone_test_native(request, flag, status);
  if (!*flag) z_poll_if_busy();
  return rc;
}

int z_Request_free(MPI_Request *request) {
  zreq *r = zreq_find(*request);
  if (!r) {
    zcomm *c = z_receives_take(*request); /* before the call, for the reason given at zdone_test_native */
    int rc = real.Request_free(request);
    if (c) zcomm_release(c);
    return rc;
  }
  *request = MPI_REQUEST_NULL;
  if (r->kind == ZREQ_PERSISTENT) {
    if (r->inner) {
      /* The inner request may need the type to unpack */
      if (r->type_held) r->inner->type_held = 1, r->type_held = 0, r->inner->type = r->type;
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
  zreq *w = zdone_work(r);
  return w ? zreq_cancel(w) : MPI_SUCCESS;
}

int z_Start(MPI_Request *request) {
  zreq *r = zreq_find(*request);
  if (!r) return real.Start(request);
  if (r->kind != ZREQ_PERSISTENT || r->inner)
    return z_raise(r->comm, MPI_ERR_REQUEST, "MPI_Start", "the request is not an inactive persistent request");
  if (z_layout.on_loss && Z_ENGINE(ze_revoked(r->comm->id))) return z_raise_engine(r->comm, Z_ERR_REVOKED, "MPI_Start");
  return r->start(r);
}

int z_Startall(int n, MPI_Request requests[]) {
  for (int i = 0; i < n; i++) {
    int rc = z_Start(&requests[i]);
    if (rc) return rc;
  }
  return MPI_SUCCESS;
}
