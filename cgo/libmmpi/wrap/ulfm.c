/* MPI's fault tolerance (ULFM, MPIX_…): not there in a zipped job, on no communicator, and each
 * function says so; docs/fault-tolerance.md. Those that mpi.h declares have generated wrappers; the
 * others, which Open MPI 5 declares elsewhere, would go past us to the local part of a communicator
 * alone, and are symbols of ours. */
#define _GNU_SOURCE
#include "core/error.h"
#include <dlfcn.h>

/* What else the function was given is of no use. */
static int absent(MPI_Comm comm, const char *function, ...) {
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "MMPI has no fault tolerance (ULFM): a process that fails ends the job");
}

#define REFUSED(NAME, PARAMETERS, ...) \
  int z_X_##NAME PARAMETERS { return absent(comm, "MPIX_" #NAME, __VA_ARGS__); }

#define SYMBOL(NAME, PARAMETERS, ...)                                                    \
  __attribute__((visibility("default"))) int PMPIX_##NAME PARAMETERS;                    \
  int PMPIX_##NAME PARAMETERS {                                                          \
    int(*next) PARAMETERS = (int(*) PARAMETERS)dlsym(RTLD_NEXT, "PMPIX_" #NAME);         \
    return z_on || !next ? absent(comm, "MPIX_" #NAME, __VA_ARGS__) : next(__VA_ARGS__); \
  }                                                                                      \
  extern __typeof__(PMPIX_##NAME) MPIX_##NAME __attribute__((alias("PMPIX_" #NAME), visibility("default")));

#ifdef Z_HAVE_X_Comm_revoke
#define DECLARED REFUSED
#else
#define DECLARED SYMBOL
#endif

DECLARED(Comm_revoke, (MPI_Comm comm), comm)
DECLARED(Comm_shrink, (MPI_Comm comm, MPI_Comm *out), comm, out)
DECLARED(Comm_agree, (MPI_Comm comm, int *flag), comm, flag)
DECLARED(Comm_failure_ack, (MPI_Comm comm), comm)
DECLARED(Comm_failure_get_acked, (MPI_Comm comm, MPI_Group *out), comm, out)
SYMBOL(Comm_is_revoked, (MPI_Comm comm, int *flag), comm, flag)
SYMBOL(Comm_get_failed, (MPI_Comm comm, MPI_Group *out), comm, out)
SYMBOL(Comm_ack_failed, (MPI_Comm comm, int n, int *acked), comm, n, acked)
SYMBOL(Comm_ishrink, (MPI_Comm comm, MPI_Comm *out, MPI_Request *request), comm, out, request)
SYMBOL(Comm_iagree, (MPI_Comm comm, int *flag, MPI_Request *request), comm, flag, request)
