#include "request/record.h"
#include "core/privcomm.h"

int32_t z_record_number(MPI_Comm comm, int rank) {
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
