/* The lifetime of MPI in a process that may use sessions. Communicators that span clusters are made
 * over the native world. Therefore the first session of a process that has not called MPI_Init
 * starts that world too. The program does not see it, and may still call MPI_Init. MPI ends with
 * MPI_Finalize or with the last session, whichever comes later. If the program never calls
 * MPI_Init, MPI ends with the process, because until then the program may open another session. */
#include "comm/comm.h"
#include "p2p/buffer.h"
#include "start/start.h"
#include <stdio.h>
#include <string.h>

static struct {
  pthread_mutex_t lock;
  /* 1 if the native world was started for a session, so that the program does not see it */
  int hidden;
  /* the thread level that native MPI has granted to that world */
  int provided;
  /* 1 once the program has called MPI_Init in a process whose native world was started for a
   * session */
  int begun;
  /* 1 once the program has called MPI_Finalize while sessions were open, for which native MPI stays
   * initialized. */
  int ended;
  int open; /* the number of open sessions */
} life = {.lock = PTHREAD_MUTEX_INITIALIZER};

int zsession_init(int *provided) {
  pthread_mutex_lock(&life.lock);
  int covers = life.hidden && !life.begun;
  if (covers) life.begun = 1, *provided = life.provided;
  pthread_mutex_unlock(&life.lock);
  return covers;
}

int zsession_finalize(void) {
  pthread_mutex_lock(&life.lock);
  int goes_on = life.open > 0 && !z_is_off();
  if (goes_on) life.ended = 1;
  pthread_mutex_unlock(&life.lock);
  return goes_on;
}

/* Sets *flag as MPI_Initialized does. It loads the native functions first, because constructors
 * that run before this library's, such as those of Open MPI's C++ library, call this function and
 * MPI_Finalized. */
int z_Initialized(int *flag) {
  zload();
  int rc = real.Initialized(flag);
  if (life.hidden && !life.begun) *flag = 0;
  return rc;
}

int z_Finalized(int *flag) {
  zload();
  int rc = real.Finalized(flag);
  if (life.ended) *flag = 1;
  return rc;
}

#ifdef Z_HAVE_Session_init

/* Leaves the job at the end of a process that never called MPI_Init. With sessions open the process
 * fails, as it does natively. A forked child is in no job. */
static void at_exit(void) {
  if (!z_is_off() && !z_interrupts() && life.hidden && !life.open && life.begun == life.ended)
    z_ignore(real.Finalize());
}

/* Starts the native world for a session, if it has not been started. Its thread level is
 * MPI_THREAD_MULTIPLE, because later sessions may request any level. Returns an MPI error code. */
static int open_world(void) {
  int up = 0, over = 0, rc = real.Finalized(&over);
  if (!rc) rc = real.Initialized(&up);
  if (rc || over) return rc ? rc : MPI_ERR_OTHER;
  if (up) return MPI_SUCCESS;
  if ((rc = zworld_init(NULL, NULL, MPI_THREAD_MULTIPLE, &life.provided))) return rc;
  life.hidden = 1;
  return atexit(at_exit) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int z_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
  const char *layout = getenv("ZIPPER_LAYOUT"), *forwarders = getenv("ZIPPER_FORWARDERS");
  if (!layout || !session || (!strchr(layout, ',') && (!forwarders || !*forwarders)))
    return real.Session_init(info, handler, session);
  pthread_mutex_lock(&life.lock);
  *session = MPI_SESSION_NULL;
  int rc = open_world();
  if (!rc && !zcomm_everyone()) rc = MPI_ERR_NO_MEM;
  z_enter();
  if (!rc) rc = real.Session_init(info, handler, session);
  z_leave();
  /* the handler has turned the error into MPI_SUCCESS */
  if (!rc && *session == MPI_SESSION_NULL) rc = MPI_ERR_OTHER;
  if (!rc && handler != MPI_ERRHANDLER_NULL)
    rc = real.Session_set_errhandler(*session, handler); /* MPICH 4.0 does not set the handler itself */
  if (!rc) life.open++;
  pthread_mutex_unlock(&life.lock);
  if (!rc) return MPI_SUCCESS;
  fputs("MMPI: MPI_Session_init: a zipped job cannot begin a session after MPI has ended, by MPI_Finalize and the "
        "end of all sessions before\n",
        stderr);
  /* With such a handler a program ignores the return code, and would crash because it has no
   * session */
  if (handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT) {
    z_drain_stderr();
    if (!z_is_off()) Z_ENGINE(ze_abort(1));
    exit(1);
  }
  *session = MPI_SESSION_NULL;
  return rc;
}

int z_Session_finalize(MPI_Session *session) {
  uint64_t key = z_key(*session);
  int last = 0, rc = real.Session_finalize(session);
  if (z_is_off() || rc) return rc;
  zbuffer_forget(key);
  pthread_mutex_lock(&life.lock);
  last = --life.open == 0 && life.ended;
  pthread_mutex_unlock(&life.lock);
  return last ? real.Finalize() : MPI_SUCCESS;
}
#endif
