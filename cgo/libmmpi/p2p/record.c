/* zipper run --record: reports messages that are sent natively between ranks of this cluster. */
#include "p2p/p2p.h"

void p2p_record(MPI_Comm comm, int dest, int64_t count, MPI_Datatype type) {
  int size = 0;
  /* Native MPI reports the wrong type */
  if (type == MPI_DATATYPE_NULL || real.Type_size(type, &size)) return;
  int32_t to = z_record_number(comm, dest);
  if (to >= 0) Z_ENGINE(ze_record(to, count * size));
}
