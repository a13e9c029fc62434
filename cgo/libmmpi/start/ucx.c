/* A workaround for a fault of UCX below MPICH. */
#define _GNU_SOURCE
#include "start/start.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

#if defined(MPICH) && !defined(OPEN_MPI)
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
#endif
