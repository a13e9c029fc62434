/* Native communicators of our own, and what they have to do for Open MPI's libnbc, the part that
 * has its nonblocking collectives. */
#include "core/privcomm.h"
#include "core/error.h"
#include <pthread.h>

MPI_Comm z_private = MPI_COMM_NULL, z_self = MPI_COMM_NULL;

/* Not by MPI_Comm_dup: that of Open MPI agrees by a nonblocking collective on the parent. From then
 * on each turn of native progress looks for more of those, which makes a ping-pong 2 % slower.
 * MPI_Comm_create_group agrees by messages. */
int zprivate_dup(MPI_Comm from, MPI_Comm *out) {
  MPI_Group all;
  *out = MPI_COMM_NULL;
  int rc = real.Comm_group(from, &all);
  if (rc) return rc;
  rc = real.Comm_create_group(from, all, 0, out);
  real.Group_free(&all);
  return rc || *out != MPI_COMM_NULL ? rc : MPI_ERR_OTHER; /* as zcomm_made */
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

/* Open MPI 4.1's libnbc forgets its progress function when the last communicator that ever ran a
 * nonblocking collective is freed. A collective that is still pending then never completes.
 * Natively MPI_COMM_WORLD mostly prevents this, but in a zipped job a cluster of one process runs
 * nothing on it. So a communicator of ours runs one, before the program frees any. This is the
 * cheapest collective that is not empty for one process. */
static void keep_progressing(void) {
  int in = 0, out;
  MPI_Request request;
  if (!z_on_open_mpi()) return;
  if (!real.Ireduce_scatter_block(&in, &out, 1, MPI_INT, MPI_SUM, z_self, &request))
    z_must(real.Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

void zprivate_keep_progressing(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, keep_progressing);
}
