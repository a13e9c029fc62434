/* MPI's fault tolerance (ULFM, MPIX_…) is not supported in a zipped job on any communicator, and
 * each of its functions reports this (docs/reference/fault-tolerance.md). Functions that mpi.h
 * declares have generated wrappers. The others, which Open MPI 5 declares elsewhere, would be
 * called on the local part of a communicator without the shim, so the shim defines symbols for
 * them. */
#define _GNU_SOURCE
#include "core/error.h"
#include <dlfcn.h>

/* Raises the error that `function` is not supported on comm, and returns its code; the other
 * arguments are ignored. */
static int absent(MPI_Comm comm, const char *function, ...) {
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "MMPI has no fault tolerance (ULFM): a process that fails ends the job");
}

#define REFUSED(NAME, PARAMETERS, ...) \
  int z_X_##NAME PARAMETERS { return absent(comm, "MPIX_" #NAME, __VA_ARGS__); }

#define SYMBOL(NAME, PARAMETERS, ...)                                                           \
  __attribute__((visibility("default"))) int PMPIX_##NAME PARAMETERS;                           \
  int PMPIX_##NAME PARAMETERS {                                                                 \
    int(*next) PARAMETERS = (int(*) PARAMETERS)dlsym(RTLD_NEXT, "PMPIX_" #NAME);                \
    return !z_is_off() || !next ? absent(comm, "MPIX_" #NAME, __VA_ARGS__) : next(__VA_ARGS__); \
  }                                                                                             \
  extern __typeof__(PMPIX_##NAME) MPIX_##NAME __attribute__((alias("PMPIX_" #NAME), visibility("default")));

/* Chooses REFUSED for a function that mpi.h declares, otherwise SYMBOL. For a declared function
 * Z_HAVE_X_… is 1 and expands to a comma, which shifts the choice. */
#define COMMA_1 ,
#define PASTE(X) COMMA_##X
#define PROBE(X) PASTE(X)
#define SECOND(A, B, ...) B
#define CHOICE(...) SECOND(__VA_ARGS__)
#define ABSENT(NAME, PARAMETERS, ...) CHOICE(PROBE(Z_HAVE_X_##NAME) REFUSED, SYMBOL, 0)(NAME, PARAMETERS, __VA_ARGS__)

ABSENT(Comm_revoke, (MPI_Comm comm), comm)
ABSENT(Comm_shrink, (MPI_Comm comm, MPI_Comm *out), comm, out)
ABSENT(Comm_agree, (MPI_Comm comm, int *flag), comm, flag)
ABSENT(Comm_failure_ack, (MPI_Comm comm), comm)
ABSENT(Comm_failure_get_acked, (MPI_Comm comm, MPI_Group *out), comm, out)
ABSENT(Comm_is_revoked, (MPI_Comm comm, int *flag), comm, flag)
ABSENT(Comm_get_failed, (MPI_Comm comm, MPI_Group *out), comm, out)
ABSENT(Comm_ack_failed, (MPI_Comm comm, int n, int *acked), comm, n, acked)
ABSENT(Comm_ishrink, (MPI_Comm comm, MPI_Comm *out, MPI_Request *request), comm, out, request)
ABSENT(Comm_iagree, (MPI_Comm comm, int *flag, MPI_Request *request), comm, flag, request)
