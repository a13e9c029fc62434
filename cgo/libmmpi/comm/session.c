/* Sessions: process sets, their groups, and communicators that are made from a group alone. A
 * session is a native one. start/session.c describes what the first session starts. */
#include "comm/comm.h"
#include "core/error.h"
#include "core/privcomm.h"
#include "p2p/buffer.h"
#include <stdio.h>
#include <string.h>

#ifdef Z_HAVE_Session_init

int zsession_raise(MPI_Session session, int class_, const char *function, const char *text) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (real.Session_get_errhandler(session, &handler)) handler = MPI_ERRHANDLER_NULL;
  int code = z_error_begin(class_, function, text, handler);
  real.Session_call_errhandler(session, code);
  return code;
}

/* ---- process sets ---- */

/* Numbers the native library's own process sets, leaving out those that the shim has too. Returns
 * the library's number of set *n, or -1 if there are not so many sets; *n is then decreased by the
 * number of sets. */
static int native_set(MPI_Session session, MPI_Info info, int *n) {
  int all = 0;
  if (real.Session_get_num_psets(session, info, &all)) return -1;
  for (int i = 0; i < all; i++) {
    char name[MPI_MAX_PSET_NAME_LEN + 1] = "";
    int room = MPI_MAX_PSET_NAME_LEN;
    if (!real.Session_get_nth_pset(session, info, i, &room, name) && zpset_find(name) < 0 && (*n)-- == 0) return i;
  }
  return -1;
}

int z_Session_get_num_psets(MPI_Session session, MPI_Info info, int *count) {
  int others = 0, left = 1 << 30;
  native_set(session, info, &left);
  others = (1 << 30) - left;
  *count = zpset_count() + others;
  return MPI_SUCCESS;
}

int z_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *room, char *name) {
  static const char function[] = "MPI_Session_get_nth_pset";
  if (n < 0) return zsession_raise(session, MPI_ERR_ARG, function, "the number of a process set is negative");
  if (n >= zpset_count()) {
    int left = n - zpset_count(), i = native_set(session, info, &left);
    if (i < 0) return zsession_raise(session, MPI_ERR_ARG, function, "there are fewer process sets");
    return real.Session_get_nth_pset(session, info, i, room, name);
  }
  *room = zpset_name(n, name, *room > 0 ? *room : 0) + 1;
  return MPI_SUCCESS;
}

int z_Session_get_pset_info(MPI_Session session, const char *name, MPI_Info *info) {
  int set = zpset_find(name);
  if (set < 0) return real.Session_get_pset_info(session, name, info);
  char size[16];
  snprintf(size, sizeof size, "%d", zpset_size(set));
  int rc = real.Info_create(info);
  return rc ? rc : real.Info_set(*info, "mpi_size", size);
}

int z_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *out) {
  static const char function[] = "MPI_Group_from_session_pset";
  int set = zpset_find(name), rc;
  if (set < 0) {
    MPI_Group native = MPI_GROUP_NULL;
    if ((rc = real.Group_from_session_pset(session, name, &native))) return rc;
    rc = zgroup_wrap(&native, out);
  } else {
    int n = zpset_size(set);
    int32_t *ranks = malloc((size_t)n * sizeof *ranks);
    for (int i = 0; i < n && ranks; i++) ranks[i] = zpset_member(set, i);
    rc = ranks ? zgroup_new(ranks, n, out) : MPI_ERR_NO_MEM;
    free(ranks);
  }
  if (rc) return zsession_raise(session, rc, function, "the group cannot be created");
  zgroup_derive(*out, z_key(session));
  return MPI_SUCCESS;
}

/* ---- communicators ---- */

/* Returns a tag for a string. A program that makes two communicators at the same time distinguishes
 * them by a string; native MPI and the shim's messages do so by a tag. Two strings with the same
 * tag matter only if the same processes make both communicators at once, from two threads. */
static int tag_of(const char *string) {
  uint32_t h = 2166136261u;
  for (; *string; string++) h = (h ^ (unsigned char)*string) * 16777619u;
  return (int)((h ^ (h >> 15)) & 0x7fff);
}

int zcomm_unmade(MPI_Errhandler handler, int class_, const char *function, const char *text) {
  MPI_Comm lent;
  int code = z_error_begin(class_, function, text, handler == MPI_ERRORS_ARE_FATAL ? handler : MPI_ERRHANDLER_NULL);
  /* MPI calls a handler on a communicator only, and the new one does not exist yet */
  if (handler == MPI_ERRHANDLER_NULL || zprivate_dup(MPI_COMM_SELF, &lent)) return code;
  if (!real.Comm_set_errhandler(lent, handler)) real.Comm_call_errhandler(lent, code);
  real.Comm_free(&lent);
  return code;
}

static int fail(MPI_Errhandler handler, int rc, const char *function, const char *text) {
  return zcomm_unmade(handler, z_native_class(rc), function, text);
}

static int dress(MPI_Comm comm, MPI_Info info, MPI_Errhandler handler) {
  int rc = handler == MPI_ERRHANDLER_NULL ? MPI_SUCCESS : real.Comm_set_errhandler(comm, handler);
  return rc || info == MPI_INFO_NULL ? rc : real.Comm_set_info(comm, info);
}

int z_Comm_create_from_group(MPI_Group group, const char *string, MPI_Info info, MPI_Errhandler handler,
                             MPI_Comm *out) {
  static const char function[] = "MPI_Comm_create_from_group";
  const zgroup *g = zgroup_get(group);
  *out = MPI_COMM_NULL;
  if (!g) return fail(handler, MPI_ERR_GROUP, function, "the group is not valid");
  if (!g->size) return MPI_SUCCESS;
  if (zgroup_rank(g, z_layout.rank) == MPI_UNDEFINED)
    return fail(handler, MPI_ERR_GROUP, function, "this process is not in the group");
  zcomm *everyone = zcomm_everyone();
  int rc = everyone ? zcomm_make_group(everyone, z_private, g, tag_of(string), out) : MPI_ERR_NO_MEM;
  if (!rc) rc = dress(*out, info, handler);
  if (rc) return fail(handler, rc, function, "the communicator cannot be created");
  if (g->session) zbuffer_derive(*out, g->session);
  return MPI_SUCCESS;
}

int z_Intercomm_create_from_groups(MPI_Group local, int leader, MPI_Group remote, int remote_leader, const char *string,
                                   MPI_Info info, MPI_Errhandler handler, MPI_Comm *out) {
  static const char function[] = "MPI_Intercomm_create_from_groups";
  const zgroup *mine = zgroup_get(local), *others = zgroup_get(remote);
  MPI_Comm half;
  int peer_leader = 0;
  *out = MPI_COMM_NULL;
  if (!mine || !mine->size || leader < 0 || leader >= mine->size)
    return fail(handler, MPI_ERR_GROUP, function, "the group is not valid, or does not have the leader's rank");
  if (mine->rank[leader] == z_layout.rank) { /* only the leader needs to know the remote leader */
    if (!others || remote_leader < 0 || remote_leader >= others->size)
      return fail(handler, MPI_ERR_GROUP, function,
                  "the remote group is not valid, or does not have the leader's rank");
    while (zpset_member(0, peer_leader) != others->rank[remote_leader]) peer_leader++;
  }
  /* A tag on z_private that nothing else uses */
  const int tag = ZTAG_LEADERS + tag_of(string) % (ZTAG_CONTEXT - ZTAG_LEADERS);
  int rc = z_Comm_create_from_group(local, string, MPI_INFO_NULL, handler, &half);
  if (rc && mine->rank[leader] == z_layout.rank && zcomm_everyone()) zinter_refuse(z_private, peer_leader, tag);
  if (rc) return rc;
  rc = z_Intercomm_create(half, leader, z_private, peer_leader, tag, out);
  if (!rc) rc = dress(*out, info, handler);
  if (!rc) zbuffer_inherit(half, *out);
  z_Comm_free(&half);
  return rc;
}
#endif
