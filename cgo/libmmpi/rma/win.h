/* Windows (MPI-3 one-sided communication). The engine serves all windows on spanning communicators,
 * and those inside a cluster unless they are to be native (package rma). The program's handle of a
 * served window is a native window of this process alone, which holds the name, the attributes, the
 * error handler and the info.
 *
 * Of a native window the engine has only the locks. A process waits for the engine's lock, serving
 * others meanwhile, and then takes the native lock, which is free or becomes free soon. In a job of
 * one cluster the engine has no link, and does not know these windows. */
#ifndef ZIPPER_WIN_H
#define ZIPPER_WIN_H
#include "comm/comm.h"
#include "type/wintype.h"

/* The memory that one rank exposes in a window, which the ranks exchange when the window is
 * made. */
typedef struct zshape {
  /* the context id that the rank proposes; the window has that of rank 0 */
  uint64_t context;
  int64_t bytes; /* the size of the memory in bytes */
  int64_t unit;  /* the displacement unit in bytes */
} zshape;

/* A window of the program that the engine knows. */
typedef struct zwin {
  /* the program's handle of the window, which is that of a native window */
  MPI_Win native;
  int served; /* 1 if the engine serves the window, 0 if native MPI does */
  /* the window's own spanning communicator */
  zcomm *comm;
  /* the number by which the engine knows the window */
  int32_t id;
  /* [size] the memory that each rank exposes */
  zshape *shapes;
  /* [known] The rank in the window of each process, indexed by the process's number in this
   * process, or -1 for a process that is not in the window. */
  int32_t *rank_of, known;
  /* The values of the window's predefined attributes: the address of this process's memory, its
   * size in bytes, the displacement unit in bytes, the flavor and the model. MPI returns their
   * addresses, so they must stay valid. */
  void *base;
  MPI_Aint bytes;
  int unit, flavor, model;
} zwin;

/* the map from a window's native handle to its zwin */
extern zmap z_windows;

/* The window that this thread is freeing natively, or NULL. With MPI_THREAD_MULTIPLE the window is
 * no longer in z_windows, but attribute callbacks may still use it. */
extern _Thread_local zwin *zwin_dying;

/* Returns the zwin of a handle, or NULL if the engine does not know the window. */
static inline zwin *zwin_get(MPI_Win win) {
  zwin *w = zmap_count(&z_windows) ? (zwin *)zmap_get(&z_windows, z_key(win)) : NULL;
  return w || !z_threads || !zwin_dying || zwin_dying->native != win ? w : zwin_dying;
}

/* Returns the zwin of a handle if the engine serves the window, otherwise NULL. */
static inline zwin *zwin_find(MPI_Win win) {
  zwin *w = zwin_get(win);
  return w && w->served ? w : NULL;
}

/* Raise an error through the window's error handler, and return the code that the MPI function must
 * return. zwin_raise raises one of a class, with the text `why`, and zwin_raise_engine an error of
 * the engine, with the text of ze_error. */
int zwin_raise(zwin *w, int class_, const char *function, const char *why);
int zwin_raise_engine(zwin *w, int z_error, const char *function);
/* Checks that rank is MPI_PROC_NULL or a rank of the window. Otherwise raises an error and returns
 * its code. */
int zwin_check_target(zwin *w, int rank, const char *function);
/* Raises MPI_ERR_UNSUPPORTED_OPERATION for a function through the window's error handler, and
 * returns the code for the program. */
int zwin_unsupported(MPI_Win win, const char *function);
/* Checks that no epoch of this process is open on the window, and waits until all requests of this
 * process to others have been answered. Returns MPI_SUCCESS; otherwise raises an error and returns
 * its code. */
int zwin_idle(zwin *w, const char *function);

/* Frees a served window in this process alone. It is called at the end of MPI, when the engine has
 * ended. */
void zwin_drop(MPI_Win win);

/* Reports on standard error a value of the user's environment variable for windows that is not
 * understood. */
void zwin_check_variable(void);
#endif
