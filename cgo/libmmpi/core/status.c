/* Statuses of messages that did not come through native MPI, and ranks in those that did. */
#include "core/status.h"
#include "core/error.h"

void z_status_set(MPI_Status *status, int source, int tag, int error, int64_t bytes, int cancelled) {
  if (status == MPI_STATUS_IGNORE) return;
  z_must(real.Status_set_elements_x(status, MPI_BYTE, bytes), "MPI_Status_set_elements_x");
  z_must(real.Status_set_cancelled(status, cancelled), "MPI_Status_set_cancelled");
  status->MPI_SOURCE = source == Z_ANY_SOURCE ? MPI_ANY_SOURCE : source == Z_PROC_NULL ? MPI_PROC_NULL : source;
  status->MPI_TAG = tag == Z_ANY_TAG ? MPI_ANY_TAG : tag;
  status->MPI_ERROR = error;
}

void z_status_empty(MPI_Status *status) { z_status_set(status, Z_ANY_SOURCE, Z_ANY_TAG, MPI_SUCCESS, 0, 0); }

void z_status_translate(const zcomm *c, MPI_Status *status) {
  if (status == MPI_STATUS_IGNORE) return;
  if (status->MPI_SOURCE >= 0 && status->MPI_SOURCE < c->native_size)
    status->MPI_SOURCE = c->rank_of[status->MPI_SOURCE] - c->base;
}

void z_status_copy(MPI_Status *to, const MPI_Status *from) {
  if (to == MPI_STATUS_IGNORE) return;
  int error = to->MPI_ERROR; /* completions of a single request leave MPI_ERROR unchanged */
  *to = *from;
  to->MPI_ERROR = error;
}

int64_t z_status_bytes(const MPI_Status *status) {
  MPI_Count n = 0;
  if (real.Get_elements_x(status, MPI_BYTE, &n) || n == MPI_UNDEFINED) return 0;
  return n;
}
