/* Native communicators of our own, and what Open MPI's libnbc, which has its nonblocking
 * collectives, asks of us. */
#include "core/privcomm.h"
#include <pthread.h>

MPI_Comm z_private = MPI_COMM_NULL, z_self = MPI_COMM_NULL;

/* Not MPI_Comm_dup: Open MPI's agrees by a nonblocking collective on the parent, and from then on
 * each turn of native progress, of which a local message takes several, looks for more of those: 2
 * % of a ping-pong. This one agrees by messages. */
int zprivate_dup(MPI_Comm from, MPI_Comm *out) {
  MPI_Group all;
  int rc = real.Comm_group(from, &all);
  if (rc) return rc;
  rc = real.Comm_create_group(from, all, 0, out);
  real.Group_free(&all);
  return rc;
}

int zprivate_start(void) {
  int rc = zprivate_dup(MPI_COMM_WORLD, &z_private);
  if (!rc) rc = zprivate_dup(MPI_COMM_SELF, &z_self);
  /* Else what fails here is raised on MPI_COMM_WORLD: MPICH does so */
  if (!rc) rc = real.Comm_set_errhandler(z_private, MPI_ERRORS_RETURN);
  return rc ? rc : real.Comm_set_errhandler(z_self, MPI_ERRORS_RETURN);
}

void zprivate_stop(void) {
  real.Comm_free(&z_self);
  real.Comm_free(&z_private);
}

/* Open MPI 4.1's libnbc takes its progress function off the list when the last communicator that
 * ever ran a nonblocking collective is freed, even if one is still pending there: that one never
 * completes. Natively MPI_COMM_WORLD mostly prevents this; zipped, a cluster of one process does
 * nothing on it. So ours does, before the program frees any. Of the collectives that are no empty
 * operation for one process, this is the least. */
static void keep_progressing(void) {
  int in = 0, out;
  MPI_Request request;
  if (!z_on_open_mpi()) return;
  if (!real.Ireduce_scatter_block(&in, &out, 1, MPI_INT, MPI_SUM, z_self, &request))
    real.Wait(&request, MPI_STATUS_IGNORE);
}

void zprivate_keep_progressing(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, keep_progressing);
}
