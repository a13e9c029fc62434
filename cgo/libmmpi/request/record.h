/* zipper run --record: messages between ranks of this cluster, which native MPI carries. */
#ifndef ZIPPER_RECORD_H
#define ZIPPER_RECORD_H
#include "core/job.h"

#pragma GCC visibility push(hidden)

/* The number in the job of a rank of comm, a communicator of this cluster or a spanning one's local
 * part; -1: it is not of this cluster. */
int32_t z_record_number(MPI_Comm comm, int rank);

/* Notes that a message of a native rank of comm has been received. From MPI_ANY_SOURCE: from whom
 * the native status says, if the program has one; else nobody knows, and the times of messages of
 * that pair are not recorded. */
static inline void z_note_taken(MPI_Comm comm, int source, const MPI_Status *status) {
  if (!__builtin_expect(z_layout.recording, 0)) return;
  if (source == MPI_ANY_SOURCE && status != MPI_STATUS_IGNORE) source = status->MPI_SOURCE;
  int32_t from = source < 0 ? -1 : z_record_number(comm, source);
  if (from >= 0) Z_ENGINE(ze_record_taken(from));
}

#pragma GCC visibility pop
#endif
