/* The names by which programs call the functions of failure.h: MPI_, on which the standard votes,
 * and MPIX_, which MPI libraries have. Functions that mpi.h declares have generated wrappers, which
 * call z_… here. The others, some of which Open MPI 5 declares elsewhere, would be called on the
 * local part of a communicator without the shim, so the shim defines symbols for them. */
#define _GNU_SOURCE
#include "failure/failure.h"
#include <dlfcn.h>

/* Raises the error that the MPI library of a process that is in no job lacks a function. */
static int lacking(MPI_Comm comm, const char *function) {
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "this MPI library has no such function; a job that zipper run starts with --on-loss continue has");
}

#define DECLARED(ID, NAME, PARAMETERS, ARGUMENTS, DO, ...) \
  int z_##ID PARAMETERS { return DO(__VA_ARGS__, #NAME); }

#define SYMBOL(ID, NAME, PARAMETERS, ARGUMENTS, DO, ...)                             \
  __attribute__((visibility("default"))) int P##NAME PARAMETERS;                     \
  int P##NAME PARAMETERS {                                                           \
    int(*next) PARAMETERS = (int(*) PARAMETERS)dlsym(RTLD_NEXT, "P" #NAME);          \
    if (z_is_apart()) return z_refuse(#NAME);                                        \
    if (z_is_off() || z_inside) return next ? next ARGUMENTS : lacking(comm, #NAME); \
    z_called(#NAME);                                                                 \
    return DO(__VA_ARGS__, #NAME);                                                   \
  }                                                                                  \
  extern __typeof__(P##NAME) NAME __attribute__((alias("P" #NAME), visibility("default")));

/* Chooses DECLARED for a function that mpi.h declares, otherwise SYMBOL. For a declared function
 * Z_HAVE_… is 1 and expands to a comma, which shifts the choice. */
#define COMMA_1 ,
#define PASTE(X) COMMA_##X
#define PROBE(X) PASTE(X)
#define SECOND(A, B, ...) B
#define CHOICE(...) SECOND(__VA_ARGS__)
#define FUNCTION(NAME, ...)                        \
  CHOICE(PROBE(Z_HAVE_##NAME) DECLARED, SYMBOL, 0) \
  (NAME, MPI_##NAME, __VA_ARGS__) CHOICE(PROBE(Z_HAVE_X_##NAME) DECLARED, SYMBOL, 0)(X_##NAME, MPIX_##NAME, __VA_ARGS__)

FUNCTION(Comm_revoke, (MPI_Comm comm), (comm), zfailure_revoke, comm)
FUNCTION(Comm_is_revoked, (MPI_Comm comm, int *flag), (comm, flag), zfailure_is_revoked, comm, flag)
FUNCTION(Comm_get_failed, (MPI_Comm comm, MPI_Group *out), (comm, out), zfailure_get_failed, comm, out)
FUNCTION(Comm_ack_failed, (MPI_Comm comm, int n, int *acked), (comm, n, acked), zfailure_ack_failed, comm, n, acked)
FUNCTION(Comm_failure_ack, (MPI_Comm comm), (comm), zfailure_ack, comm)
FUNCTION(Comm_failure_get_acked, (MPI_Comm comm, MPI_Group *out), (comm, out), zfailure_get_acked, comm, out)
FUNCTION(Comm_agree, (MPI_Comm comm, int *flag), (comm, flag), zfailure_agree, comm, flag, NULL)
FUNCTION(Comm_iagree, (MPI_Comm comm, int *flag, MPI_Request *request), (comm, flag, request), zfailure_agree, comm,
         flag, request)
FUNCTION(Comm_shrink, (MPI_Comm comm, MPI_Comm *out), (comm, out), zfailure_shrink, comm, out, NULL)
FUNCTION(Comm_ishrink, (MPI_Comm comm, MPI_Comm *out, MPI_Request *request), (comm, out, request), zfailure_shrink,
         comm, out, request)

/* ---- Fortran, which the standard ABI does not cover ---- */

#ifndef Z_STANDARD_ABI
#define COMM MPI_Comm_f2c(*comm)
#define FORTRAN(NAME, PARAMETERS, ...)                            \
  __attribute__((visibility("default"))) void NAME##_ PARAMETERS; \
  void NAME##_ PARAMETERS { __VA_ARGS__ }
#define WITH_GROUP(LOWER, NAME)                                                                          \
  FORTRAN(LOWER, (const MPI_Fint *comm, MPI_Fint *out, MPI_Fint *ierr), MPI_Group made = MPI_GROUP_NULL; \
          *ierr = P##NAME(COMM, &made); if (!*ierr) *out = MPI_Group_c2f(made);)
/* Starts a shrink for a Fortran program, whose variable gets the new communicator when the request
 * completes. Where Fortran's handles are not those of C, a native library stores it at once. */
static int ishrink(int (*function)(MPI_Comm, MPI_Comm *, MPI_Request *), MPI_Comm comm, MPI_Fint *out,
                   MPI_Fint *request) {
  MPI_Request handle = MPI_REQUEST_NULL;
#ifdef OPEN_MPI
  MPI_Comm made = MPI_COMM_NULL;
  zcomm_fortran = out;
  int rc = function(comm, &made, &handle);
  if (zcomm_fortran) *out = MPI_Comm_c2f(made);
  zcomm_fortran = NULL;
#else
  int rc = function(comm, (MPI_Comm *)out, &handle);
#endif
  if (!rc) *request = MPI_Request_c2f(handle);
  return rc;
}
#define BINDINGS(LOWER, UPPER)                                                                                       \
  FORTRAN(LOWER##_comm_revoke, (const MPI_Fint *comm, MPI_Fint *ierr), *ierr = P##UPPER##_Comm_revoke(COMM);)        \
  FORTRAN(LOWER##_comm_is_revoked, (const MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *ierr),                           \
          *ierr = P##UPPER##_Comm_is_revoked(COMM, flag);)                                                           \
  WITH_GROUP(LOWER##_comm_get_failed, UPPER##_Comm_get_failed)                                                       \
  FORTRAN(LOWER##_comm_ack_failed, (const MPI_Fint *comm, MPI_Fint *n, MPI_Fint *acked, MPI_Fint *ierr),             \
          *ierr = P##UPPER##_Comm_ack_failed(COMM, *n, acked);)                                                      \
  FORTRAN(LOWER##_comm_failure_ack, (const MPI_Fint *comm, MPI_Fint *ierr),                                          \
          *ierr = P##UPPER##_Comm_failure_ack(COMM);)                                                                \
  WITH_GROUP(LOWER##_comm_failure_get_acked, UPPER##_Comm_failure_get_acked)                                         \
  FORTRAN(LOWER##_comm_agree, (const MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *ierr),                                \
          *ierr = P##UPPER##_Comm_agree(COMM, flag);)                                                                \
  FORTRAN(LOWER##_comm_iagree, (const MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *request, MPI_Fint *ierr),            \
          MPI_Request made = MPI_REQUEST_NULL;                                                                       \
          *ierr = P##UPPER##_Comm_iagree(COMM, flag, &made); if (!*ierr) *request = MPI_Request_c2f(made);)          \
  FORTRAN(LOWER##_comm_shrink, (const MPI_Fint *comm, MPI_Fint *out, MPI_Fint *ierr), MPI_Comm made = MPI_COMM_NULL; \
          *ierr = P##UPPER##_Comm_shrink(COMM, &made); *out = MPI_Comm_c2f(made);)                                   \
  FORTRAN(LOWER##_comm_ishrink, (const MPI_Fint *comm, MPI_Fint *out, MPI_Fint *request, MPI_Fint *ierr),            \
          *ierr = ishrink(P##UPPER##_Comm_ishrink, COMM, out, request);)
BINDINGS(mpi, MPI)
BINDINGS(mpix, MPIX)
#endif
