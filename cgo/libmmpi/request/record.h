/* zipper run --record: messages between ranks of this cluster, which native MPI carries. */
#ifndef ZIPPER_RECORD_H
#define ZIPPER_RECORD_H
#include "core/job.h"

#pragma GCC visibility push(hidden)

/* Returns the virtual rank of a rank of comm, which is a communicator of this cluster or the local
 * part of a spanning one. Returns -1 if the rank is not in this cluster. */
int32_t z_record_number(MPI_Comm comm, int rank);

/* Reports to zipper run --record that a message of native rank `source` of comm has been received.
 * For MPI_ANY_SOURCE the source is taken from the native status. If the program has passed none the
 * source is unknown, and the times of that pair's messages are not recorded. */
static inline void z_note_taken(MPI_Comm comm, int source, const MPI_Status *status) {
  if (!__builtin_expect(z_layout.recording, 0)) return;
  if (source == MPI_ANY_SOURCE && status != MPI_STATUS_IGNORE) source = status->MPI_SOURCE;
  int32_t from = source < 0 ? -1 : z_record_number(comm, source);
  if (from >= 0) Z_ENGINE(ze_record_taken(from));
}

#pragma GCC visibility pop
#endif
