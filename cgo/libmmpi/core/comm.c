/* Communicators that span clusters: look-up by native handle, allocation and release. */
#include "core/comm.h"
#include "core/error.h"
#include "core/status.h"
#include <limits.h>
#include <string.h>

zmap z_comms;
zcomm *z_whole;

zcomm *zcomm_find_other(MPI_Comm comm) { return (zcomm *)zmap_get(&z_comms, z_key(comm)); }

void zcomm_discard(zcomm *c) {
  free(c->world);
  free(c->native_of);
  free(c->rank_of);
  if (c->coll) c->coll->drop(c->coll);
  if (c->topo) c->topo->drop(c->topo);
  if (c->parts) c->parts->drop(c->parts);
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

int zcomm_follow(const zcomm *c, int32_t id) {
  return z_layout.on_loss ? z_error_class(Z_ENGINE(ze_follow(id, c->id))) : MPI_SUCCESS;
}

int zcomm_is_hurt(const zcomm *c) {
  int32_t lost = 0;
  if (!z_layout.on_loss) return 0;
  return Z_ENGINE(ze_revoked(c->id)) || Z_ENGINE(ze_failed(c->id, NULL, 0, &lost)) || lost > 0;
}

/* Receives and drops the messages that are left on the native communicator of c, so that no
 * communicator which gets the same context id later receives them. Returns whether none is left,
 * which a process knows only of messages to itself. */
static int drain(const zcomm *c) {
  while (c->native_size == 1) {
    MPI_Message message;
    MPI_Status status;
    int flag = 0;
    if (real.Improbe(0, MPI_ANY_TAG, c->native, &flag, &message, &status)) return 0;
    if (!flag) return 1;
    int64_t bytes = z_status_bytes(&status);
    void *data = bytes <= INT_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (!data) return 0;
    int rc = real.Mrecv(data, (int)bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    free(data);
    if (rc) return 0;
  }
  return 0;
}

void zcomm_destroy(zcomm *c) {
  MPI_Comm native = c->native;
  int hurt = zcomm_is_hurt(c);
  Z_ENGINE(ze_comm_drop(c->id));
  /* The map entry must go first: once the native communicator is freed, another thread may get the
   * same handle, possibly for a communicator that does not span clusters. */
  zmap_remove(&z_comms, z_key(native));
  /* native stages and messages that were left behind still use the communicator and its memory */
  if (hurt && !drain(c)) return;
  real.Comm_free(&native);
  zcomm_discard(c);
}
