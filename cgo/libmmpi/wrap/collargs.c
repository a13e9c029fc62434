/* Arguments that are copied or narrowed; see collargs.h. */
#include "wrap/collargs.h"
#include "topo/topo.h"
#include "type/use.h"
#include <limits.h>
#include <stddef.h>
#include <string.h>

struct zpiece {
  struct zpiece *next;
  /* The type that is dropped when the piece is freed: the type itself is freed if `made` is 1,
   * otherwise its use is dropped (ztype_release). MPI_DATATYPE_NULL: the piece has no type. */
  MPI_Datatype type;
  int made;
  /* 1 if the address of `bytes` is a key of z_wide, which is removed with the piece */
  int wide;
  _Alignas(max_align_t) char bytes[];
};

static void *grab(zargs *k, size_t bytes, MPI_Datatype type) {
  struct zpiece *p = calloc(1, sizeof *p + bytes);
  if (!p) {
    if (!k->rc) k->rc = MPI_ERR_NO_MEM;
    return NULL;
  }
  p->next = k->pieces, p->type = type;
  k->pieces = p;
  return p->bytes;
}

static int length(zargs *k, enum zeach each) {
  if (each == Z_PEERS) return k->comm->peers;
  if (each == Z_MEMBERS) return zcomm_members(k->comm);
  const ztopo *t = ztopo_of(k->comm);
  int in = 0, out = 0, *sources = NULL, *dests = NULL,
      rc = t ? ztopo_neighbors(t, k->comm->rank, &in, &sources, &out, &dests) : MPI_ERR_TOPOLOGY;
  if (rc && !k->rc) k->rc = rc;
  if (dests != sources) free(dests);
  free(sources);
  return rc ? 0 : each == Z_SOURCES ? in : out;
}

MPI_Datatype zargs_many(zargs *k, int64_t n, MPI_Datatype type, int *count) {
  zmany m = {type, (int)n, 0};
  *count = n < 0 ? -1 : (int)n;
  if (n <= INT_MAX) return type;
  int rc = zmany_begin(&m, n, type);
  if (rc && !k->rc) k->rc = rc;
  *count = m.count;
  if (rc || !grab(k, 0, m.type)) {
    if (!rc) zmany_end(&m);
    return type;
  }
  k->pieces->made = 1;
  return m.type;
}

const int *zargs_ints(zargs *k, const void *wide, int counts, enum zeach each) {
  _Static_assert(sizeof(MPI_Count) == 8 && sizeof(MPI_Aint) == 8, "counts and addresses of 64 bits");
  if (!counts || !wide) return NULL;
  int n = length(k, each), *out = grab(k, (size_t)n * sizeof *out, MPI_DATATYPE_NULL), fit = 1;
  for (int i = 0; i < n && out; i++) {
    int64_t x;
    memcpy(&x, (const char *)wide + 8 * (size_t)i, 8);
    out[i] = (int)x;
    fit &= x == out[i];
  }
  int64_t *kept = fit ? NULL : grab(k, (size_t)n * sizeof *kept, MPI_DATATYPE_NULL);
  if (!kept) return out;
  memcpy(kept, wide, (size_t)n * sizeof *kept);
  ((struct zpiece *)((char *)out - offsetof(struct zpiece, bytes)))->wide = 1;
  zmap_put(&z_wide, z_key(out), kept);
  return out;
}

MPI_Datatype zargs_type(zargs *k, MPI_Datatype type, int counts) {
  /* An invalid type is reported when the collective starts */
  if (counts && type != MPI_DATATYPE_NULL && grab(k, 0, type)) ztype_retain(type);
  return type;
}

const MPI_Datatype *zargs_types(zargs *k, const MPI_Datatype *types, int counts, enum zeach each) {
  if (!counts || !types) return types;
  int n = length(k, each);
  MPI_Datatype *out = grab(k, (size_t)n * sizeof *out, MPI_DATATYPE_NULL);
  for (int i = 0; i < n && out; i++) out[i] = zargs_type(k, types[i], 1);
  return out;
}

MPI_Op zargs_op(zargs *k, MPI_Op op) {
  if (op != MPI_OP_NULL) zop_retain(op);
  k->op = op;
  return op;
}

void zargs_free(zargs *k) {
  for (struct zpiece *p = k->pieces, *next; p; p = next) {
    next = p->next;
    if (p->made) z_Type_free(&p->type); /* a started collective may still use it */
    else if (p->type != MPI_DATATYPE_NULL) ztype_release(p->type);
    if (p->wide) zmap_remove(&z_wide, z_key(p->bytes));
    free(p);
  }
  if (k->op != MPI_OP_NULL) zop_release(k->op);
  k->pieces = NULL, k->op = MPI_OP_NULL;
}

int zargs_refuse(zargs *k, const char *function) {
  zargs_free(k);
  return z_raise(k->comm, k->rc, function, "%s", zcoll_wrong(k->rc));
}
