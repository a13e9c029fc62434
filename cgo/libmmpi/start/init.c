/* MPI_Init, MPI_Finalize, MPI_Abort. */
#define _GNU_SOURCE
#include "core/job.h"
#include "request/fault.h"
#include "start/start.h"
#include <stdio.h>
#include <string.h>

/* Returns whether `library`, a path in a preload list, is one that the launcher has put there: a
 * library of MMPI's, or the library of the standard ABI that the program is to use. */
static int is_ours(const char *library) { return strstr(library, "libmmpi-") || strstr(library, "libmpi_abi"); }

/* Removes MMPI's libraries from the preload list in an environment variable, so that children of
 * the program are not preloaded with them. */
static void leave_out(const char *variable) {
  const char *list = getenv(variable);
  if (!list || !strstr(list, "libmmpi-")) return;
  char *copy = strdup(list), *keep = calloc(1, strlen(list) + 2), *rest = copy;
  if (!copy || !keep) return;
  for (char *s; (s = strsep(&rest, ": "));)
    if (*s && !is_ours(s)) strcat(*keep ? strcat(keep, ":") : keep, s);
  if (*keep) setenv(variable, keep, 1);
  else unsetenv(variable);
  free(copy), free(keep);
}

static int zipped(void) {
  const char *job = getenv("ZIPPER_JOB");
  return job && *job;
}

/* Prepares a process of a job for the initialization of native MPI: records whether the program
 * handles faults itself, gives native MPI its own values of the launcher's variables, and sets
 * parameters of Open MPI.
 *
 * The parameters switch off Open MPI's read-modify-write in MPI-IO. Open MPI writes small pieces by
 * reading the surrounding data and writing all of it back. It takes no lock that the other clusters
 * would respect, so it would overwrite what they have written meanwhile. Data sieving and the
 * collective component two_phase do so. Unlike ROMIO (io/file.c) they obey no hint, only parameters
 * that are read during initialization. They are set over the user's values, which could only be
 * wrong here; components that the user has excluded stay excluded. */
static void before_init(void) {
  static const char variable[] = "OMPI_MCA_fcoll", without[] = "two_phase";
  const char *components = getenv(variable);
  char all_but[256];
  if (!zipped()) return;
  zfault_before_init();
  zlauncher_native();
  setenv("OMPI_MCA_fbtl_posix_write_datasieving", "0", 1);
  int excluding = components && *components == '^';
  if (components && *components && excluding == !!strstr(components, without)) return;
  /* "without" comes first, so that a long list cannot cut it off */
  snprintf(all_but, sizeof all_but, "^%s%s%s", without, excluding ? "," : "", excluding ? components + 1 : "");
  setenv(variable, all_but, 1);
}

static int after_init(int rc) {
  if (zipped()) zlauncher_world();
  if (rc) return rc;
  if (zipped()) {
    z_enter();
    rc = zjob_join();
    z_leave();
    zspawn_note();
  }
  leave_out("LD_PRELOAD"), leave_out("LD_AUDIT");
  return rc;
}

int z_Init(int *argc, char ***argv) {
  int provided;
  if (zsession_init(&provided)) return MPI_SUCCESS;
  before_init();
  z_enter();
  int rc = real.Init(argc, argv);
  z_leave();
  return after_init(rc);
}

int zworld_init(int *argc, char ***argv, int required, int *provided) {
  before_init();
  z_enter();
  int rc = real.Init_thread(argc, argv, required, provided);
  z_leave();
  return after_init(rc);
}

int z_Init_thread(int *argc, char ***argv, int required, int *provided) {
  return zsession_init(provided) ? MPI_SUCCESS : zworld_init(argc, argv, required, provided);
}

/* Ends MPI as MPI_Finalize does. A program that exits in a signal handler may call MPI_Finalize
 * from an atexit function. If that handler has interrupted the engine, this function returns an
 * error without calling an error handler, so that the exit goes on with its status. */
int z_Finalize(void) {
  if (z_interrupts()) return MPI_ERR_OTHER;
  return zsession_finalize() ? MPI_SUCCESS : real.Finalize();
}

int z_Abort(MPI_Comm comm, int code) { return z_abort(comm, code); }
