/* Windows (MPI-3 one-sided communication). The engine serves all windows on spanning communicators,
 * and those inside a cluster unless they are to be native (package rma). The program's handle of a
 * served window is a native window of this process alone, which has the name, the attributes, the
 * error handler and the info.
 *
 * Of a native window the engine has the locks alone. A process waits for a lock there, serving
 * others meanwhile, and then takes the native lock, for which nobody has to wait long. In a job of
 * one cluster the engine has no link, and nothing of these windows. */
#ifndef ZIPPER_WIN_H
#define ZIPPER_WIN_H
#include "comm/comm.h"
#include "type/wintype.h"

typedef struct zshape {
  uint64_t context;
  int64_t bytes, unit;
} zshape;

typedef struct zwin {
  MPI_Win native; /* the handle */
  int served;
  zcomm *comm;             /* the window's own */
  int32_t id;              /* the engine's */
  zshape *shapes;          /* [size] */
  int32_t *rank_of, known; /* [known] process → rank in the window, -1 */
  /* Attributes: MPI wants addresses that stay. */
  void *base;
  MPI_Aint bytes;
  int unit, flavor, model;
} zwin;

extern zmap z_windows; /* handle → zwin */

/* With threads: the window that this thread is freeing natively, which is no longer in z_windows */
extern _Thread_local zwin *zwin_dying;

/* The window, or NULL: none of the program's. */
static inline zwin *zwin_get(MPI_Win win) {
  zwin *w = zmap_count(&z_windows) ? (zwin *)zmap_get(&z_windows, z_key(win)) : NULL;
  return w || !z_threads || !zwin_dying || zwin_dying->native != win ? w : zwin_dying;
}

/* The window if it is served, else NULL. */
static inline zwin *zwin_find(MPI_Win win) {
  zwin *w = zwin_get(win);
  return w && w->served ? w : NULL;
}

/* Raises an error of a class, or of the engine, through the window's error handler; the code to
 * return. */
int zwin_raise(zwin *w, int class_, const char *function, const char *why);
int zwin_raise_engine(zwin *w, int z_error, const char *function);
/* Whether rank is MPI_PROC_NULL or a rank of the window. If not, the error has been raised. */
int zwin_check_target(zwin *w, int rank, const char *function);
int zwin_unsupported(MPI_Win win, const char *function);
/* Checks that no epoch is open, and that all that this process has asked of others is answered. If
 * not, the error has been raised. */
int zwin_idle(zwin *w, const char *function);

/* Frees a served window without the other processes, at the end of MPI when the engine is gone. */
void zwin_drop(MPI_Win win);

void zwin_doubt(void); /* says on standard error what in the user's variable for windows is not understood */
#endif
