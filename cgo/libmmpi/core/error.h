/* Errors: codes of the native library, raised through the error handler of the communicator, window
 * or file of the call. */
#ifndef ZIPPER_ERROR_H
#define ZIPPER_ERROR_H
#include "core/comm.h"

/* The error classes of failed processes, with the numbers of the program's mpi.h or, if that has
 * none, those of include/mmpi-ft.h. */
#if defined(MPI_ERR_PROC_FAILED)
enum {
  Z_CLASS_PROC_FAILED = MPI_ERR_PROC_FAILED,
  Z_CLASS_PROC_FAILED_PENDING = MPI_ERR_PROC_FAILED_PENDING,
  Z_CLASS_REVOKED = MPI_ERR_REVOKED
};
#elif defined(MPIX_ERR_PROC_FAILED)
enum {
  Z_CLASS_PROC_FAILED = MPIX_ERR_PROC_FAILED,
  Z_CLASS_PROC_FAILED_PENDING = MPIX_ERR_PROC_FAILED_PENDING,
  Z_CLASS_REVOKED = MPIX_ERR_REVOKED
};
#elif defined(OPEN_MPI)
enum { Z_CLASS_PROC_FAILED = 75, Z_CLASS_PROC_FAILED_PENDING = 76, Z_CLASS_REVOKED = 77 };
#else
enum { Z_CLASS_PROC_FAILED = 101, Z_CLASS_PROC_FAILED_PENDING = 102, Z_CLASS_REVOKED = 103 };
#endif

/* Returns the communicator on which the native library raises errors that belong to no object.
 * MPI 4.0 has changed that from MPI_COMM_WORLD to MPI_COMM_SELF. MPICH follows since 4.2; Open MPI
 * does not, unless its parameter mpi_compat_mpi3 is off. */
static inline MPI_Comm z_no_object(void) {
#if defined(Z_STANDARD_ABI)
  return z_on_open_mpi() ? MPI_COMM_WORLD : MPI_COMM_SELF;
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40200000
  return MPI_COMM_SELF;
#else
  return MPI_COMM_WORLD;
#endif
}

#pragma GCC visibility push(hidden)

/* Raises an error of a class on a communicator through its error handler, and returns the code that
 * the MPI function must return. If the program does not know c the error is raised on the
 * communicator whose operations run on c (zcomm.front). A c that is NULL or that the program has
 * freed means z_no_object(); `function` is the name of the MPI function, such as "MPI_Send". */
int z_raise(zcomm *c, int class_, const char *function, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Raises an error of a class on c as z_raise does. If there is a reason, MPI_Error_string
 * returns it for the code; if `reason` is NULL the error has the text `otherwise`. */
int z_raise_because(zcomm *c, int class_, const char *function, const char *reason, const char *otherwise);
/* Raises an error of a class on a communicator that may span clusters or not, and returns the code
 * that the MPI function must return. */
int z_raise_on(MPI_Comm comm, int class_, const char *function, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Does the part of raising that is common to communicators, windows and files. Returns the code
 * with which the caller calls the handler and which the MPI function returns. `handler` is the
 * current handler, or MPI_ERRHANDLER_NULL if it is unknown; the function frees it. If the handler
 * is MPI_ERRORS_ARE_FATAL all clusters end. */
int z_error_begin(int class_, const char *function, const char *text, MPI_Errhandler handler);
/* Raises MPI_ERR_UNSUPPORTED_OPERATION on comm, because a function is not supported on a
 * communicator that spans clusters, and returns the code that the MPI function must return. */
int z_unsupported(MPI_Comm comm, const char *function);
/* Returns the error class of the native MPI library for an enum z_error, the error numbers of the
 * engine. */
int z_error_class(int z_error);
/* Returns the text of a class of failed processes, or NULL if class_ is another one. */
const char *z_failure_text(int class_);
/* Raises the error of the engine z_error on c, with the text that ze_error returns, and returns the
 * code that the MPI function must return. */
int z_raise_engine(zcomm *c, int z_error, const char *function);
/* Raises on c the error with which the engine's operation of a cell has ended, and returns the code
 * that the MPI function must return. cell->error must not be Z_OK. */
int z_raise_cell(zcomm *c, const z_cell *cell, const char *function);

/* Returns the error class of rc, an error code of native MPI. The class of MPI_SUCCESS is
 * MPI_SUCCESS. */
int z_native_class(int rc);

/* Ends the job in all clusters because the native call `function` has failed with rc. It is for
 * calls without which the shim loses track of its operations. */
void z_native_failed(int rc, const char *function) __attribute__((noreturn));

/* Ends the job through z_native_failed if rc, the result of the native call `function`, is an
 * error. */
static inline void z_must(int rc, const char *function) {
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) z_native_failed(rc, function);
}

/* Tests whether a constant that differs between the job's MPI libraries explains why a message has
 * `sent` bytes where `room` were expected. If so, returns 1 and writes the candidates to text,
 * which has room for size bytes. Otherwise returns 0. */
int zconstants_differ(int64_t sent, int64_t room, char *text, size_t size);

#pragma GCC visibility pop
#endif
