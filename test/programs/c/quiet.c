/* The last rank, alone in its cluster, waits in MPI_Recv while the others compute without MPI. The
 * threads that MMPI adds to a process should sleep meanwhile, because each of their turns takes
 * time from the program. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <time.h>

enum { BUSY_S = 3, SETTLE_MS = 500 };
/* per second. Seen: 20 to 30, and 130 to 180; with sleeps of milliseconds 260, and 900 to 1070 */
enum { TURNS_PER_S = 100, WAITING = 400 };

/* Returns the number of times that all threads of this process have given up a core. */
static long turns(void) {
  long sum = 0, n;
  struct dirent *d;
  DIR *tasks = opendir("/proc/self/task");
  while (tasks && (d = readdir(tasks))) {
    char path[300], text[100];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", d->d_name);
    FILE *f = fopen(path, "r");
    while (f && fgets(text, sizeof text, f))
      if (sscanf(text, "voluntary_ctxt_switches: %ld", &n) == 1) sum += n;
    if (f) fclose(f);
  }
  if (tasks) closedir(tasks);
  return sum;
}

static void busy(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
  int x = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  MPI_Barrier(MPI_COMM_WORLD);
  /* after the other ranks have settled */
  if (me == np - 1) MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else busy(SETTLE_MS);
  if (me == 0) MPI_Send(&x, 1, MPI_INT, np - 1, 0, MPI_COMM_WORLD), busy(SETTLE_MS);
  long before = turns();
  if (me == np - 1) MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else busy(1000 * BUSY_S);
  long after = turns();
  CHECK((after - before) / BUSY_S < (me < np - 1 ? TURNS_PER_S : WAITING), "%ld turns in %d s", after - before, BUSY_S);
  if (me == 0) MPI_Send(&x, 1, MPI_INT, np - 1, 1, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
