/* Calls of MPI by functions that run when a process exits.
 *
 *   exits finalize     a handler of atexit calls MPI_Finalize
 *   exits communicate  it communicates before that
 *   exits early        a handler that was installed before MPI_Init does so
 *   exits after        MPI_Finalize was called before, and the handler calls MPI_Finalized
 *   exits thread       a thread exits with a status while the first one waits in MPI */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>

static const char *how;

static int is(const char *word) { return !strcmp(how, word); }

static void at_exit(void) {
  int begun = 0, over = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&over);
  CHECK(begun, "not initialized");
  SAME(over, is("after"), "finalized");
  if (is("communicate") || is("early")) {
    int sum = -1;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAME(sum, np * (np - 1) / 2, "the sum");
  }
  if (is("after") || is("thread")) return;
  report(MPI_COMM_WORLD);
  MPI_Finalize();
  MPI_Finalized(&over);
  if (!over || failures) _Exit(1);
}

static void *leave(void *nothing) {
  exit(3);
  return nothing;
}

int main(int argc, char **argv) {
  int level, nothing;
  if (argc != 2) return 2;
  how = argv[1];
  if (is("early")) atexit(at_exit);
  MPI_Init_thread(&argc, &argv, is("thread") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  if (!is("early")) atexit(at_exit);
  line("%s", how);
  if (is("after")) return finish();
  if (is("thread")) {
    pthread_t thread;
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == np - 1) pthread_create(&thread, NULL, leave, NULL);
    MPI_Recv(&nothing, 1, MPI_INT, (me + 1) % np, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  exit(0);
}
