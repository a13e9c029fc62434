/* New communicators from old ones, in three steps. First the ranks agree through the engine on the
 * new communicator. By then all that was started on the old one before has completed, so native
 * collectives have the same order everywhere. Then all ranks of the cluster meet, and each serves
 * the others meanwhile. So the native function, which blocks, has no rank left to wait for. A
 * communicator whose ranks are all in one cluster is a plain native one. */
#include "comm/comm.h"

static int failed(MPI_Comm comm, int rc, const char *function) {
  return z_raise_on(comm, rc, function, "the communicator cannot be created");
}

/* ---- dup ---- */

/* Sets *context to a context id of rank 0, at all ranks. In a job that goes on when a cluster is
 * lost it waits for all ranks, as zcomm_vote requires. Raises errors and returns the code for the
 * program. */
static int next_context(zcomm *c, uint64_t *context, const char *function) {
  *context = c->rank == 0 ? Z_ENGINE(ze_next_context(c->link)) : 0;
  if (!z_layout.on_loss) return zcomm_bcast(c, context, sizeof *context, 0, function);
  uint64_t *all = malloc((size_t)c->size * sizeof *all);
  if (!all) z_no_memory("a communicator");
  int rc = zcomm_allgather(c, context, sizeof *context, all, function);
  *context = all[0];
  free(all);
  return rc;
}

static int dup(zcomm *c, int with_info, MPI_Info info, const char *function, MPI_Comm *out) {
  uint64_t context;
  MPI_Comm native = MPI_COMM_NULL;
  /* the value that native libraries leave there if an attribute's copy callback fails */
  *out = MPI_COMM_NULL;
  int rc = zcomm_vote(c, next_context(c, &context, function), function);
  if (!rc) rc = zcomm_meet(c->native);
  if (rc) return rc;
  rc = with_info ? real.Comm_dup_with_info(c->native, info, &native) : real.Comm_dup(c->native, &native);
  if ((rc = zcomm_agree(c, zcomm_made(rc, native), &native, function))) return rc;
  if ((rc = zcomm_add_like(native, context, c))) return failed(c->native, rc, function);
  *out = native;
  return MPI_SUCCESS;
}

int z_Comm_dup(MPI_Comm comm, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (c) return dup(c, 0, MPI_INFO_NULL, "MPI_Comm_dup", out);
  int rc = zcomm_meet(comm);
  return rc ? rc : real.Comm_dup(comm, out);
}

int z_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (c) return dup(c, 1, info, "MPI_Comm_dup_with_info", out);
  int rc = zcomm_meet(comm);
  return rc ? rc : real.Comm_dup_with_info(comm, info, out);
}

/* ---- split ---- */

/* The arguments that one rank passes to MPI_Comm_split, which all ranks exchange. */
typedef struct wish {
  /* the context id of the new communicator if this rank becomes its rank 0 */
  uint64_t context;
  /* color and key are the arguments of MPI_Comm_split, rank is the rank in the old communicator */
  int32_t color, key, rank;
  /* The group of an intercommunicator that the rank belongs to: 0 for the group whose ranks come
   * first, otherwise 1. An intracommunicator has 0. */
  int32_t half;
} wish;

static int by_key(const void *a, const void *b) {
  const wish *x = a, *y = b;
  if (x->half != y->half) return x->half < y->half ? -1 : 1;
  return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->rank > y->rank) - (x->rank < y->rank);
}

static int divide(zcomm *c, int color, int key, int groups, const char *function, MPI_Comm *out) {
  wish mine = {Z_ENGINE(ze_next_context(c->link)), color < 0 ? -1 : color, key, c->rank, groups && zcomm_first(c) > 0},
       *all = malloc((size_t)c->size * sizeof *all);
  int32_t *world = malloc((size_t)c->size * sizeof *world);
  int n = 0, low = 0, new_rank = 0, spans = 0;
  MPI_Comm native = MPI_COMM_NULL;
  int rc = all && world ? zcomm_allgather(c, &mine, sizeof mine, all, function)
                        : failed(c->native, MPI_ERR_NO_MEM, function);
  if ((rc = zcomm_vote(c, rc, function))) goto end;
  for (int i = 0; i < c->size; i++)
    if (color >= 0 && all[i].color == color) all[n++] = all[i];
  qsort(all, (size_t)n, sizeof *all, by_key);
  for (int i = 0; i < n; i++) {
    if ((uint32_t)all[i].rank >= (uint32_t)c->size) { /* the entry belongs to another collective */
      rc = z_raise(c, MPI_ERR_OTHER, function,
                   "not all ranks of the communicator call the same collectives in the same order");
      goto end;
    }
    world[i] = c->world[all[i].rank];
    low += !all[i].half;
    spans |= c->native_of[all[i].rank] == Z_REMOTE;
    if (all[i].rank == c->rank) new_rank = i;
  }
  if (groups && (low == 0 || low == n)) color = -1; /* the other group has no rank with that color */
  if ((rc = zcomm_meet(c->native))) goto end;
  rc = real.Comm_split(c->native, color < 0 ? MPI_UNDEFINED : color, new_rank, &native);
  if (color >= 0) rc = zcomm_made(rc, native);
  if ((rc = zcomm_agree(c, rc, &native, function))) native = MPI_COMM_NULL;
  zcomm *made;
  if (!rc && color >= 0) {
    if (spans) rc = zcomm_add(c->link, native, all[0].context, world, n, &made);
    if (!rc && spans && groups) zinter_set(made, low);
    if (!rc && !spans && groups) rc = zinter_native(&native, low);
    if (rc) failed(c->native, rc, function);
  }
  *out = native;
end:
  free(all);
  free(world);
  return rc;
}

int zcomm_split(zcomm *c, int color, int key, const char *function, MPI_Comm *out) {
  return divide(c, color, key, 0, function, out);
}
int zcomm_split_groups(zcomm *c, int color, int key, const char *function, MPI_Comm *out) {
  return divide(c, color, key, 1, function, out);
}

int z_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  if (!c) {
    int rc = zcomm_meet(comm);
    return rc ? rc : real.Comm_split(comm, color, key, out);
  }
  if (color < 0 && color != MPI_UNDEFINED)
    return z_raise(c, MPI_ERR_ARG, "MPI_Comm_split", "color %d: want 0 or more, or MPI_UNDEFINED", color);
  return divide(c, color == MPI_UNDEFINED ? -1 : color, key, c->inter, "MPI_Comm_split", out);
}

/* ---- inside a cluster, but known to the engine ---- */

int zcomm_adopt(MPI_Comm comm, const char *function, MPI_Comm *out) {
  uint64_t context = Z_ENGINE(ze_next_context(0));
  int rank;
  MPI_Group group;
  MPI_Request request = MPI_REQUEST_NULL;
  zcomm *made;
  *out = MPI_COMM_NULL;
  int rc = real.Comm_rank(comm, &rank);
  if (rc || (rc = z_Comm_group(comm, &group))) return rc;
  if (!(rc = real.Ibcast(&context, sizeof context, MPI_BYTE, 0, comm, &request)))
    rc = z_wait_native(&request, MPI_STATUS_IGNORE);
  if (!rc) rc = zcomm_meet(comm);
  if (!rc) rc = real.Comm_split(comm, 0, rank, out), rc = zcomm_made(rc, *out);
  const zgroup *g = zgroup_get(group);
  if (!rc && (rc = zcomm_add(0, *out, context, g->rank, g->size, &made))) failed(comm, rc, function);
  z_Group_free(&group);
  return rc;
}

/* ---- create ---- */

int z_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  const zgroup *g = zgroup_get(group);
  if (!g) return z_raise_on(comm, MPI_ERR_GROUP, "MPI_Comm_create", "the group is not valid");
  if (!c) {
    MPI_Group native;
    int rc = zgroup_native(group, &native);
    if (rc) return z_raise_on(comm, rc, "MPI_Comm_create", "the group has members that are not in the communicator");
    if (!(rc = zcomm_meet(comm))) rc = real.Comm_create(comm, native, out);
    if (native != group) real.Group_free(&native);
    return rc;
  }
  int *ranks = malloc(((size_t)g->size + 1) * sizeof *ranks),
      rc = ranks ? zcomm_members_of(c, g, ranks) : MPI_ERR_NO_MEM;
  int me = zgroup_rank(g, z_layout.rank), color = rc || me == MPI_UNDEFINED ? -1 : c->inter ? 0 : ranks[0];
  free(ranks);
  if (rc) return z_raise(c, rc, "MPI_Comm_create", "the group has members that are not in the communicator");
  /* Groups are disjoint, so their first members distinguish them */
  return divide(c, color, me, c->inter, "MPI_Comm_create", out);
}
