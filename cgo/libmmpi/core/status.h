/* Statuses of messages that did not come through native MPI, and ranks in those that did. */
#ifndef ZIPPER_STATUS_H
#define ZIPPER_STATUS_H
#include "core/comm.h"

#pragma GCC visibility push(hidden)

/* Fills in *status. `source` and `tag` may be Z_ANY_SOURCE, Z_PROC_NULL and Z_ANY_TAG, `error` is
 * an MPI error code, `bytes` is the size of the message, and `cancelled` is 1 if the operation was
 * cancelled. In all functions of this file the status to be written may be MPI_STATUS_IGNORE. */
void z_status_set(MPI_Status *status, int source, int tag, int error, int64_t bytes, int cancelled);
/* Makes *status an empty status, as MPI defines it for an inactive request. */
void z_status_empty(MPI_Status *status);
/* Replaces the source in *status, a native rank of c's local part, by the number by which the
 * program names that peer in c. */
void z_status_translate(const zcomm *c, MPI_Status *status);
/* Copies all fields of *from to *to except MPI_ERROR, which stays as it is in *to. */
void z_status_copy(MPI_Status *to, const MPI_Status *from);
/* Returns the size in bytes of the message that a status describes, or 0 if native MPI cannot tell
 * it. */
int64_t z_status_bytes(const MPI_Status *status);

#pragma GCC visibility pop
#endif
