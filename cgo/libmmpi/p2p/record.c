/* zipper run --record: what goes natively between ranks of this cluster is told, too. */
#include "p2p/p2p.h"

/* The number in the job of a rank of comm; -1: it is not of this cluster. */
static int32_t number(MPI_Comm comm, int rank) {
  MPI_Group peers, world;
  int inter = 0, there = MPI_UNDEFINED;
  if (real.Comm_test_inter(comm, &inter)) return -1;
  if (inter ? real.Comm_remote_group(comm, &peers) : real.Comm_group(comm, &peers)) return -1;
  if (!real.Comm_group(z_private, &world)) {
    int n = 0;
    if (real.Group_size(peers, &n) || rank >= n || real.Group_translate_ranks(peers, 1, &rank, world, &there))
      there = MPI_UNDEFINED;
    real.Group_free(&world);
  }
  real.Group_free(&peers);
  return there == MPI_UNDEFINED ? -1 : z_layout.offset + there;
}

void p2p_record(MPI_Comm comm, int dest, int64_t count, MPI_Datatype type) {
  int size = 0;
  /* Native MPI says what is wrong */
  if (type == MPI_DATATYPE_NULL || real.Type_size(type, &size)) return;
  int32_t to = number(comm, dest);
  if (to >= 0) z_eng.ze_record(to, count * size);
}

void p2p_record_taken(MPI_Comm comm, int source) {
  int32_t from = number(comm, source);
  if (from >= 0) z_eng.ze_record_taken(from);
}
