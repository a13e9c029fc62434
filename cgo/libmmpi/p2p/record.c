/* zipper run --record: what is sent natively between ranks of this cluster is told, too. */
#include "p2p/p2p.h"

void p2p_record(MPI_Comm comm, int dest, int64_t count, MPI_Datatype type) {
  int size = 0;
  /* Native MPI says what is wrong */
  if (type == MPI_DATATYPE_NULL || real.Type_size(type, &size)) return;
  int32_t to = z_record_number(comm, dest);
  if (to >= 0) Z_ENGINE(ze_record(to, count * size));
}
