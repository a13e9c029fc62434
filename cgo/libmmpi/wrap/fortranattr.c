/* Predefined attributes and keyvals in Fortran, whose functions do not call those of C
 * (comm/attr.c, rma/win.c). */
#define _GNU_SOURCE
#include "rma/win.h"
#include <dlfcn.h>

#ifndef Z_STANDARD_ABI /* the standard ABI has no Fortran */
#ifdef OPEN_MPI
/* the number to be added to a keyval of Fortran to get the keyval in C */
enum { KEYVAL_OF_C = 0 };
#else
enum { KEYVAL_OF_C = -1 };
#endif

typedef void get_attr(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr);

/* Calls the native Fortran function `name`, and then sets *own to the address of the job's value of
 * the attribute, or to NULL if the native value applies. Returns 1 if *own is set. */
static int answered(const char *name, MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr,
                    int **own) {
  get_attr *native = (get_attr *)dlsym(RTLD_NEXT, name);
  native(comm, keyval, value, flag, ierr);
  *own = NULL;
  if (z_is_off() || z_inside || (ierr && *ierr != MPI_SUCCESS)) return 0;
  if (zattr_hidden(*keyval + KEYVAL_OF_C)) *flag = 0; /* .FALSE. is 0 in all compilers */
  else *own = zattr_of_job(*keyval + KEYVAL_OF_C, *flag != 0);
  if (!*own) return 0;
  MPI_Fint there = MPI_TAG_UB - KEYVAL_OF_C;
  MPI_Aint unused;
  if (!*flag) native(comm, &there, &unused, flag, ierr); /* this yields the compiler's value of .TRUE. */
  return 1;
}

#define FORTRAN(NAME, VALUE)                                                                                       \
  __attribute__((visibility("default"))) void NAME(MPI_Fint *comm, MPI_Fint *keyval, VALUE *value, MPI_Fint *flag, \
                                                   MPI_Fint *ierr);                                                \
  void NAME(MPI_Fint *comm, MPI_Fint *keyval, VALUE *value, MPI_Fint *flag, MPI_Fint *ierr) {                      \
    int *own;                                                                                                      \
    if (answered(#NAME, comm, keyval, value, flag, ierr, &own)) *value = *own;                                     \
  }
FORTRAN(mpi_attr_get_, MPI_Fint)
FORTRAN(mpi_comm_get_attr_, MPI_Aint)
FORTRAN(mpi_comm_get_attr_f08_, MPI_Aint)

/* Only Open MPI's Fortran functions that create keyvals are replaced, to note the keyvals
 * (zattr_note): MPICH's call the C functions, which the shim replaces. */
#ifdef OPEN_MPI
/* The type of Fortran's MPI_Comm_create_keyval: `copy` and `gone` are the program's copy and delete
 * callbacks, `keyval` gets the new keyval, `ierr` the error code. */
typedef void create_keyval(void (*copy)(void), void (*gone)(void), MPI_Fint *keyval, void *extra, MPI_Fint *ierr);

#define FORTRAN_KEYVALS(NAME)                                                                        \
  __attribute__((visibility("default"))) create_keyval NAME;                                         \
  void NAME(void (*copy)(void), void (*gone)(void), MPI_Fint *keyval, void *extra, MPI_Fint *ierr) { \
    ((create_keyval *)dlsym(RTLD_NEXT, #NAME))(copy, gone, keyval, extra, ierr);                     \
    if (!z_is_off() && !z_inside && (!ierr || *ierr == MPI_SUCCESS)) zattr_note(*keyval);            \
  }
FORTRAN_KEYVALS(mpi_keyval_create_)
FORTRAN_KEYVALS(mpi_comm_create_keyval_)
FORTRAN_KEYVALS(mpi_comm_create_keyval_f08_)
#endif

/* Sets *value to the shim's value of a predefined attribute of a served window, since the native
 * window has no memory. The native function has found that the window has the attribute. */
static void of_window(MPI_Win win, int keyval, MPI_Aint *value) {
  const zwin *w = !z_is_off() && !z_inside ? zwin_find(win) : NULL;
  if (!w) return;
  switch (keyval) {
  case MPI_WIN_BASE: *value = (MPI_Aint)w->base; break;
  case MPI_WIN_SIZE: *value = w->bytes; break;
  case MPI_WIN_DISP_UNIT: *value = w->unit; break;
  case MPI_WIN_CREATE_FLAVOR: *value = w->flavor; break;
  case MPI_WIN_MODEL: *value = w->model; break;
  }
}

#define FORTRAN_OF_WINDOWS(NAME)                                                                                     \
  __attribute__((visibility("default"))) void NAME(MPI_Fint *win, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag, \
                                                   MPI_Fint *ierr);                                                  \
  void NAME(MPI_Fint *win, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag, MPI_Fint *ierr) {                      \
    ((get_attr *)dlsym(RTLD_NEXT, #NAME))(win, keyval, value, flag, ierr);                                           \
    if (!ierr || *ierr == MPI_SUCCESS) of_window(MPI_Win_f2c(*win), *keyval + KEYVAL_OF_C, value);                   \
  }
FORTRAN_OF_WINDOWS(mpi_win_get_attr_)
FORTRAN_OF_WINDOWS(mpi_win_get_attr_f08_)
#endif
