/* Operators: which are predefined, and which are in use. */
#include "type/op.h"
#include "abi.h"
#include "core/job.h"
#include "core/map.h"

int zop_fn(MPI_Op op) {
  if (op == MPI_REPLACE) return Z_REPLACE;
  if (op == MPI_NO_OP) return Z_NO_OP;
  if (op == MPI_MAX) return Z_MAX;
  if (op == MPI_MIN) return Z_MIN;
  if (op == MPI_SUM) return Z_SUM;
  if (op == MPI_PROD) return Z_PROD;
  if (op == MPI_LAND) return Z_LAND;
  if (op == MPI_BAND) return Z_BAND;
  if (op == MPI_LOR) return Z_LOR;
  if (op == MPI_BOR) return Z_BOR;
  if (op == MPI_LXOR) return Z_LXOR;
  if (op == MPI_BXOR) return Z_BXOR;
  if (op == MPI_MAXLOC) return Z_MAXLOC;
  if (op == MPI_MINLOC) return Z_MINLOC;
  return 0;
}

/* Operators that nonblocking and persistent reductions use. The program may free them meanwhile,
 * but the native library must not. */
typedef struct use {
  MPI_Op op;
  int count, freed;
} use;

static zmap uses; /* operator → use */
static pthread_mutex_t uses_lock = PTHREAD_MUTEX_INITIALIZER;

void zop_retain(MPI_Op op) {
  z_lock(&uses_lock);
  use *u = zmap_get(&uses, z_key(op));
  if (!u) {
    if (!(u = calloc(1, sizeof *u))) z_no_memory("an operator in use");
    u->op = op;
    zmap_put(&uses, z_key(op), u);
  }
  u->count++;
  z_unlock(&uses_lock);
}

void zop_release(MPI_Op op) {
  z_lock(&uses_lock);
  use *u = zmap_get(&uses, z_key(op));
  if (u && --u->count == 0) {
    zmap_remove(&uses, z_key(op));
    if (u->freed) real.Op_free(&u->op);
    free(u);
  }
  z_unlock(&uses_lock);
}

int z_Op_free(MPI_Op *op) {
  z_lock(&uses_lock);
  use *u = zmap_get(&uses, z_key(*op));
  if (u) u->freed = 1;
  z_unlock(&uses_lock);
  if (!u) return real.Op_free(op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}
