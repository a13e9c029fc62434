/* Workarounds for UCX below MPICH, in MPI_Finalize. */
#define _GNU_SOURCE
#include "core/job.h"
#include "start/start.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

#if defined(MPICH) && !defined(OPEN_MPI)
typedef void free_fn(void *object);

/* UCX 1.13.1 below MPICH 4.0.2 (Debian 12) hangs in MPI_Finalize in about one run of four over TCP,
 * because it waits for a disconnection that the peer has already completed. In a zipped job, and
 * with this version only, the disconnection is therefore skipped. All processes of the cluster have
 * passed the shim's barrier by then, so nothing is in flight, and the end of the process closes the
 * connection. */
EXPORT void *ucp_disconnect_nb(void *endpoint);
void *ucp_disconnect_nb(void *endpoint) {
  unsigned major = 0, minor = 0, release = 0;
  void (*version)(unsigned *, unsigned *, unsigned *) =
      (void (*)(unsigned *, unsigned *, unsigned *))dlsym(RTLD_NEXT, "ucp_get_version");
  void *(*next)(void *) = (void *(*)(void *))dlsym(RTLD_NEXT, "ucp_disconnect_nb");
  if (version) version(&major, &minor, &release);
  if (!next || (zjob_finalizing && major == 1 && minor == 13 && release == 1)) return NULL;
  return next(endpoint);
}

/* In a job that goes on when a cluster is lost, native operations that the loss or a revocation has
 * ended may be left behind. UCX warns of them when it frees its memory, and UCX 1.20 (MPICH 5)
 * aborts the process. So the memory is left to the end of the process there. */
static void free_unless_left(const char *name, void *object) {
  free_fn *next = (free_fn *)dlsym(RTLD_NEXT, name);
  if (next && !(zjob_finalizing && z_layout.on_loss)) next(object);
}

EXPORT free_fn ucp_worker_destroy, ucp_cleanup;
void ucp_worker_destroy(void *worker) { free_unless_left("ucp_worker_destroy", worker); }
void ucp_cleanup(void *context) { free_unless_left("ucp_cleanup", context); }
#endif
