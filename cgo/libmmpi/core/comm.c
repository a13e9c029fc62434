/* Communicators that span clusters: where they are found, their memory and their end. */
#include "core/comm.h"
#include <string.h>

zmap z_comms;
zcomm *z_whole;

/* With threads: the one that this thread is freeing natively, which z_comms has no more */
static _Thread_local zcomm *dying;

zcomm *zcomm_find_other(MPI_Comm comm) {
  zcomm *c = (zcomm *)zmap_get(&z_comms, z_key(comm));
  return c || !z_threads || !dying || dying->native != comm ? c : dying;
}

void zcomm_discard(zcomm *c) {
  free(c->world);
  free(c->native_of);
  free(c->rank_of);
  if (c->coll) c->coll->drop(c->coll);
  if (c->topo) c->topo->drop(c->topo);
  free(c);
}

zcomm *zcomm_make(MPI_Comm native, uint64_t context, const int32_t *world, int size) {
  zcomm *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  *c = (zcomm){.native = native, .context = context, .size = size, .refs = 1, .rank = -1, .native_rank = -1};
  c->world = malloc((size_t)size * sizeof *c->world);
  c->native_of = malloc((size_t)size * sizeof *c->native_of);
  c->rank_of = malloc((size_t)size * sizeof *c->rank_of);
  if (!c->world || !c->native_of || !c->rank_of) {
    zcomm_discard(c);
    return NULL;
  }
  c->peers = size;
  memcpy(c->world, world, (size_t)size * sizeof *world);
  for (int i = 0; i < size; i++) {
    int local = zcluster_has(world[i]);
    if (world[i] == z_layout.rank) c->rank = i, c->native_rank = c->native_size;
    c->native_of[i] = local ? c->native_size : Z_REMOTE;
    if (local) c->rank_of[c->native_size++] = i;
  }
  return c;
}

void zcomm_destroy(zcomm *c) {
  MPI_Comm native = c->native;
  zcomm *outer = dying;
  z_eng.ze_comm_drop(c->id);
  /* The handle may come back at once in another thread, for a communicator that does not span
   * perhaps */
  if (z_threads) zmap_remove(&z_comms, z_key(native));
  dying = c;
  real.Comm_free(&native); /* attribute callbacks may still ask c's size and rank */
  dying = outer;
  if (!z_threads) zmap_remove(&z_comms, z_key(c->native));
  zcomm_discard(c);
}
