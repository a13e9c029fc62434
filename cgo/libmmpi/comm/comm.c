/* Communicators that span clusters: initialization, agreement, inquiry and release. */
#include "comm/comm.h"
#include "coll/smallstage.h"
#include "core/privcomm.h"
#include "p2p/buffer.h"
#include <string.h>

int zcomm_add(int32_t link, MPI_Comm native, uint64_t context, const int32_t *world, int size, zcomm **out) {
  zcomm *c = zcomm_make(native, context, world, size);
  if (!c) return MPI_ERR_NO_MEM;
  c->link = link;
  if (!(c->coll = zcollstate_make())) {
    zcomm_discard(c);
    return MPI_ERR_NO_MEM;
  }
  int failed = Z_ENGINE(ze_comm_add(link, c, context, size, c->rank, c->world, c->native_of, c->native_size, &c->id));
  if (failed) {
    zcomm_discard(c);
    return z_error_class(failed);
  }
  zmap_put(&z_comms, z_key(native), c);
  *out = c;
  return MPI_SUCCESS;
}

int zcomm_like(zcomm *made, const zcomm *c) {
  made->inter = c->inter, made->base = c->base, made->peers = c->peers;
  if (!c->topo) return MPI_SUCCESS;
  made->topo = c->topo->copy(c->topo);
  return made->topo ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int zcomm_add_like(MPI_Comm native, uint64_t context, const zcomm *c) {
  zcomm *made;
  int rc = zcomm_add(c->link, native, context, c->world, c->size, &made);
  if (!rc && (rc = zcomm_like(made, c))) zcomm_release(made);
  return rc;
}

int zcomm_add_all(MPI_Comm native, uint64_t context, zcomm **out) {
  int32_t *all = malloc((size_t)z_layout.size * sizeof *all);
  if (!all) return MPI_ERR_NO_MEM;
  for (int i = 0; i < z_layout.size; i++) all[i] = z_layout.order ? z_layout.order[i] : i;
  int rc = zcomm_add(0, native, context, all, z_layout.size, out);
  free(all);
  return rc;
}

zcomm *zcomm_everyone(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  z_lock(&lock);
  zcomm *c = zcomm_find_other(z_private);
  if (!c && zcomm_add_all(z_private, 0xFFFFFFFE00000000u, &c)) c = NULL;
  z_unlock(&lock);
  return c;
}

int zcomm_start(void) {
  int rc = zgroup_start();
  if (!rc) rc = zpset_start(getenv("ZIPPER_LAYOUT"));
  if (rc || z_layout.clusters == 1) return rc;
  rc = zcomm_add_all(MPI_COMM_WORLD, 0xFFFFFFFF00000000u, &z_whole);
  if (!rc) zsmall_world(z_whole);
  return rc;
}

void zcomm_stop(void) {
  zcomm *world = zmap_remove(&z_comms, z_key(MPI_COMM_WORLD)), *everyone = zmap_remove(&z_comms, z_key(z_private));
  z_whole = NULL;
  zpset_stop();
  zmeet_stop();
  /* The engine has ended by now, and the native communicators end with MPI */
  if (world) zcomm_discard(world);
  if (everyone) zcomm_discard(everyone);
}

/* ---- agreement ---- */

int zcomm_bcast(zcomm *c, void *data, int bytes, int root, const char *function) {
  zreq *r = zcoll_begin(c, 0, function);
  z_coll *a = &zcoll_of(r)->args;
  a->op = Z_BCAST, a->root = root, a->recv = data, a->send_bytes = bytes;
  return zcoll_run(r);
}

int zcomm_allgatherv(zcomm *c, const void *mine, const int64_t *bytes, void *all, const char *function) {
  zreq *r = zcoll_begin(c, 0, function);
  zcoll *j = zcoll_of(r);
  int64_t *displs = zcoll_grab(j, c->size * 8);
  for (int i = 1; i < c->size && displs; i++) displs[i] = displs[i - 1] + bytes[i - 1];
  z_coll *a = &j->args;
  a->op = Z_ALLGATHERV;
  a->send = mine, a->send_bytes = bytes[c->rank], a->recv = all, a->recv_counts = bytes, a->recv_displs = displs;
  return zcoll_run(r);
}

int zcomm_allgather(zcomm *c, const void *mine, int bytes, void *all, const char *function) {
  int64_t *counts = malloc((size_t)c->size * sizeof *counts);
  if (!counts) return z_raise(c, MPI_ERR_NO_MEM, function, "no memory");
  for (int i = 0; i < c->size; i++) counts[i] = bytes;
  int rc = zcomm_allgatherv(c, mine, counts, all, function);
  free(counts);
  return rc;
}

int zcomm_most(MPI_Comm comm, int mine, int *most, const char *function) {
  zcomm *c = zcomm_find(comm);
  MPI_Request request = MPI_REQUEST_NULL;
  if (!c) {
    int rc = real.Iallreduce(&mine, most, 1, MPI_INT, MPI_MAX, comm, &request);
    return rc ? rc : z_wait_native(&request, MPI_STATUS_IGNORE);
  }
  zreq *r = zcoll_begin(c, 0, function);
  zcoll_of(r)->args = (z_coll){.op = Z_ALLREDUCE,
                               .send = &mine,
                               .recv = most,
                               .count = 1,
                               .extent = sizeof mine,
                               .type = z_key(MPI_INT),
                               .mpi_op = z_key(MPI_MAX),
                               .commutative = 1};
  return zcoll_run(r);
}

int zcomm_agree(zcomm *c, int rc, MPI_Comm *made, const char *function) {
  int worst = 0, failed = zcomm_most(c->native, rc != MPI_SUCCESS, &worst, function);
  failed = zcomm_vote(c, failed, function); /* the new object may be one inside this cluster */
  if (rc || !failed) return zcomm_verdict(c, rc, worst, made, function);
  if (*made != MPI_COMM_NULL) real.Comm_free(made);
  return failed; /* a cluster is lost, which zcomm_most has raised */
}

int zcomm_verdict(zcomm *c, int rc, int worst, MPI_Comm *made, const char *function) {
  if (rc || !worst) return rc;
  if (*made != MPI_COMM_NULL) real.Comm_free(made);
  return z_raise(c, MPI_ERR_OTHER, function, "the MPI library of another process could not create its part");
}

/* ---- inquiry ---- */

int z_Comm_size(MPI_Comm comm, int *size) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Comm_size(comm, size);
  *size = zcomm_members(c);
  return MPI_SUCCESS;
}

int z_Comm_rank(MPI_Comm comm, int *rank) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Comm_rank(comm, rank);
  *rank = c->rank - zcomm_first(c);
  return MPI_SUCCESS;
}

int z_Comm_compare(MPI_Comm a, MPI_Comm b, int *result) {
  zcomm *ca = zcomm_find(a), *cb = zcomm_find(b);
  if (!ca && !cb) return real.Comm_compare(a, b, result);
  *result = MPI_UNEQUAL;
  if (a == b) {
    *result = MPI_IDENT;
  } else if (ca && cb && ca->inter == cb->inter && ca->size == cb->size && ca->peers == cb->peers) {
    int relation = zranks_compare(ca->world + zcomm_first(ca), cb->world + zcomm_first(cb), zcomm_members(ca));
    int others = ca->inter ? zranks_compare(ca->world + ca->base, cb->world + cb->base, ca->peers) : MPI_IDENT;
    if (relation == MPI_IDENT && others == MPI_IDENT) *result = MPI_CONGRUENT;
    else if (relation != MPI_UNEQUAL && others != MPI_UNEQUAL) *result = MPI_SIMILAR;
  } else if (a == MPI_COMM_NULL || b == MPI_COMM_NULL) {
    return z_raise(NULL, MPI_ERR_COMM, "MPI_Comm_compare", "a communicator is MPI_COMM_NULL");
  }
  return MPI_SUCCESS;
}

int z_Comm_test_inter(MPI_Comm comm, int *flag) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Comm_test_inter(comm, flag);
  *flag = c->inter;
  return MPI_SUCCESS;
}

int z_Comm_remote_size(MPI_Comm comm, int *size) {
  zcomm *c = zcomm_find(comm);
  if (!c) return real.Comm_remote_size(comm, size);
  if (!c->inter)
    return z_raise(c, MPI_ERR_COMM, "MPI_Comm_remote_size", "the communicator is not an intercommunicator");
  *size = c->peers;
  return MPI_SUCCESS;
}

int z_Comm_group(MPI_Comm comm, MPI_Group *out) {
  zcomm *c = zcomm_find(comm);
  MPI_Group native = MPI_GROUP_NULL;
  int rc = c ? zgroup_new(c->world + zcomm_first(c), zcomm_members(c), out) : real.Comm_group(comm, &native);
  if (!rc && !c) rc = zgroup_wrap(&native, out);
  return rc ? z_raise_on(comm, rc, "MPI_Comm_group", "the group cannot be created") : MPI_SUCCESS;
}

int z_Comm_remote_group(MPI_Comm comm, MPI_Group *out) {
  zcomm *c = zcomm_find(comm);
  if (c && !c->inter)
    return z_raise(c, MPI_ERR_COMM, "MPI_Comm_remote_group", "the communicator is not an intercommunicator");
  MPI_Group native = MPI_GROUP_NULL;
  int rc = c ? zgroup_new(c->world + c->base, c->peers, out) : real.Comm_remote_group(comm, &native);
  if (!rc && !c) rc = zgroup_wrap(&native, out);
  return rc ? z_raise_on(comm, rc, "MPI_Comm_remote_group", "the group cannot be created") : MPI_SUCCESS;
}

/* ---- release ---- */

/* Returns whether no operation is in progress on *arg, so that all references are those of the
 * program's handle and of persistent requests. */
static int only_mine(void *arg) {
  zcomm *c = arg;
  int32_t persistent = __atomic_load_n(&c->persistent, __ATOMIC_ACQUIRE);
  return __atomic_load_n(&c->refs, __ATOMIC_ACQUIRE) == 1 + persistent;
}

/* Frees the program's communicator *comm, and sets *comm to MPI_COMM_NULL. With `wait` it returns
 * only when no operation is in progress on the communicator. The last operation or persistent
 * request frees the communicator's memory. Attributes are deleted at once, while their callbacks
 * may still communicate on the communicator. If a callback fails the communicator stays. Returns
 * the code for the program. */
static int free_comm(MPI_Comm *comm, int wait, const char *function) {
  zcomm *c = zcomm_find(*comm);
  if (*comm == MPI_COMM_WORLD) return z_raise(c, MPI_ERR_COMM, function, "MPI_COMM_WORLD lives until MPI_Finalize");
  if (c->freed) return z_raise(NULL, MPI_ERR_COMM, function, "the communicator has been freed already");
  if (wait) z_wait(only_mine, c);
  int rc = zattr_delete_all(*comm);
  if (rc) return rc;
  c->freed = 1;
  *comm = MPI_COMM_NULL;
  zcomm_release(c);
  return MPI_SUCCESS;
}

int z_Comm_free(MPI_Comm *comm) {
  zbuffer_forget(z_key(*comm));
  if (zcomm_find(*comm)) return free_comm(comm, 0, "MPI_Comm_free");
  zprivate_keep_progressing();
  return real.Comm_free(comm);
}

int z_Comm_disconnect(MPI_Comm *comm) {
  zbuffer_forget(z_key(*comm));
  if (zcomm_find(*comm)) return free_comm(comm, 1, "MPI_Comm_disconnect");
  int rc = zcomm_meet(*comm);
  return rc ? rc : real.Comm_disconnect(comm);
}
