/* Errors: classes of the native library, raised through the error handler of what the call was
 * on. */
#ifndef ZIPPER_ERROR_H
#define ZIPPER_ERROR_H
#include "core/comm.h"

#pragma GCC visibility push(hidden)

/* Raises an error of a class on a communicator (NULL: MPI_COMM_WORLD) through its error handler.
 * function: "MPI_Send". Returns the code that the MPI function is to return. */
int z_raise(zcomm *c, int class_, const char *function, const char *format, ...) __attribute__((format(printf, 4, 5)));
int z_raise_on(MPI_Comm comm, int class_, const char *function, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What all raising has in common. Returns the code to call the handler with, and to return.
 * `handler` is that of what the call was on (MPI_ERRHANDLER_NULL: not known), and is freed. If it
 * is fatal all clusters end. */
int z_error_begin(int class_, const char *function, const char *text, MPI_Errhandler handler);
int z_unsupported(MPI_Comm comm, const char *function);               /* …on a communicator that spans clusters */
int z_error_class(int z_error);                                       /* enum z_error → native class */
int z_raise_engine(zcomm *c, int z_error, const char *function);      /* … with the text of ze_error() */
int z_raise_cell(zcomm *c, const z_cell *cell, const char *function); /* … that an operation ended with */

/* The class of a native error code; MPI_SUCCESS of MPI_SUCCESS. */
int z_native_class(int rc);

/* Ends the job, in all clusters, because `function`, a native call without which the library no
 * longer knows what is under way, has failed with rc. */
void z_native_failed(int rc, const char *function) __attribute__((noreturn));

/* Takes the result of such a call. */
static inline void z_must(int rc, const char *function) {
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) z_native_failed(rc, function);
}

/* Whether a constant that differs between the job's MPI libraries may be why a message has `sent`
 * bytes where `room` were expected. The text says which constant. */
int zconstants_differ(int64_t sent, int64_t room, char *text, size_t size);

#pragma GCC visibility pop
#endif
