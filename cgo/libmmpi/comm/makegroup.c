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
  for (int i = 0; i < g->size; i++) {
    if (at[g->rank[i]] < 0) rc = MPI_ERR_GROUP;
    if (ranks) ranks[i] = at[g->rank[i]];
  }
  free(at);
  return rc;
}

/* The arguments of an exchange of messages among the members of a group, through the first
 * member. */
typedef struct meeting {
  zcomm *c;        /* a spanning communicator that has all members */
  const zgroup *g; /* the group of the members */
  int me;          /* this process's rank in g */
  uint64_t id;     /* the number of the call (note.id) */
} meeting;

/* Returns the tag of the notes of a call. Calls of several threads at the same time have the same
 * communicator and often the same tag of the program, but hardly the same lower bits of their
 * numbers. */
static int note_tag(const meeting *m) { return zprivate_tag(ZTAG_CONTEXT, (int)(m->id & 0x7fffffff)); }

/* A message between the first member of a group and another one. */
typedef struct note {
  /* The number that the calls of all members have in common. A message with another number comes
   * from a call that its receiver has given up, and is discarded. */
  uint64_t id;
  uint64_t context; /* from the first member: a new context id, for the communicator */
  /* not Z_OK if the sender has failed or, from the first member, if any member has:
   * Z_ERR_PROC_FAILED if a cluster is lost, of which the receiver may not know yet, otherwise
   * Z_ERR_INTERNAL (enum z_error) */
  uint64_t failed;
} note;

/* An exchange of messages in progress: of the first member with each of the others, or of another
 * member with the first one. */
typedef struct exchange {
  const meeting *m;
  const int *ranks; /* the rank of each member in m->c */
  int send, last;   /* 1 if this process sends; messages 1 to last - 1 are exchanged */
  note *notes;      /* [last] the messages */
  /* [last] for each message: the native request inside the cluster, otherwise the engine's cell */
  MPI_Request *requests;
  z_cell *cells;
  int left, rc; /* the number of messages in progress; an MPI error class */
  int given_up; /* whether the receives in progress have been cancelled */
} exchange;

/* Starts to send or receive message i of an exchange. */
static int pass(exchange *x, int i) {
  const meeting *m = x->m;
  int peer = m->me == 0 ? i : 0, world = m->g->rank[peer], tag = note_tag(m);
  x->cells[i] = (z_cell){.done = (uint32_t)zcluster_has(world)};
  if (x->cells[i].done && x->send)
    return real.Isend(&x->notes[i], sizeof(note), MPI_BYTE, zcluster_rank(world), tag, z_private, &x->requests[i]);
  if (x->cells[i].done)
    return real.Irecv(&x->notes[i], sizeof(note), MPI_BYTE, zcluster_rank(world), tag, z_private, &x->requests[i]);
  int32_t id = m->c->id, rank = x->ranks[peer];
  int failed = x->send
                   ? Z_ENGINE(ze_isend(id, Z_INTERNAL, &x->notes[i], sizeof(note), rank, tag, Z_STANDARD, &x->cells[i]))
                   : Z_ENGINE(ze_irecv(id, Z_INTERNAL, &x->notes[i], sizeof(note), rank, tag, &x->cells[i]));
  if (failed) x->cells[i].done = 1;
  return z_error_class(failed);
}

/* Returns whether a member of the group is in a lost cluster, or m->c is revoked, so that some
 * members may not take part. */
static int is_hurt(const meeting *m, const int *ranks) {
  int32_t n = 0, *lost = zcomm_is_hurt(m->c) ? malloc((size_t)m->c->size * sizeof *lost) : NULL;
  int hurt = lost && (Z_ENGINE(ze_revoked(m->c->id)) || Z_ENGINE(ze_failed(m->c->id, lost, m->c->size, &n)));
  for (int i = 0; i < n && lost && !hurt; i++)
    for (int k = 0; k < m->g->size && !hurt; k++) hurt = ranks[k] == lost[i];
  free(lost);
  return hurt;
}

/* Advances message i of an exchange. Returns whether it is over. */
static int advance(exchange *x, int i) {
  int flag = 1, rc = real.Test(&x->requests[i], &flag, MPI_STATUS_IGNORE);
  z_looks += !flag;
  if (!rc && flag) flag = (int)__atomic_load_n(&x->cells[i].done, __ATOMIC_ACQUIRE);
  if (!rc && flag) rc = z_error_class(x->cells[i].error);
  if (!rc && flag && !x->send && !x->rc && x->notes[i].id != x->m->id) {
    x->notes[i].id = 0;
    rc = pass(x, i);
    if (!rc) return 0;
  }
  if (rc && !x->rc) x->rc = rc;
  return flag || rc;
}

/* Cancels the receives of an exchange that are in progress. Those from lost members end by
 * themselves, but a member that learns of the loss before its call sends nothing. */
static void give_up(exchange *x) {
  x->given_up = 1, x->rc = Z_CLASS_PROC_FAILED;
  for (int i = 1; i < x->last; i++) {
    if (x->requests[i] != MPI_REQUEST_NULL) z_ignore(real.Cancel(&x->requests[i]));
    else if (!x->cells[i].done) Z_ENGINE(ze_cancel(x->m->c->id, &x->cells[i]));
  }
}

/* Advances an exchange. Returns whether it is over. */
static int exchanged(void *arg) {
  exchange *x = arg;
  x->left = 0;
  for (int i = 1; i < x->last; i++) x->left += !advance(x, i);
  if (x->left && !x->send && !x->given_up && is_hurt(x->m, x->ranks)) give_up(x);
  return !x->left;
}

/* Sends a message from every member to the first one (to_first = 1), or from the first one to all
 * others (0). notes[0] is the message that this process sends, or receives from the first one. The
 * first one receives that of member i in notes[i]. Returns an MPI error code. */
static int exchange_notes(const meeting *m, const int *ranks, int to_first, note *notes) {
  int first = m->me == 0, n = first ? m->g->size : 2;
  exchange x = {.m = m, .ranks = ranks, .send = first != to_first, .last = n};
  x.notes = calloc((size_t)n, sizeof *x.notes);
  x.requests = malloc((size_t)n * sizeof *x.requests);
  x.cells = calloc((size_t)n, sizeof *x.cells);
  if (!x.notes || !x.requests || !x.cells) z_no_memory("the members of a communicator");
  for (int i = 1; i < n; i++) {
    x.requests[i] = MPI_REQUEST_NULL;
    if (x.send) x.notes[i] = notes[0];
    int rc = pass(&x, i);
    if (rc && !x.rc) x.rc = rc;
  }
  if (!exchanged(&x)) z_wait(exchanged, &x);
  for (int i = 1; i < n && !x.send; i++) notes[first ? i : 0] = x.notes[i];
  free(x.notes), free(x.requests), free(x.cells);
  return x.rc;
}

/* Returns the code with which this process tells others of a failure (note.failed). */
static uint64_t cause(const meeting *m, const int *ranks) {
  return z_layout.on_loss && is_hurt(m, ranks) ? Z_ERR_PROC_FAILED : Z_ERR_INTERNAL;
}

/* Makes the result of a call the same for all members: rc is this process's result, an MPI error
 * code. *context is set to a context id of the first member. Returns an MPI error code, which is
 * MPI_SUCCESS only if rc is in all members. */
static int agree(const meeting *m, const int *ranks, int rc, uint64_t *context) {
  int first = m->me == 0;
  note *all = calloc((size_t)m->g->size, sizeof *all), answer = {m->id, 0, rc ? cause(m, ranks) : Z_OK};
  if (!all) z_no_memory("the members of a communicator");
  all[0] = answer;
  int lost = exchange_notes(m, ranks, 1, all);
  if (first) answer.context = Z_ENGINE(ze_next_context(m->c->link));
  if (first && lost) answer.failed = cause(m, ranks);
  for (int i = 1; i < m->g->size && first; i++)
    if (all[i].failed && answer.failed != Z_ERR_PROC_FAILED) answer.failed = all[i].failed;
  free(all);
  int rc2 = first || !lost ? exchange_notes(m, ranks, 0, &answer) : MPI_SUCCESS;
  *context = answer.context;
  if (rc || !(lost || rc2 || answer.failed)) return rc;
  if (answer.failed == Z_ERR_PROC_FAILED || cause(m, ranks) == Z_ERR_PROC_FAILED) return Z_CLASS_PROC_FAILED;
  return lost ? lost : rc2 ? rc2 : MPI_ERR_OTHER;
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
  if (from == z_private) tag = zprivate_tag(ZTAG_NATIVE, tag);
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

/* Returns the number that calls for the same group, communicator and tag have in common (FNV-1a).
 * call distinguishes calls for which these are the same. */
static uint64_t number(const zcomm *c, const zgroup *g, int tag, uint64_t call) {
  uint64_t h = 0xcbf29ce484222325u ^ c->context ^ call;
  for (int i = 0; i < g->size; i++) h = (h ^ (uint32_t)g->rank[i]) * 0x100000001b3u;
  return (h ^ (uint32_t)tag) * 0x100000001b3u;
}

int zcomm_parts(zcomm *c, MPI_Comm from, const zgroup *g, int tag, uint64_t call, uint64_t *context, MPI_Comm *out) {
  meeting m = {c, g, zgroup_rank(g, z_layout.rank), number(c, g, tag, call)};
  int failed, *ranks = malloc((size_t)g->size * sizeof *ranks), rc = ranks ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  *out = MPI_COMM_NULL;
  if (!rc) rc = zcomm_members_of(c, g, ranks);
  if (!rc && z_layout.on_loss)
    rc = zcomm_vote_among(m.id, g->rank, g->size,
                          is_hurt(&m, ranks) ? Z_CLASS_PROC_FAILED : agree(&m, ranks, 0, context));
  if (!rc) {
    rc = zcomm_part(from, g->rank, g->size, from == z_private ? note_tag(&m) : tag, out);
    if ((failed = agree(&m, ranks, rc, context)) && !rc) real.Comm_free(out);
    rc = failed;
  }
  free(ranks);
  return rc;
}

int zcomm_make_group(zcomm *c, MPI_Comm comm, const zgroup *g, int tag, MPI_Comm *out) {
  uint64_t context = 0;
  zcomm *made;
  int spans = 0, rc = MPI_SUCCESS;
  for (int i = 0; i < g->size; i++) spans |= !zcluster_has(g->rank[i]);
  if (!spans && c) rc = zcomm_members_of(c, g, NULL);
  if (!spans) return rc ? rc : zcomm_part(comm, g->rank, g->size, tag, out);
  if (!c) return MPI_ERR_GROUP;
  rc = zcomm_parts(c, comm, g, tag, 0, &context, out);
  if (!rc) rc = zcomm_add(c->link, *out, context, g->rank, g->size, &made);
  if (rc) *out = MPI_COMM_NULL;
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
