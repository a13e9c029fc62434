/* Errors on files. */
#include "io/file.h"

int z_raise_file(MPI_File file, int class_, const char *function, const char *text) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (real.File_get_errhandler(file, &handler)) handler = MPI_ERRHANDLER_NULL;
  int fatal = handler == MPI_ERRORS_ARE_FATAL, code = z_error_begin(class_, function, text, handler);
  if (file != MPI_FILE_NULL) real.File_call_errhandler(file, code);
  else if (fatal)
    real.Abort(
        MPI_COMM_WORLD,
        class_); /* Open MPI calls no handler for MPI_FILE_NULL, so one of the program's own is not called either */
  return code;
}
