/* Native communicators of the shim's own, and a workaround for Open MPI's libnbc, which implements
 * its nonblocking collectives. */
#include "core/privcomm.h"
#include "core/error.h"
#include <pthread.h>

MPI_Comm z_private = MPI_COMM_NULL, z_self = MPI_COMM_NULL;

/* Makes *out a duplicate of a native communicator by MPI_Comm_create_group, which agrees by
 * messages. MPI_Comm_dup is not used, because Open MPI's agrees on the new context by a nonblocking
 * collective on the parent. From then on each turn of native progress polls libnbc too, which makes
 * a ping-pong 2 % slower. */
int zprivate_dup(MPI_Comm from, MPI_Comm *out) {
  MPI_Group all;
  *out = MPI_COMM_NULL;
  int rc = real.Comm_group(from, &all);
  if (rc) return rc;
  rc = real.Comm_create_group(from, all, 0, out);
  real.Group_free(&all);
  /* the handler has turned the error into MPI_SUCCESS; see zcomm_made */
  return rc || *out != MPI_COMM_NULL ? rc : MPI_ERR_OTHER;
}

int zprivate_start(void) {
  int rc = zprivate_dup(MPI_COMM_WORLD, &z_private);
  if (!rc) rc = zprivate_dup(MPI_COMM_SELF, &z_self);
  /* MPICH raises errors on MPI_COMM_WORLD unless the communicators have a handler of their own */
  if (!rc) rc = real.Comm_set_errhandler(z_private, MPI_ERRORS_RETURN);
  return rc ? rc : real.Comm_set_errhandler(z_self, MPI_ERRORS_RETURN);
}

void zprivate_stop(void) {
  real.Comm_free(&z_self);
  real.Comm_free(&z_private);
}

/* Open MPI 4.1's libnbc unregisters its progress function when the last communicator that ever ran
 * a nonblocking collective is freed. A collective that is still pending then never completes. In
 * native jobs MPI_COMM_WORLD usually prevents this, but in a zipped job a cluster of one process
 * runs no collective on it. So a communicator of the shim's runs one before the program frees a
 * communicator. Ireduce_scatter_block is the cheapest collective that does some work even for one
 * process. */
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
