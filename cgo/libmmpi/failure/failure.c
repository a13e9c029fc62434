/* The failed processes that a process knows, revocation, and agreement. A process fails with
 * its whole cluster, so on a communicator inside this cluster no process has failed, and native
 * collectives agree. */
#include "failure/failure.h"

/* The attribute of a communicator inside this cluster that has been revoked. */
static int revoked_keyval = MPI_KEYVAL_INVALID;

int zfailure_check(MPI_Comm comm, const zcomm *c, const char *function) {
  const char *why = !z_layout.on_loss ? "this job ends when a process fails; a job that zipper run starts with "
                                        "--on-loss continue has this function"
                    : c && c->link    ? "not on a communicator with processes of other jobs"
                                      : NULL;
  return why ? z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function, "%s", why) : MPI_SUCCESS;
}

/* ---- revocation ---- */

int zfailure_revoke(MPI_Comm comm, const char *function) {
  zcomm *c = zcomm_find(comm);
  int size, rc = zfailure_check(comm, c, function);
  if (rc) return rc;
  if (c) {
    int failed = Z_ENGINE(ze_revoke(c->id));
    return failed ? z_raise_engine(c, failed, function) : MPI_SUCCESS;
  }
  if ((rc = real.Comm_size(comm, &size))) return rc;
  if (size > 1)
    return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                      "all processes of the communicator are in one cluster, and are lost together");
  if (revoked_keyval == MPI_KEYVAL_INVALID &&
      (rc = real.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &revoked_keyval, NULL)))
    return rc;
  return real.Comm_set_attr(comm, revoked_keyval, NULL);
}

int zfailure_is_revoked(MPI_Comm comm, int *flag, const char *function) {
  zcomm *c = zcomm_find(comm);
  void *value;
  int rc = zfailure_check(comm, c, function);
  *flag = 0;
  if (rc) return rc;
  if (c) *flag = Z_ENGINE(ze_revoked(c->id));
  else if (revoked_keyval != MPI_KEYVAL_INVALID) rc = real.Comm_get_attr(comm, revoked_keyval, &value, flag);
  return rc;
}

/* ---- the failed processes that this process knows ---- */

/* Makes the group of the first n failed processes of c, or of all of them if n is negative. */
static int group(zcomm *c, int n, MPI_Group *out, const char *function) {
  int32_t known = 0, *ranks = malloc((size_t)c->size * sizeof *ranks);
  int failed = ranks ? Z_ENGINE(ze_failed(c->id, ranks, c->size, &known)) : Z_OK;
  if (failed) {
    free(ranks);
    return z_raise_engine(c, failed, function);
  }
  if (n < 0 || n > known) n = known;
  for (int i = 0; i < n && ranks; i++) ranks[i] = c->world[ranks[i]];
  int rc = ranks ? zgroup_new(ranks, n, out) : MPI_ERR_NO_MEM;
  free(ranks);
  return rc ? z_raise(c, rc, function, "no group can be made") : MPI_SUCCESS;
}

int zfailure_get_failed(MPI_Comm comm, MPI_Group *out, const char *function) {
  zcomm *c = zcomm_find(comm);
  int rc = zfailure_check(comm, c, function);
  *out = MPI_GROUP_EMPTY;
  return rc || !c ? rc : group(c, -1, out, function);
}

static int acknowledge(zcomm *c, int n, int32_t *acked, const char *function) {
  int failed = Z_ENGINE(ze_ack_failed(c->id, n, acked));
  return failed ? z_raise_engine(c, failed, function) : MPI_SUCCESS;
}

int zfailure_ack_failed(MPI_Comm comm, int n, int *acked, const char *function) {
  zcomm *c = zcomm_find(comm);
  int rc = zfailure_check(comm, c, function);
  int32_t now = 0;
  if (!rc && n < 0) rc = z_raise_on(comm, MPI_ERR_ARG, function, "the number of processes is negative: %d", n);
  if (!rc && c) rc = acknowledge(c, n, &now, function);
  if (!rc) *acked = now;
  return rc;
}

int zfailure_ack(MPI_Comm comm, const char *function) {
  zcomm *c = zcomm_find(comm);
  int rc = zfailure_check(comm, c, function);
  int32_t now;
  return rc || !c ? rc : acknowledge(c, c->size, &now, function);
}

int zfailure_get_acked(MPI_Comm comm, MPI_Group *out, const char *function) {
  zcomm *c = zcomm_find(comm);
  int rc = zfailure_check(comm, c, function);
  int32_t now = 0;
  *out = MPI_GROUP_EMPTY;
  if (rc || !c || (rc = acknowledge(c, 0, &now, function))) return rc;
  return group(c, now, out, function);
}

/* ---- agreement ---- */

/* Stores the value that the processes have agreed on. It serves as r->finish. */
static int agreed(zreq *r) {
  if (!r->cell.error || r->cell.error == Z_ERR_PROC_FAILED) *(int *)r->buf = r->cell.tag;
  return MPI_SUCCESS;
}

int zfailure_agree(MPI_Comm comm, int *flag, MPI_Request *request, const char *function) {
  zcomm *c = zcomm_find(comm);
  MPI_Request native;
  int rc = zfailure_check(comm, c, function);
  if (rc) return rc;
  if (!c) {
    rc = real.Iallreduce(MPI_IN_PLACE, flag, 1, MPI_INT, MPI_BAND, comm, request ? request : &native);
    return rc || request ? rc : z_wait_native(&native, MPI_STATUS_IGNORE);
  }
  zreq *r = request ? zreq_new(c, ZREQ_COLL, function) : zreq_new_blocking(c, ZREQ_COLL, function);
  r->buf = flag;
  r->finish = agreed;
  int failed = Z_ENGINE(ze_agree(c->id, *flag, &r->cell));
  if (failed) {
    zreq_free(r);
    return z_raise_engine(c, failed, function);
  }
  if (!request) return zreq_complete(r, MPI_STATUS_IGNORE);
  *request = r->handle;
  return MPI_SUCCESS;
}
