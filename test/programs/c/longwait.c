/* Rank 0 comes late to a barrier. The others wait for it; each looks whether its thread has slept
 * meanwhile, as it should with ZIPPER_POLL=adaptive and event. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/resource.h>
#include <time.h>

enum { LATE_S = 2, SLEEPS = 200 }; /* a sleep is 1 ms long at most */

static long slept(void) {
  struct rusage u;
  getrusage(RUSAGE_THREAD, &u);
  return u.ru_nvcsw;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  for (int i = 0; i < 10; i++) MPI_Barrier(MPI_COMM_WORLD); /* so that nobody is still busy with the start */
  long before = slept();
  if (me == 0) {
    struct timespec t = {LATE_S, 0};
    nanosleep(&t, NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (me > 0) CHECK(slept() - before > SLEEPS, "it gave the core up %ld times in %d s", slept() - before, LATE_S);
  return finish();
}
