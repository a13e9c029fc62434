/* How long MPI is up in a process that may use sessions. What spans clusters is made over the
 * native world. So the first session of a process without MPI_Init starts that world, too; the
 * program does not see it, and may still call MPI_Init. MPI ends with the last session after
 * MPI_Finalize. If MPI_Init was never called it ends with the process, because until then there may
 * be another session. */
#include "comm/comm.h"
#include "start/start.h"
#include <stdio.h>
#include <string.h>

static struct {
  pthread_mutex_t lock;
  int hidden;   /* the native world was started for a session */
  int provided; /* its level of threads */
  int begun;    /* … and the program has called MPI_Init since */
  int ended;    /* the program has called MPI_Finalize, and native MPI goes on for sessions */
  int open;     /* sessions */
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

/* Constructors that run before ours call both: those of Open MPI's C++ library, for example. */
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

/* The process ends, and its part in the job. With sessions open that is a failure, as it is
 * natively. A child after fork has no job. */
static void at_exit(void) {
  if (!z_is_off() && !z_interrupts() && life.hidden && !life.open && life.begun == life.ended)
    z_ignore(real.Finalize());
}

/* Later sessions may want any thread level, so the world has MPI_THREAD_MULTIPLE. */
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
  if (!rc) rc = zcomm_sessions_start();
  z_enter();
  if (!rc) rc = real.Session_init(info, handler, session);
  z_leave();
  if (!rc && *session == MPI_SESSION_NULL) rc = MPI_ERR_OTHER; /* the handler has made it MPI_SUCCESS */
  if (!rc && handler != MPI_ERRHANDLER_NULL)
    rc = real.Session_set_errhandler(*session, handler); /* not so in MPICH 4.0 */
  if (!rc) life.open++;
  pthread_mutex_unlock(&life.lock);
  if (!rc) return MPI_SUCCESS;
  fputs(
      "MMPI: MPI_Session_init: no session: in a zipped job none is begun after MPI has ended, by MPI_Finalize and the "
      "end of all sessions before\n",
      stderr);
  /* Such a program will not look at the code, and would crash without a session */
  if (handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT) {
    z_be_heard();
    if (!z_is_off()) Z_ENGINE(ze_abort(1));
    exit(1);
  }
  *session = MPI_SESSION_NULL;
  return rc;
}

int z_Session_finalize(MPI_Session *session) {
  int last = 0, rc = real.Session_finalize(session);
  if (z_is_off() || rc) return rc;
  pthread_mutex_lock(&life.lock);
  last = --life.open == 0 && life.ended;
  pthread_mutex_unlock(&life.lock);
  return last ? real.Finalize() : MPI_SUCCESS;
}
#endif
