/* zipper run --record: what goes natively between ranks of this cluster is counted, too. */
#include "p2p/p2p.h"

void p2p_record(MPI_Comm comm, int dest, int64_t count, MPI_Datatype type) {
  MPI_Group peers, world;
  int inter = 0, size = 0, rank = MPI_UNDEFINED;
  /* Native MPI says what is wrong */
  if (type == MPI_DATATYPE_NULL || real.Type_size(type, &size) || real.Comm_test_inter(comm, &inter)) return;
  if (inter ? real.Comm_remote_group(comm, &peers) : real.Comm_group(comm, &peers)) return;
  if (!real.Comm_group(z_private, &world)) {
    int n = 0;
    if (!real.Group_size(peers, &n) && dest < n && !real.Group_translate_ranks(peers, 1, &dest, world, &rank) &&
        rank != MPI_UNDEFINED)
      z_eng.ze_record(z_layout.offset + rank, count * size);
    real.Group_free(&world);
  }
  real.Group_free(&peers);
}
