/* Groups are ordered sets of virtual ranks, kept as small arrays in C, because group operations are
 * local. The handle is a native group of one rank, whose only purpose is to be distinct: Group_incl
 * makes a new group at each call in every MPI library. */
#include "comm/group.h"
#include "core/error.h"
#include "core/map.h"
#include <stdlib.h>
#include <string.h>

/* the map from a group's native handle to its zgroup */
static zmap groups;
static MPI_Group native_world;

static const zgroup empty = {0};

int zgroup_start(void) { return real.Comm_group(MPI_COMM_WORLD, &native_world); }

const zgroup *zgroup_get(MPI_Group handle) {
  if (handle == MPI_GROUP_EMPTY) return &empty;
  return zmap_get(&groups, z_key(handle));
}

int zgroup_rank(const zgroup *g, int32_t virtual_rank) {
  for (int i = 0; i < g->size; i++)
    if (g->rank[i] == virtual_rank) return i;
  return MPI_UNDEFINED;
}

static zgroup *make(int size) {
  zgroup *g = malloc(sizeof *g + (size_t)size * sizeof g->rank[0]);
  if (g) g->size = size, g->session = 0;
  return g;
}

void zgroup_derive(MPI_Group group, uint64_t session) {
  zgroup *g = zmap_get(&groups, z_key(group));
  if (g) g->session = session;
}

/* Makes a native group of n ranks of the native world, and stores it in *out. Returns an MPI error
 * code, which is an error also if an error handler of the program has turned the error of the
 * native call into MPI_SUCCESS. */
static int include(int n, const int ranks[], MPI_Group *out) {
  *out = MPI_GROUP_NULL;
  int rc = real.Group_incl(native_world, n, ranks, out);
  return rc || *out != MPI_GROUP_NULL ? rc : MPI_ERR_OTHER;
}

/* Makes a native handle that stands for g, stores it in *out, and takes ownership of g. Returns an
 * MPI error code. */
static int publish(zgroup *g, MPI_Group *out) {
  if (!g) return MPI_ERR_NO_MEM;
  int rc = MPI_SUCCESS, first = 0;
  if (g->size == 0) *out = MPI_GROUP_EMPTY;
  else rc = include(1, &first, out);
  if (rc || g->size == 0) free(g);
  else zmap_put(&groups, z_key(*out), g);
  return rc;
}

int zgroup_new(const int32_t *rank, int size, MPI_Group *out) {
  zgroup *g = make(size);
  if (g) memcpy(g->rank, rank, (size_t)size * sizeof *rank);
  return publish(g, out);
}

int zgroup_wrap(MPI_Group *native, MPI_Group *out) {
  if (*native == MPI_GROUP_NULL) return *out = MPI_GROUP_NULL, MPI_SUCCESS;
  int size, rc = real.Group_size(*native, &size);
  zgroup *g = rc ? NULL : make(size);
  if (!g) return rc ? rc : MPI_ERR_NO_MEM;
  int *all = malloc((size_t)(size + 1) * sizeof *all);
  for (int i = 0; i < size && all; i++) all[i] = i;
  rc = all ? real.Group_translate_ranks(*native, size, all, native_world, g->rank) : MPI_ERR_NO_MEM;
  for (int i = 0; i < size && all; i++) {
    /* The program has spawned this process or connected to it */
    if (g->rank[i] == MPI_UNDEFINED && !rc) rc = MPI_ERR_UNSUPPORTED_OPERATION;
    g->rank[i] += z_layout.offset; /* all others are of this cluster's world */
  }
  free(all);
  if (*native != MPI_GROUP_EMPTY) real.Group_free(native);
  if (rc) {
    free(g);
    return rc;
  }
  return publish(g, out);
}

int zgroup_native(MPI_Group handle, MPI_Group *out) {
  const zgroup *g = zgroup_get(handle);
  *out = handle;
  if (!g) return MPI_ERR_GROUP;
  if (g->size == 0) return MPI_SUCCESS;
  int *rank = malloc((size_t)g->size * sizeof *rank), rc = rank ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  for (int i = 0; i < g->size && !rc; i++) {
    if (!zcluster_has(g->rank[i])) rc = MPI_ERR_GROUP;
    rank[i] = g->rank[i] - z_layout.offset;
  }
  if (!rc) rc = include(g->size, rank, out);
  free(rank);
  return rc;
}

static int raise(const char *function, int class_) {
  return class_ ? z_raise(NULL, class_, function, class_ == MPI_ERR_GROUP ? "the group is not valid" : "wrong argument")
                : MPI_SUCCESS;
}

/* Returns the inverse of `rank`, an array of n numbers of processes in this process (z_processes;
 * the number of a rank of this job is its virtual rank). The result is a table that has, by number
 * of the process, its index in `rank`, or -1 if it is not there. The caller frees the table.
 * Returns NULL if memory is exhausted. */
static int32_t *positions(const int32_t *rank, int n) {
  size_t bytes = (size_t)z_processes() * sizeof(int32_t);
  int32_t *at = malloc(bytes);
  if (!at) return NULL;
  memset(at, 0xff, bytes);
  for (int i = 0; i < n; i++) at[rank[i]] = i;
  return at;
}

/* Makes the group of the members of ha that are in hb (want = 1) or are not in hb (want = 0), and
 * stores it in *out. With `more` the group has all members of ha, then those of hb that are not in
 * ha. Raises errors and returns the code for the program. */
static int combine(const char *function, MPI_Group ha, MPI_Group hb, int want, int more, MPI_Group *out) {
  const zgroup *a = zgroup_get(ha), *b = zgroup_get(hb);
  if (!a || !b) return raise(function, MPI_ERR_GROUP);
  zgroup *g = make(a->size + (more ? b->size : 0));
  int32_t *in = more ? positions(a->rank, a->size) : positions(b->rank, b->size);
  int n = 0;
  if (!g || !in) {
    free(g), free(in);
    return raise(function, MPI_ERR_NO_MEM);
  }
  for (int i = 0; i < a->size; i++)
    if (more || (in[a->rank[i]] >= 0) == want) g->rank[n++] = a->rank[i];
  for (int i = 0; more && i < b->size; i++)
    if (in[b->rank[i]] < 0) g->rank[n++] = b->rank[i];
  g->size = n, g->session = a->session;
  free(in);
  return raise(function, publish(g, out));
}

int z_Group_union(MPI_Group a, MPI_Group b, MPI_Group *out) { return combine("MPI_Group_union", a, b, 0, 1, out); }
int z_Group_intersection(MPI_Group a, MPI_Group b, MPI_Group *out) {
  return combine("MPI_Group_intersection", a, b, 1, 0, out);
}
int z_Group_difference(MPI_Group a, MPI_Group b, MPI_Group *out) {
  return combine("MPI_Group_difference", a, b, 0, 0, out);
}

/* Makes the group of the members of g with the n given ranks (include = 1), or of all other members
 * (0), and stores it in *out. Returns an MPI error code. */
static int pick(const zgroup *g, int n, const int ranks[], int include, MPI_Group *out) {
  char *taken = calloc((size_t)g->size + 1, 1);
  zgroup *r = make(include ? n : g->size);
  int rc = taken && r ? MPI_SUCCESS : MPI_ERR_NO_MEM, kept = 0;
  for (int i = 0; i < n && !rc; i++) {
    if (ranks[i] < 0 || ranks[i] >= g->size || taken[ranks[i]]) rc = MPI_ERR_RANK;
    else taken[ranks[i]] = 1;
    if (!rc && include) r->rank[kept++] = g->rank[ranks[i]];
  }
  for (int i = 0; i < g->size && !rc && !include; i++)
    if (!taken[i]) r->rank[kept++] = g->rank[i];
  free(taken);
  if (rc) {
    free(r);
    return rc;
  }
  r->size = kept, r->session = g->session;
  return publish(r, out);
}

static int pick_ranks(const char *function, MPI_Group h, int n, const int ranks[], int include, MPI_Group *out) {
  const zgroup *g = zgroup_get(h);
  if (!g) return raise(function, MPI_ERR_GROUP);
  if (n < 0 || (include && n > g->size)) return raise(function, n < 0 ? MPI_ERR_ARG : MPI_ERR_RANK);
  return raise(function, pick(g, n, ranks, include, out));
}

int z_Group_incl(MPI_Group h, int n, const int ranks[], MPI_Group *out) {
  return pick_ranks("MPI_Group_incl", h, n, ranks, 1, out);
}
int z_Group_excl(MPI_Group h, int n, const int ranks[], MPI_Group *out) {
  return pick_ranks("MPI_Group_excl", h, n, ranks, 0, out);
}

/* Stores in ranks the ranks that n triplets (first, last, stride) name, at most g->size of them,
 * and their number in *count. Returns an MPI error class. */
static int expand(const zgroup *g, int n, int triplets[][3], int *ranks, int *count) {
  *count = 0;
  for (int i = 0; i < n; i++) {
    int first = triplets[i][0], last = triplets[i][1], stride = triplets[i][2];
    if (stride == 0) return MPI_ERR_ARG;
    if (first < 0 || first >= g->size) return MPI_ERR_RANK;
    for (int64_t at = first; stride > 0 ? at <= last : at >= last; at += stride) {
      if (at < 0 || at >= g->size || *count == g->size) return MPI_ERR_RANK;
      ranks[(*count)++] = (int)at;
    }
  }
  return MPI_SUCCESS;
}

static int pick_ranges(const char *function, MPI_Group h, int n, int triplets[][3], int include, MPI_Group *out) {
  const zgroup *g = zgroup_get(h);
  if (!g) return raise(function, MPI_ERR_GROUP);
  int *ranks = malloc(((size_t)g->size + 1) * sizeof *ranks), count, rc = MPI_ERR_NO_MEM;
  if (ranks) rc = expand(g, n, triplets, ranks, &count);
  if (!rc) rc = pick(g, count, ranks, include, out);
  free(ranks);
  return raise(function, rc);
}

int z_Group_range_incl(MPI_Group h, int n, int ranges[][3], MPI_Group *out) {
  return pick_ranges("MPI_Group_range_incl", h, n, ranges, 1, out);
}
int z_Group_range_excl(MPI_Group h, int n, int ranges[][3], MPI_Group *out) {
  return pick_ranges("MPI_Group_range_excl", h, n, ranges, 0, out);
}

int z_Group_size(MPI_Group h, int *size) {
  const zgroup *g = zgroup_get(h);
  if (!g) return raise("MPI_Group_size", MPI_ERR_GROUP);
  *size = g->size;
  return MPI_SUCCESS;
}

int z_Group_rank(MPI_Group h, int *rank) {
  const zgroup *g = zgroup_get(h);
  if (!g) return raise("MPI_Group_rank", MPI_ERR_GROUP);
  *rank = zgroup_rank(g, z_layout.rank);
  return MPI_SUCCESS;
}

int z_Group_translate_ranks(MPI_Group ha, int n, const int ranks[], MPI_Group hb, int out[]) {
  const zgroup *a = zgroup_get(ha), *b = zgroup_get(hb);
  if (!a || !b) return raise("MPI_Group_translate_ranks", MPI_ERR_GROUP);
  int32_t *at = positions(b->rank, b->size);
  int rc = at ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  for (int i = 0; i < n && !rc; i++) {
    if (ranks[i] == MPI_PROC_NULL) out[i] = MPI_PROC_NULL;
    else if (ranks[i] < 0 || ranks[i] >= a->size) rc = MPI_ERR_RANK;
    else out[i] = at[a->rank[ranks[i]]] < 0 ? MPI_UNDEFINED : at[a->rank[ranks[i]]];
  }
  free(at);
  return raise("MPI_Group_translate_ranks", rc);
}

static int among(const int32_t *ranks, int n, int32_t rank) {
  for (int i = 0; i < n; i++)
    if (ranks[i] == rank) return 1;
  return 0;
}

int zranks_compare(const int32_t *a, const int32_t *b, int n) {
  if (!memcmp(a, b, (size_t)n * sizeof *a)) return MPI_IDENT;
  int32_t *at = positions(b, n); /* without memory for the table the comparison takes longer */
  int result = MPI_SIMILAR;
  for (int i = 0; i < n; i++)
    if (at ? at[a[i]] < 0 : !among(b, n, a[i])) result = MPI_UNEQUAL;
  free(at);
  return result;
}

int z_Group_compare(MPI_Group ha, MPI_Group hb, int *result) {
  const zgroup *a = zgroup_get(ha), *b = zgroup_get(hb);
  if (!a || !b) return raise("MPI_Group_compare", MPI_ERR_GROUP);
  *result = a->size == b->size ? zranks_compare(a->rank, b->rank, a->size) : MPI_UNEQUAL;
  return MPI_SUCCESS;
}

int z_Group_free(MPI_Group *h) {
  if (*h == MPI_GROUP_EMPTY) {
    *h = MPI_GROUP_NULL;
    return MPI_SUCCESS;
  }
  zgroup *g = zmap_remove(&groups, z_key(*h));
  if (!g) return raise("MPI_Group_free", MPI_ERR_GROUP);
  free(g);
  return raise("MPI_Group_free", real.Group_free(h));
}
