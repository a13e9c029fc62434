/* New communicators that only their members make: first all members in this cluster meet, by
 * messages, then native MPI makes the local part. */
#include "comm/comm.h"
#include "core/privcomm.h"
#include <string.h>

int zcomm_members_of(const zcomm *c, const zgroup *g, int *ranks) {
  size_t bytes = (size_t)z_processes() * sizeof(int32_t);
  int32_t *at = malloc(bytes);
  if (!at) return MPI_ERR_NO_MEM;
  memset(at, 0xff, bytes);
  for (int i = 0; i < c->size; i++) at[c->world[i]] = i;
  int rc = MPI_SUCCESS;
  for (int i = 0; i < g->size; i++)
    if ((ranks[i] = at[g->rank[i]]) < 0) rc = MPI_ERR_GROUP;
  free(at);
  return rc;
}

/* The arguments of an exchange of messages among the members of a group, through the first
 * member. */
typedef struct meeting {
  zcomm *c;        /* a spanning communicator that has all members */
  const zgroup *g; /* the group of the members */
  /* this process's rank in g, and the tag that the program has passed */
  int me, tag;
} meeting;

/* The message that the first member of a group sends to the others once it has the messages of
 * all. */
typedef struct answer {
  uint64_t context; /* a new context id of the first member, for the communicator */
  /* not 0 if the native library of any member has failed to make its part of the communicator */
  uint64_t failed;
} answer;

/* Starts to send `bytes` bytes at data to member `peer` (send = 1) or to receive them from there
 * (0). The peer or this process is the first member. Inside the cluster the message is native and
 * *request is set; otherwise the engine sends it and *cell is done at its end. ranks[i] is the rank
 * of member i in m->c. Returns an MPI error code. */
static int pass(const meeting *m, const int *ranks, int peer, int send, void *data, int bytes, z_cell *cell,
                MPI_Request *request) {
  int tag = zprivate_tag(ZTAG_CONTEXT, m->tag), world = m->g->rank[peer], native = zcluster_rank(world);
  *request = MPI_REQUEST_NULL;
  cell->done = zcluster_has(world);
  if (cell->done && send) return real.Isend(data, bytes, MPI_BYTE, native, tag, z_private, request);
  if (cell->done) return real.Irecv(data, bytes, MPI_BYTE, native, tag, z_private, request);
  int failed = send ? Z_ENGINE(ze_isend(m->c->id, Z_INTERNAL, data, bytes, ranks[peer], tag, Z_STANDARD, cell))
                    : Z_ENGINE(ze_irecv(m->c->id, Z_INTERNAL, data, bytes, ranks[peer], tag, cell));
  return failed ? z_error_class(failed) : MPI_SUCCESS;
}

/* Sends the `bytes` bytes at `results` from every member to the first one (to_first = 1), at which
 * `results` is an array with one entry for each member, or from the first one to all others (0).
 * ranks[i] is the rank of member i in m->c. Returns an MPI error code. */
static int exchange(const meeting *m, const int *ranks, int to_first, void *results, int bytes) {
  int first = m->me == 0, last = first ? m->g->size : 2, n = 0, rc = MPI_SUCCESS;
  MPI_Request *requests = malloc((size_t)m->g->size * sizeof *requests);
  z_cell *cells = calloc((size_t)m->g->size, sizeof *cells);
  if (!requests || !cells) rc = MPI_ERR_NO_MEM;
  for (int i = 1; i < last && !rc; i++, n++) {
    char *data = (char *)results + (first && to_first ? (size_t)i * (size_t)bytes : 0);
    rc = pass(m, ranks, first ? i : 0, first != to_first, data, bytes, &cells[i], &requests[i - 1]);
  }
  if (!rc) rc = z_wait_each(n, requests);
  for (int i = 1; i < last && !rc; i++) {
    z_wait_cell(&cells[i]);
    if (cells[i].error) rc = z_error_class(cells[i].error);
  }
  free(cells);
  free(requests);
  return rc;
}

/* Makes the result of a native call that makes a communicator the same for all members, because
 * libraries run out of communicators at different numbers. rc and *made are this process's result;
 * *made is freed if another member has failed. *context is set to a context id of the first member.
 * Returns an MPI error code. */
static int agree(const meeting *m, const int *ranks, int rc, MPI_Comm *made, uint64_t *context) {
  uint64_t mine = rc != MPI_SUCCESS, *all = m->me ? &mine : calloc((size_t)m->g->size, sizeof *all);
  answer a = {m->me ? 0 : Z_ENGINE(ze_next_context(m->c->link)), mine};
  int lost = all ? exchange(m, ranks, 1, all, sizeof *all) : MPI_ERR_NO_MEM;
  for (int i = 1; i < m->g->size && !m->me && !lost; i++) a.failed |= all[i];
  if (!lost) lost = exchange(m, ranks, 0, &a, sizeof a);
  if (m->me == 0) free(all);
  *context = a.context;
  if (rc || !(lost || a.failed)) return rc;
  real.Comm_free(made);
  return lost ? lost : MPI_ERR_OTHER;
}

int zcomm_part(MPI_Comm from, const int32_t *world, int n, int tag, MPI_Comm *out) {
  int locals = 0;
  *out = MPI_COMM_NULL;
  int32_t *ranks = malloc(((size_t)n + 1) * sizeof *ranks);
  MPI_Group part = MPI_GROUP_NULL, native = MPI_GROUP_NULL;
  for (int i = 0; i < n && ranks; i++)
    if (zcluster_has(world[i])) ranks[locals++] = world[i];
  /* all members do this whether their engine is idle or not, or none does */
  int rc = ranks ? zcomm_meet_members(ranks, locals, tag) : MPI_ERR_NO_MEM;
  if (!rc) rc = zgroup_new(ranks, locals, &part);
  if (!rc) rc = zgroup_native(part, &native);
  /* MPICH 4.0 crashes on a communicator whose group was never requested */
  MPI_Group asked = MPI_GROUP_NULL;
  if (!rc) rc = real.Comm_group(from, &asked);
  if (asked != MPI_GROUP_NULL) real.Group_free(&asked);
  if (!rc) rc = real.Comm_create_group(from, native, tag, out), rc = zcomm_made(rc, *out);
  if (native != MPI_GROUP_NULL && native != MPI_GROUP_EMPTY) real.Group_free(&native);
  if (part != MPI_GROUP_NULL) z_Group_free(&part);
  free(ranks);
  return rc;
}

int zcomm_make_group(zcomm *c, MPI_Comm comm, const zgroup *g, int tag, MPI_Comm *out) {
  meeting m = {c, g, zgroup_rank(g, z_layout.rank), tag};
  uint64_t context = 0;
  zcomm *made;
  int spans = 0, *ranks = malloc(((size_t)g->size + 1) * sizeof *ranks), rc = ranks ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  if (!rc && c) rc = zcomm_members_of(c, g, ranks);
  for (int i = 0; i < g->size && !rc; i++) spans |= !zcluster_has(g->rank[i]);
  if (!rc && spans && !c) rc = MPI_ERR_GROUP;
  if (!rc) {
    rc = zcomm_part(comm, g->rank, g->size, tag, out);
    if (spans) rc = agree(&m, ranks, rc, out, &context);
    if (!rc && spans) rc = zcomm_add(c->link, *out, context, g->rank, g->size, &made);
    if (rc) *out = MPI_COMM_NULL;
  }
  free(ranks);
  return rc;
}

int z_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  const zgroup *g = zgroup_get(group);
  if (!g) return z_raise_on(comm, MPI_ERR_GROUP, "MPI_Comm_create_group", "the group is not valid");
  if (c && c->inter) return z_raise(c, MPI_ERR_COMM, "MPI_Comm_create_group", "not supported on an intercommunicator");
  *out = MPI_COMM_NULL;
  if (zgroup_rank(g, z_layout.rank) == MPI_UNDEFINED) return MPI_SUCCESS;
  int rc = zcomm_make_group(c, comm, g, tag, out);
  return rc ? z_raise_on(comm, rc, "MPI_Comm_create_group", "the communicator cannot be created") : rc;
}
