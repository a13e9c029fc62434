/* New communicators that only their members make: first all of them who are in this cluster meet,
 * by messages, then native MPI makes the local part. */
#include "comm/comm.h"
#include "core/privcomm.h"
#include <string.h>

/* Rank in c of every member of g; MPI_ERR_GROUP if one is not there. */
int zcomm_members_of(const zcomm *c, const zgroup *g, int *ranks) {
  int32_t *at = malloc((size_t)z_layout.size * sizeof *at);
  if (!at) return MPI_ERR_NO_MEM;
  memset(at, 0xff, (size_t)z_layout.size * sizeof *at);
  for (int i = 0; i < c->size; i++) at[c->world[i]] = i;
  int rc = MPI_SUCCESS;
  for (int i = 0; i < g->size; i++)
    if ((ranks[i] = at[g->rank[i]]) < 0) rc = MPI_ERR_GROUP;
  free(at);
  return rc;
}

typedef struct meeting {
  zcomm *c;
  const zgroup *g;
  int me, tag; /* my rank in g; the program's tag */
} meeting;

/* The first member's context id to all. */
static int agree(const meeting *m, const int *ranks, uint64_t *context) {
  int tag = zprivate_tag(ZTAG_CONTEXT, m->tag), rc = MPI_SUCCESS, n = 0, failed = 0, last = m->me == 0 ? m->g->size : 2;
  MPI_Request *requests = malloc((size_t)m->g->size * sizeof *requests);
  z_cell *cells = calloc((size_t)m->g->size, sizeof *cells);
  if (m->me == 0) *context = z_eng.ze_next_context();
  if (!requests || !cells) rc = MPI_ERR_NO_MEM;
  for (int i = 1; i < last && !rc && !failed; i++) {
    int peer = m->me == 0 ? i : 0, remote = !zcluster_has(m->g->rank[peer]), native = zcluster_rank(m->g->rank[peer]);
    cells[i].done = !remote;
    if (remote && m->me == 0)
      failed = z_eng.ze_isend(m->c->id, Z_INTERNAL, context, 8, ranks[peer], tag, Z_STANDARD, &cells[i]);
    else if (remote) failed = z_eng.ze_irecv(m->c->id, Z_INTERNAL, context, 8, ranks[peer], tag, &cells[i]);
    else if (m->me == 0) rc = real.Isend(context, 8, MPI_BYTE, native, tag, z_private, &requests[n++]);
    else rc = real.Irecv(context, 8, MPI_BYTE, native, tag, z_private, &requests[n++]);
  }
  if (!rc && !failed) rc = z_wait_each(n, requests);
  for (int i = 1; i < last && !rc && !failed; i++) {
    z_wait_cell(&cells[i]);
    failed = cells[i].error;
  }
  free(cells);
  free(requests);
  return failed ? z_error_class(failed) : rc;
}

int zcomm_part(MPI_Comm from, const int32_t *world, int n, int tag, MPI_Comm *out) {
  int near = 0;
  int32_t *ranks = malloc(((size_t)n + 1) * sizeof *ranks);
  MPI_Group part = MPI_GROUP_NULL, native = MPI_GROUP_NULL;
  for (int i = 0; i < n && ranks; i++)
    if (zcluster_has(world[i])) ranks[near++] = world[i];
  int rc = ranks ? zcomm_meet_members(ranks, near, tag) : MPI_ERR_NO_MEM; /* idle or not: all do it or none */
  if (!rc) rc = zgroup_new(ranks, near, &part);
  if (!rc) rc = zgroup_native(part, &native);
  /* MPICH 4.0 crashes on a communicator that nobody has asked for its group. */
  MPI_Group asked = MPI_GROUP_NULL;
  if (!rc) rc = real.Comm_group(from, &asked);
  if (asked != MPI_GROUP_NULL) real.Group_free(&asked);
  if (!rc) rc = real.Comm_create_group(from, native, tag, out);
  if (native != MPI_GROUP_NULL && native != MPI_GROUP_EMPTY) real.Group_free(&native);
  if (part != MPI_GROUP_NULL) z_Group_free(&part);
  free(ranks);
  return rc;
}

int zcomm_make_group(zcomm *c, MPI_Comm comm, const zgroup *g, int tag, MPI_Comm *out) {
  meeting m = {c, g, zgroup_rank(g, z_layout.rank), tag};
  uint64_t context = 0;
  int spans = 0, *ranks = malloc(((size_t)g->size + 1) * sizeof *ranks), rc = ranks ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  if (!rc && c) rc = zcomm_members_of(c, g, ranks);
  for (int i = 0; i < g->size && !rc; i++) spans |= !zcluster_has(g->rank[i]);
  if (!rc && spans) rc = c ? agree(&m, ranks, &context) : MPI_ERR_GROUP;
  if (!rc) rc = zcomm_part(comm, g->rank, g->size, tag, out);
  zcomm *made;
  if (!rc && spans) rc = zcomm_add(*out, context, g->rank, g->size, &made);
  free(ranks);
  return rc;
}

int z_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  const zgroup *g = zgroup_get(group);
  if (!g) return z_raise_on(comm, MPI_ERR_GROUP, "MPI_Comm_create_group", "that is no group");
  if (c && c->inter) return z_raise(c, MPI_ERR_COMM, "MPI_Comm_create_group", "not for an intercommunicator");
  *out = MPI_COMM_NULL;
  if (zgroup_rank(g, z_layout.rank) == MPI_UNDEFINED) return MPI_SUCCESS;
  int rc = zcomm_make_group(c, comm, g, tag, out);
  return rc ? z_raise_on(comm, rc, "MPI_Comm_create_group", "no communicator can be made") : rc;
}
