/* Errors on windows. */
#include "rma/win.h"
#include <stdio.h>

int zwin_raise(zwin *w, int class_, const char *function, const char *why) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (real.Win_get_errhandler(w->native, &handler)) handler = MPI_ERRHANDLER_NULL;
  int code = z_error_begin(class_, function, why, handler);
  real.Win_call_errhandler(w->native, code);
  return code;
}

int zwin_raise_engine(zwin *w, int z_error, const char *function) {
  const char *why = z_failure_text(z_error_class(z_error));
  if (!why) why = Z_ENGINE(ze_error());
  return zwin_raise(w, z_error_class(z_error), function, why && *why ? why : "the engine failed");
}

int zwin_check_target(zwin *w, int rank, const char *function) {
  char why[80];
  if (rank == MPI_PROC_NULL || (rank >= 0 && rank < w->comm->size)) return MPI_SUCCESS;
  snprintf(why, sizeof why, "the target is %d; the window has ranks 0 to %d", rank, w->comm->size - 1);
  return zwin_raise(w, MPI_ERR_RANK, function, why);
}

int zwin_unsupported(MPI_Win win, const char *function) {
  return zwin_raise(zwin_find(win), MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "not supported by MMPI on a window that spans clusters");
}
