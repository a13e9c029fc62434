/* Operators and datatypes in use; see use.h. */
#include "type/use.h"
#include "core/job.h"
#include "core/map.h"
#include "type/type.h"

/* How often an operator or a datatype is in use by calls in progress. */
typedef struct use {
  int count; /* the number of calls that use it */
  /* 1 if the program has freed the handle, so that the object must be freed after its last use */
  int freed;
} use;

/* The maps from the handles of operators and of datatypes in use to their `use`. */
static zmap ops, types;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void retain(zmap *uses, uint64_t key) {
  z_lock(&lock);
  use *u = zmap_get(uses, key);
  if (!u) {
    if (!(u = calloc(1, sizeof *u))) z_no_memory("a handle in use");
    zmap_put(uses, key, u);
  }
  u->count++;
  z_unlock(&lock);
}

/* Drops one use of the object with this key. Returns 1 if it was the last use of an object that the
 * program has freed, so that the caller frees the native object; otherwise 0. */
static int release(zmap *uses, uint64_t key) {
  int freed = 0;
  z_lock(&lock);
  use *u = zmap_get(uses, key);
  if (u && --u->count == 0) {
    zmap_remove(uses, key);
    freed = u->freed;
    free(u);
  }
  z_unlock(&lock);
  return freed;
}

/* Marks the object with this key as freed by the program, if it is in use. Returns 1 if it is; its
 * last release frees it then. Otherwise returns 0, and the caller frees it. */
static int free_later(zmap *uses, uint64_t key) {
  if (!zmap_count(uses)) return 0;
  z_lock(&lock);
  use *u = zmap_get(uses, key);
  if (u) u->freed = 1;
  z_unlock(&lock);
  return u != NULL;
}

void zop_retain(MPI_Op op) { retain(&ops, z_key(op)); }

void zop_release(MPI_Op op) {
  if (release(&ops, z_key(op))) real.Op_free(&op);
}

int z_Op_free(MPI_Op *op) {
  if (!free_later(&ops, z_key(*op))) return real.Op_free(op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

void ztype_retain(MPI_Datatype type) {
  const ztype *t = ztype_get(type);
  if (type != MPI_DATATYPE_NULL && !(t && t->predefined)) retain(&types, z_key(type));
}

void ztype_release(MPI_Datatype type) {
  if (release(&types, z_key(type))) real.Type_free(&type);
}

int z_Type_free(MPI_Datatype *type) {
  if (!free_later(&types, z_key(*type))) return real.Type_free(type);
  *type = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

void ztype_end(zmany *m) {
  if (m->made) z_Type_free(&m->type);
  m->made = 0;
}
