/* Fault tolerance of MPI (ULFM) for programs: the error classes and functions that mpi.h lacks. A
 * program that includes this file after mpi.h compiles with every MPI library. In a job that
 * zipper run starts with --on-loss continue all of the functions work. In other jobs those that the
 * MPI library lacks are NULL, or return MPI_ERR_UNSUPPORTED_OPERATION. */
#ifndef MMPI_FT_H
#define MMPI_FT_H
#include <mpi.h>

#if defined(OPEN_MPI) && defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

/* The error classes. Open MPI has had its numbers since version 5, and version 4 leaves them
 * unused. MPICH has had its numbers since version 3.2. The standard ABI assigns none, and the
 * numbers of MPICH are free in it. */
#ifdef OPEN_MPI
#ifndef MPI_ERR_PROC_FAILED
#define MPI_ERR_PROC_FAILED 75
#define MPI_ERR_PROC_FAILED_PENDING 76
#define MPI_ERR_REVOKED 77
#endif
#ifndef MPIX_ERR_PROC_FAILED
#define MPIX_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#define MPIX_ERR_PROC_FAILED_PENDING MPI_ERR_PROC_FAILED_PENDING
#define MPIX_ERR_REVOKED MPI_ERR_REVOKED
#endif
#else
#ifndef MPIX_ERR_PROC_FAILED
#define MPIX_ERR_PROC_FAILED 101
#define MPIX_ERR_PROC_FAILED_PENDING 102
#define MPIX_ERR_REVOKED 103
#endif
#ifndef MPI_ERR_PROC_FAILED
#define MPI_ERR_PROC_FAILED MPIX_ERR_PROC_FAILED
#define MPI_ERR_PROC_FAILED_PENDING MPIX_ERR_PROC_FAILED_PENDING
#define MPI_ERR_REVOKED MPIX_ERR_REVOKED
#endif
#endif

/* The predefined attribute that tells whether the job goes on when processes fail: a pointer to an
 * int, 1 or 0. Open MPI has had its keyval since version 5. The other libraries have no keyval, and
 * this number is that of none of theirs. */
#ifndef MPIX_FT
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#define MPIX_FT MPI_FT
#else
#define MPIX_FT (-7501)
#endif
#endif

/* The macros by which programs ask whether Open MPI has the newer functions. */
#ifndef OMPI_HAVE_MPIX_COMM_ISHRINK
#define OMPI_HAVE_MPIX_COMM_ISHRINK 1
#endif
#ifndef OMPI_HAVE_MPIX_COMM_GET_FAILED
#define OMPI_HAVE_MPIX_COMM_GET_FAILED 1
#endif
#ifndef OMPI_HAVE_MPIX_COMM_ACK_FAILED
#define OMPI_HAVE_MPIX_COMM_ACK_FAILED 1
#endif

/* The functions. A declaration of mpi.h and this one are compatible. The functions are weak, so
 * that a program is linked without MMPI too. */
#ifdef __cplusplus
extern "C" {
#endif
#define MMPI_FT_WEAK __attribute__((weak))
#define MMPI_FT_DECLARE(PREFIX)                                                             \
  int PREFIX##_Comm_revoke(MPI_Comm comm) MMPI_FT_WEAK;                                     \
  int PREFIX##_Comm_is_revoked(MPI_Comm comm, int *flag) MMPI_FT_WEAK;                      \
  int PREFIX##_Comm_get_failed(MPI_Comm comm, MPI_Group *failed) MMPI_FT_WEAK;              \
  int PREFIX##_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked) MMPI_FT_WEAK; \
  int PREFIX##_Comm_failure_ack(MPI_Comm comm) MMPI_FT_WEAK;                                \
  int PREFIX##_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failed) MMPI_FT_WEAK;       \
  int PREFIX##_Comm_agree(MPI_Comm comm, int *flag) MMPI_FT_WEAK;                           \
  int PREFIX##_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request) MMPI_FT_WEAK;    \
  int PREFIX##_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm) MMPI_FT_WEAK;                  \
  int PREFIX##_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request) MMPI_FT_WEAK;
MMPI_FT_DECLARE(MPI)
MMPI_FT_DECLARE(MPIX)
#undef MMPI_FT_DECLARE
#undef MMPI_FT_WEAK
#ifdef __cplusplus
}
#endif
#endif
