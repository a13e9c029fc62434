/* Arguments that are kept or narrowed: see collargs.h. */
#include "wrap/collargs.h"
#include "topo/topo.h"
#include "type/op.h"
#include <limits.h>
#include <stddef.h>
#include <string.h>

struct zpiece {
  struct zpiece *next;
  MPI_Datatype type; /* to be freed; MPI_DATATYPE_NULL: none */
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

int zargs_int(zargs *k, int64_t wide) {
  if (wide > INT_MAX || wide < INT_MIN) {
    if (!k->rc) k->rc = MPI_ERR_COUNT;
    return 0;
  }
  return (int)wide;
}

const int *zargs_ints(zargs *k, const void *wide, int counts, enum zeach each) {
  _Static_assert(sizeof(MPI_Count) == 8 && sizeof(MPI_Aint) == 8, "counts and addresses of 64 bits");
  if (!counts || !wide) return NULL;
  int n = length(k, each), *out = grab(k, (size_t)n * sizeof *out, MPI_DATATYPE_NULL);
  for (int i = 0; i < n && out; i++) {
    int64_t x;
    memcpy(&x, (const char *)wide + 8 * (size_t)i, 8);
    out[i] = zargs_int(k, x);
  }
  return out;
}

MPI_Datatype zargs_type(zargs *k, MPI_Datatype type, int counts) {
  MPI_Datatype held;
  const ztype *t = counts && type != MPI_DATATYPE_NULL ? ztype_get(type) : NULL;
  /* One that is wrong is found when the collective starts */
  if (!t || t->predefined || real.Type_dup(type, &held)) return type;
  if (!grab(k, 0, held)) real.Type_free(&held);
  return k->rc ? type : held;
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
    if (p->type != MPI_DATATYPE_NULL) real.Type_free(&p->type);
    free(p);
  }
  if (k->op != MPI_OP_NULL) zop_release(k->op);
  k->pieces = NULL, k->op = MPI_OP_NULL;
}

int zargs_refuse(zargs *k, const char *function) {
  zargs_free(k);
  return z_raise(
      k->comm, k->rc, function, "%s",
      k->rc == MPI_ERR_COUNT
          ? "counts and displacements above 2147483647 are not supported by MMPI on a communicator that spans clusters"
          : zcoll_wrong(k->rc));
}
