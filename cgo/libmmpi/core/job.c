/* The process's state that all chapters read. start/ and the engine set it. */
#define _GNU_SOURCE
#include "core/job.h"
#include "core/limits.h"
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct z_real real;
z_world z_layout;
struct z_own_page z_own_page;
int z_joined, z_threads, z_native_size;
volatile int32_t z_busy;
z_waits z_waiting;
int32_t z_pending, z_leaves, z_serving, z_others;
uint64_t z_world_mark;
_Thread_local int z_inside;

#ifdef Z_STANDARD_ABI
int z_on_open_mpi(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  return !real.Get_library_version(text, &n) && strstr(text, "Open MPI");
}
#endif

void z_no_memory(const char *what) {
  fprintf(stderr, "MMPI: virtual rank %d: out of memory for %s\n", z_layout.rank, what);
  z_drain_stderr();
  if (!z_is_off()) Z_ENGINE(ze_abort(1));
  abort();
}

/* ---- the end ---- */

static struct {
  MPI_Comm comm;
  int code;
} ending;

static void abort_all(int code) {
  z_drain_stderr(); /* the program's message about its end */
  Z_ENGINE(ze_abort(code));
}

static void end_outside(void) {
  abort_all(ending.code);
  real.Abort(ending.comm, ending.code);
  _exit(ending.code & 0xff);
}

int z_abort(MPI_Comm comm, int code) {
  if (!z_is_off()) {
    ending.comm = comm, ending.code = code;
    if (z_resume(end_outside)) abort_all(code);
  }
  return real.Abort(comm, code);
}

/* ---- children ---- */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

void z_switch_on(void) {
  z_joined = getpid();
  z_own_page.state = madvise(&z_own_page, sizeof z_own_page, MADV_WIPEONFORK) ? Z_ON_BY_PID : Z_ON;
}

void z_check_pid(void) {
  if (getpid() != z_joined) z_own_page.state = Z_OFF;
}

int z_refuse(const char *function) {
  MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
  const int child = z_is_child();
  /* Without "virtual rank" at the start: launch/output would take it for an error of the rank, but
   * the job goes on. */
  if (child)
    dprintf(2,
            "MMPI: process %d, a child (fork, clone) of virtual rank %d: %s: it has no part in the job: communicate in "
            "the process that called MPI_Init, %d\n",
            (int)getpid(), z_layout.rank, function, z_joined);
  else
    dprintf(2,
            "MMPI: virtual rank %d: %s: called by a signal handler that has interrupted MPI: it cannot be "
            "carried out there: set a flag in the handler and call it later, or end the job by MPI_Abort\n",
            z_layout.rank, function);
  if (real.Comm_get_errhandler(MPI_COMM_WORLD, &handler) || handler == MPI_ERRORS_ARE_FATAL) {
    /* A fatal handler would let native MPI end the cluster over a connection that belongs to the
     * parent */
    if (child) _exit(1);
    return z_abort(MPI_COMM_WORLD, MPI_ERR_OTHER);
  }
  real.Errhandler_free(&handler);
  real.Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

/* ---- output before the end ----
 *
 * MPICH's launcher ends as soon as it learns that a process has called MPI_Abort, and output that
 * its daemon has not yet read from the process's standard error is lost then. On a busy host the
 * daemon may be delayed and see the abort first. The daemon forwards in the order in which it
 * reads, so a process that waits until its output has been read does not lose it. */

/* Returns whether standard error is a pipe or a socket that holds bytes which its reader has not
 * read yet. */
static int unread(void) {
  struct stat is;
  int n = 0;
  if (fstat(2, &is) || (!S_ISFIFO(is.st_mode) && !S_ISSOCK(is.st_mode))) return 0;
  return !ioctl(2, S_ISFIFO(is.st_mode) ? FIONREAD : SIOCOUTQ, &n) && n > 0;
}

void z_drain_stderr(void) {
  for (int ms = 0; ms < Z_DRAIN_STDERR_MS && unread(); ms++) nanosleep(&(struct timespec){0, 1000000}, NULL);
}
