/* Intercommunicators whose groups are not both in one cluster. To the engine an intercommunicator
 * is one spanning communicator of the members of both groups, which the program sees as two groups.
 * Point-to-point calls add the rank at which the other group begins (zcomm_at), and collectives are
 * in coll/inter.c. The handle is a native intracommunicator of the members in this cluster. If both
 * groups are in one cluster the intercommunicator is native. */
#include "comm/comm.h"
#include <stddef.h>
#include <string.h>

void zinter_set(zcomm *c, int low) {
  int is_low = c->rank < low;
  c->inter = 1;
  c->base = is_low ? low : 0;
  c->peers = is_low ? c->size - low : low;
}

int zinter_native(MPI_Comm *comm, int low) {
  MPI_Comm group = MPI_COMM_NULL, both = *comm;
  int rank, rc = real.Comm_rank(both, &rank);
  if (!rc) rc = zcomm_meet(both);
  if (!rc) rc = real.Comm_split(both, rank < low, rank, &group), rc = zcomm_made(rc, group);
  if (!rc) rc = zcomm_meet(both);
  if (rc) return rc;
  *comm = MPI_COMM_NULL;
  z_enter();
  rc = real.Intercomm_create(group, 0, both, rank < low ? low : 0, 0, comm);
  z_leave();
  real.Comm_free(&group);
  real.Comm_free(&both);
  return zcomm_made(rc, *comm);
}

/* ---- create ---- */

/* The result of the exchange between the leaders of the two groups, which each leader broadcasts in
 * its group. */
typedef struct plan {
  uint64_t context; /* the context id of the intercommunicator */
  /* n is the number of members of both groups, low that of the group that comes first */
  int32_t n, low;
  /* The MPI error code of an error that the leader has raised, or MPI_SUCCESS. */
  int32_t failed;
  /* [n] the virtual ranks of the members of both groups, one group after the other */
  int32_t *all;
} plan;

/* The first message that each leader sends to the other leader. */
typedef struct hello {
  /* a new context id of the sender, for the intercommunicator */
  uint64_t context;
  /* the sender's z_world_mark, which tells whether the groups are of the same world */
  uint64_t mark;
  int32_t size; /* the number of members of the sender's group, or -1 if the sender's call has failed */
} hello;

static int no_memory(MPI_Comm comm, const char *function) {
  return z_raise_on(comm, MPI_ERR_NO_MEM, function, "no memory");
}

/* Exchanges the members of the groups with the other group's leader, which has rank `leader` in
 * `peer`, a communicator that the leaders share, and fills in *p. The group with the lowest virtual
 * rank comes first, and its leader's context id is used, so both sides get the same plan. Returns
 * the code of an error that was raised, or MPI_SUCCESS. */
static int agree(MPI_Comm comm, MPI_Comm peer, int leader, int tag, const char *function, plan *p) {
  MPI_Group handle;
  int rc = z_Comm_group(comm, &handle), first = 1;
  if (rc) return rc;
  const zgroup *mine = zgroup_get(handle);
  hello out = {Z_ENGINE(ze_next_context(0)), z_world_mark, mine->size}, in;
  rc = z_Sendrecv(&out, sizeof out, MPI_BYTE, leader, tag, &in, sizeof in, MPI_BYTE, leader, tag, peer,
                  MPI_STATUS_IGNORE);
  if (!rc && in.mark != out.mark)
    rc = z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "not supported by MMPI where one group was spawned by the other: make it of the spawned ones' "
                    "intercommunicator");
  if (!rc && in.size < 0)
    rc = z_raise_on(comm, z_layout.on_loss ? Z_CLASS_PROC_FAILED : MPI_ERR_OTHER, function,
                    "the other group's communicator could not be made");
  int32_t *others = rc ? NULL : malloc((size_t)in.size * sizeof *others);
  if (!rc && others)
    rc = z_Sendrecv(mine->rank, mine->size * 4, MPI_BYTE, leader, tag, others, in.size * 4, MPI_BYTE, leader, tag, peer,
                    MPI_STATUS_IGNORE);
  if (!rc) p->n = mine->size + in.size, p->all = malloc((size_t)p->n * sizeof *p->all);
  if (!rc && (!others || !p->all)) rc = no_memory(comm, function);
  if (!rc) {
    int32_t least = mine->rank[0];
    for (int i = 1; i < mine->size; i++)
      if (mine->rank[i] < least) least = mine->rank[i];
    for (int i = 0; i < in.size; i++) {
      first &= others[i] > least;
      if (zgroup_rank(mine, others[i]) != MPI_UNDEFINED) rc = MPI_ERR_COMM;
    }
    p->low = first ? mine->size : in.size;
    p->context = first ? out.context : in.context;
    memcpy(p->all + (first ? 0 : p->low), mine->rank, (size_t)mine->size * sizeof *p->all);
    memcpy(p->all + (first ? p->low : 0), others, (size_t)in.size * sizeof *p->all);
    if (rc) rc = z_raise_on(comm, rc, function, "a process is in both groups");
  }
  free(others);
  z_Group_free(&handle);
  return rc;
}

void zinter_refuse(MPI_Comm peer, int leader, int tag) {
  hello out = {0, z_world_mark, -1}, in;
  z_ignore(z_Sendrecv(&out, sizeof out, MPI_BYTE, leader, tag, &in, sizeof in, MPI_BYTE, leader, tag, peer,
                      MPI_STATUS_IGNORE));
}

int zinter_spread(MPI_Comm comm, void *data, int bytes, int root, const char *function) {
  zcomm *c = zcomm_find(comm);
  if (c) return zcomm_bcast(c, data, bytes, root, function);
  MPI_Request request = MPI_REQUEST_NULL;
  int rc = real.Ibcast(data, bytes, MPI_BYTE, root, comm, &request);
  return rc ? rc : z_wait_native(&request, MPI_STATUS_IGNORE);
}

/* Sets the error handler of `to` to that of `from`, because MPI requires that a new
 * intercommunicator has the error handler of the communicator of its group. Returns an MPI error
 * code. */
int zinter_inherit(MPI_Comm from, MPI_Comm to) {
  MPI_Errhandler handler;
  int rc = real.Comm_get_errhandler(from, &handler);
  if (!rc) rc = real.Comm_set_errhandler(to, handler);
  if (!rc && handler != MPI_ERRHANDLER_NULL) rc = real.Errhandler_free(&handler);
  return rc;
}

int zinter_make(const int32_t *world, int n, int low, int tag, uint64_t context, MPI_Comm *out) {
  int spans = 0, rc;
  uint64_t unused;
  MPI_Group group = MPI_GROUP_NULL;
  zcomm *made, *everyone;
  for (int i = 0; i < n; i++) spans |= !zcluster_has(world[i]);
  if (!spans) {
    rc = zcomm_part(z_private, world, n, tag, out);
    return rc ? rc : zinter_native(out, low);
  }
  if (!(everyone = zcomm_everyone())) return MPI_ERR_NO_MEM;
  if ((rc = zgroup_new(world, n, &group))) return rc;
  rc = zcomm_parts(everyone, z_private, zgroup_get(group), tag, context, &unused, out);
  z_Group_free(&group);
  if (!rc && !(rc = zcomm_add(0, *out, context, world, n, &made))) zinter_set(made, low);
  return rc;
}

int z_Intercomm_create(MPI_Comm comm, int root, MPI_Comm peer, int leader, int tag, MPI_Comm *out) {
  static const char function[] = "MPI_Intercomm_create";
  plan p = {0};
  MPI_Comm made;
  int rank, size, inter, rc = z_Comm_test_inter(comm, &inter);
  if (rc || (rc = z_Comm_rank(comm, &rank)) || (rc = z_Comm_size(comm, &size))) return rc;
  if (inter) return z_raise_on(comm, MPI_ERR_COMM, function, "the local communicator is an intercommunicator");
  if (root < 0 || root >= size)
    return z_raise_on(comm, MPI_ERR_RANK, function, "the local leader is %d; the communicator has ranks 0 to %d", root,
                      size - 1);
  if (rank == root) p.failed = agree(comm, peer, leader, tag, function, &p);
  int raised = p.failed;
  if ((rc = zinter_spread(comm, &p, offsetof(plan, all), root, function))) goto end;
  if ((rc = p.failed)) {
    if (!raised)
      rc = z_raise_on(comm, MPI_ERR_OTHER, function, "the local leader did not reach the other group's leader");
    goto end;
  }
  if (rank != root && !(p.all = malloc((size_t)p.n * sizeof *p.all))) rc = no_memory(comm, function);
  if (rc || (rc = zinter_spread(comm, p.all, p.n * 4, root, function))) goto end;
  rc = zinter_make(p.all, p.n, p.low, tag, p.context, &made);
  if (!rc) rc = zinter_inherit(comm, made);
  if (rc) rc = z_raise_on(comm, rc, function, "the communicator cannot be created");
  else *out = made;
end:
  free(p.all);
  return rc;
}

/* ---- merge ---- */

/* Makes *out the intracommunicator of both groups of an intercommunicator. The group with `high`
 * set comes second. If both groups or neither have it set, the order is that of the
 * intercommunicator, which both sides know. */
int z_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    if (rc) return rc;
    z_enter();
    rc = real.Intercomm_merge(comm, high, out);
    z_leave();
    return rc;
  }
  if (!c->inter) return z_raise(c, MPI_ERR_COMM, "MPI_Intercomm_merge", "the communicator is not an intercommunicator");
  return zcomm_split(c, 0, high ? c->size + c->rank : c->rank, "MPI_Intercomm_merge", out);
}
