/* Errors on files. */
#include "io/file.h"

/* the map from an error handler's handle to the program's function, for handlers of files */
static zmap handlers;

/* Makes the error handler *handler as MPI_File_create_errhandler does, and keeps the program's
 * function, because Open MPI's MPI_File_call_errhandler rejects MPI_FILE_NULL. */
int z_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *handler) {
  int rc = real.File_create_errhandler(function, handler);
  if (!rc && z_on_open_mpi()) zmap_put(&handlers, z_key(*handler), (void *)(uintptr_t)function);
  return rc;
}

/* Calls the error handler of MPI_FILE_NULL with an error code, in place of Open MPI, which cannot.
 * A handler of a Fortran program is not known, and is not called. */
static void call(MPI_Errhandler handler, int code, int class_) {
  MPI_File none = MPI_FILE_NULL;
  MPI_File_errhandler_function *function =
      (MPI_File_errhandler_function *)(uintptr_t)zmap_get(&handlers, z_key(handler));
  if (handler == MPI_ERRORS_ARE_FATAL) real.Abort(MPI_COMM_WORLD, class_);
  else if (handler != MPI_ERRORS_RETURN && function) function(&none, &code);
}

int z_raise_file(MPI_File file, int class_, const char *function, const char *text) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (real.File_get_errhandler(file, &handler)) handler = MPI_ERRHANDLER_NULL;
  int code = z_error_begin(class_, function, text, handler);
  if (file != MPI_FILE_NULL || !z_on_open_mpi()) real.File_call_errhandler(file, code);
  else call(handler, code, class_);
  return code;
}
