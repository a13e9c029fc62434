/* The launcher's variables. Programs may read their rank and the number of ranks from these
 * variables before MPI_Init. Therefore zipper exec sets them to the values of the job's
 * MPI_COMM_WORLD. The native library reads them too, so it gets its own values during its start. */
#define _GNU_SOURCE
#include "core/job.h"
#include "start/start.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *rank, *size;
} pair;

/* The environment variables with the rank and the number of ranks, for each launcher. The same
 * list, in the same order of precedence, is in launch/native/rank.go. */
static const pair launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}};
static const pair world = {"ZIPPER_RANK", "ZIPPER_SIZE"}, native = {"ZIPPER_NATIVE_RANK", "ZIPPER_NATIVE_SIZE"};

static const char *value(const char *name) {
  const char *text = getenv(name);
  return text ? text : "";
}

/* Returns whether another launcher than the one that runs zipper exec has started this process. A
 * launcher is identified by the namespace of its processes, or by its socket to this process, as in
 * launch/native/rank.go. */
static int nested(void) {
  const char *then = value("ZIPPER_LAUNCHER"), *now = value("PMIX_NAMESPACE");
  char link[64], socket[64] = "";
  if (!*now && *value("PMI_FD")) {
    snprintf(link, sizeof link, "/proc/self/fd/%s", value("PMI_FD"));
    ssize_t n = readlink(link, socket, sizeof socket - 1);
    socket[n > 0 ? n : 0] = 0;
    now = socket;
  }
  return *then && *now && strcmp(then, now);
}

/* Returns the names of the launcher's variables whose values zipper exec has replaced, or NULL if
 * it has replaced none in this process. */
static const pair *replaced(void) {
  if (!*value(native.rank) || nested()) return NULL;
  for (unsigned i = 0; i < sizeof launchers / sizeof *launchers; i++)
    if (*value(launchers[i].rank)) return &launchers[i];
  return NULL;
}

static void set(pair from) {
  const pair *to = replaced();
  if (!to) return;
  setenv(to->rank, value(from.rank), 1);
  setenv(to->size, value(from.size), 1);
}

void zlauncher_native(void) { set(native); }

void zlauncher_world(void) { set(world); }

const char *zlauncher_problem(void) {
  if (!nested()) return NULL;
  return "this process was started by an mpirun inside the script or program that zipper was given, so it would be in "
         "a "
         "job of its own: give zipper the program that this mpirun starts, with its arguments";
}
