/* Rank 0 is late for a barrier. Each of the others, which wait for it, checks whether its thread
 * has slept meanwhile, as it must with ZIPPER_POLL=adaptive and event: it has used little processor
 * time. (The number of its sleeps means less: while others have the cores, a wait's first 20 ms may
 * last seconds, in which it yields and does not sleep.) */
#define _GNU_SOURCE
#include "check.h"
#include <time.h>

enum { LATE_S = 2, BUSY_MS = LATE_S * 1000 / 4 };

static double used_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  for (int i = 0; i < 10; i++) MPI_Barrier(MPI_COMM_WORLD); /* lets all ranks finish their start */
  double before = used_ms();
  if (me == 0) {
    struct timespec t = {LATE_S, 0};
    nanosleep(&t, NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double used = used_ms() - before;
  CHECK(used < BUSY_MS, "it computed %.0f ms of %d s", used, LATE_S);
  return finish();
}
