/* Attributes of communicators are kept by the native library, since the program's handle is the
 * native handle. This file does two things: it answers for the predefined attributes whose values
 * concern the whole job, and when the program frees a communicator it deletes all its attributes,
 * because the native communicator may have to live on. */
#include "comm/comm.h"
#include <stdlib.h>
#include <string.h>

/* the keyval MPIX_FT of include/mmpi-ft.h */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
enum { FT = MPI_FT };
#else
enum { FT = -7501 };
#endif

typedef struct predefined {
  int tag_ub, universe, wtime_is_global, appnum, ft;
} predefined;

/* The job's values of predefined attributes. MPI_Comm_get_attr returns their addresses, so they
 * must stay valid. Every thread stores the same values. */
static predefined values;

/* 1 if the number of this program in the whole job (MPI_APPNUM) is known. The native library's
 * numbers are those within one mpirun, and the job's launcher has set the number of that mpirun's
 * first program. */
static int appnum_known;

int zattr_start(void) {
  const char *first = getenv("ZIPPER_APPNUM");
  int *native = NULL, flag = 0, rc = real.Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &native, &flag);
  appnum_known = first && *first && flag;
  if (!rc && appnum_known) values.appnum = atoi(first) + *native;
  return rc;
}

int zattr_hidden(int keyval) { return keyval == MPI_APPNUM && z_layout.clusters > 1 && !appnum_known; }

int *zattr_of_job(int keyval, int found) {
  values.tag_ub = z_layout.tag_ub;
  values.universe = z_layout.size;
  values.ft = z_layout.on_loss != 0;
  values.wtime_is_global = 0; /* each host has its own clock */
  switch (keyval) {
  case MPI_TAG_UB: return &values.tag_ub;
  case MPI_UNIVERSE_SIZE: return &values.universe;
  case FT: return &values.ft;
  case MPI_WTIME_IS_GLOBAL: return &values.wtime_is_global;
  case MPI_APPNUM: return found && appnum_known && z_layout.clusters > 1 ? &values.appnum : NULL;
  }
  return NULL;
}

int z_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag) {
  *flag = 0;
  /* the native library may not know the keyval MPIX_FT */
  int rc = keyval == FT ? MPI_SUCCESS : real.Comm_get_attr(comm, keyval, value, flag);
  if (rc) return rc;
  int *own = zattr_of_job(keyval, *flag);
  if (own) *(int **)value = own, *flag = 1;
  else if (zattr_hidden(keyval)) *flag = 0;
  return MPI_SUCCESS;
}

int z_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag) { return z_Comm_get_attr(comm, keyval, value, flag); }

/* ---- deletion ---- */

/* Every keyval that the program has made, the newest last, because no MPI function lists the
 * attributes of a communicator. Freed keyvals stay here, because communicators may still have
 * attributes of theirs. */
static struct {
  pthread_mutex_t lock;
  int n, room, *of;
} keyvals = {.lock = PTHREAD_MUTEX_INITIALIZER};

void zattr_note(int keyval) {
  z_lock(&keyvals.lock);
  int i = 0;
  while (i < keyvals.n && keyvals.of[i] != keyval) i++;
  if (i < keyvals.n) { /* the keyval has been freed and made again */
    memmove(keyvals.of + i, keyvals.of + i + 1, (size_t)(keyvals.n - i - 1) * sizeof *keyvals.of);
    keyvals.n--;
  }
  if (keyvals.n == keyvals.room) {
    keyvals.room = 2 * keyvals.room + 8;
    if (!(keyvals.of = realloc(keyvals.of, (size_t)keyvals.room * sizeof *keyvals.of))) z_no_memory("keyvals");
  }
  keyvals.of[keyvals.n++] = keyval;
  z_unlock(&keyvals.lock);
}

/* Returns whether a communicator has an attribute with this keyval. If the keyval has been freed
 * native MPI raises an error, which is hidden from the program, and the result is 0. */
static int has(MPI_Comm comm, int keyval) {
  MPI_Errhandler handler;
  void *value;
  int flag = 0;
  if (real.Comm_get_errhandler(comm, &handler)) return 0;
  if (!real.Comm_set_errhandler(comm, MPI_ERRORS_RETURN)) {
    if (real.Comm_get_attr(comm, keyval, &value, &flag)) flag = 0;
    z_must(real.Comm_set_errhandler(comm, handler), "MPI_Comm_set_errhandler");
  }
  real.Errhandler_free(&handler);
  return flag;
}

int zattr_delete_all(MPI_Comm comm) {
  z_lock(&keyvals.lock);
  int n = keyvals.n, *of = n ? malloc((size_t)n * sizeof *of) : NULL, rc = MPI_SUCCESS;
  if (of) memcpy(of, keyvals.of, (size_t)n * sizeof *of);
  z_unlock(&keyvals.lock);
  if (n && !of) z_no_memory("keyvals");
  for (int i = n - 1; i >= 0 && !rc; i--) {
    if (!has(comm, of[i])) continue;
    rc = real.Comm_delete_attr(comm, of[i]);
    /* MPICH 5 returns success after it has called an error handler of the program */
    if (!rc && has(comm, of[i])) rc = MPI_ERR_OTHER;
  }
  free(of);
  return rc;
}

int z_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *gone, int *keyval,
                         void *extra) {
  int rc = real.Comm_create_keyval(copy, gone, keyval, extra);
  if (!rc) zattr_note(*keyval);
  return rc;
}

#ifdef Z_HAVE_Keyval_create
int z_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *gone, int *keyval, void *extra) {
  int rc = real.Keyval_create(copy, gone, keyval, extra);
  if (!rc) zattr_note(*keyval);
  return rc;
}
#endif
