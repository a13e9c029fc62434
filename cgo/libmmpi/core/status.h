/* Statuses of messages that did not come through native MPI, and ranks in those that did. */
#ifndef ZIPPER_STATUS_H
#define ZIPPER_STATUS_H
#include "core/comm.h"

#pragma GCC visibility push(hidden)

/* status may be MPI_STATUS_IGNORE */
void z_status_set(MPI_Status *status, int source, int tag, int error, int64_t bytes, int cancelled);
void z_status_empty(MPI_Status *status);
void z_status_translate(const zcomm *c, MPI_Status *status); /* native MPI_SOURCE → peer of c */
void z_status_copy(MPI_Status *to, const MPI_Status *from);  /* all but MPI_ERROR; to may be MPI_STATUS_IGNORE */
int64_t z_status_bytes(const MPI_Status *status);

#pragma GCC visibility pop
#endif
