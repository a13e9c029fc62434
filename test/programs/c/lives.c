/* Threads that begin and end while MPI is used: the one that calls MPI_Init, many with small stacks
 * and, with "lives first", finally the first thread of the process. */
#define _GNU_SOURCE
#include "check.h"
#include <limits.h>
#include <pthread.h>

enum { ROUNDS = 20, THREADS = 40 };

static int count;
static char **words;

static void *ring(void *nothing) {
  for (int i = 0; i < ROUNDS; i++) {
    int out = 1000 * me + i, in = -1, left = (me + np - 1) % np;
    MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % np, 1, &in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(in, 1000 * left + i, "a message of the ring");
  }
  return nothing;
}

static void *initialize(void *nothing) {
  int level;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
  SAME(level, MPI_THREAD_MULTIPLE, "the thread level");
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  return ring(nothing);
}

/* Runs f in a thread that ends, with a stack of so many bytes, or of the default size. */
static void in_thread(void *(*f)(void *), size_t stack) {
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  if (stack) CHECK(!pthread_attr_setstacksize(&attr, stack));
  CHECK(!pthread_create(&thread, &attr, f, NULL));
  CHECK(!pthread_join(thread, NULL));
  pthread_attr_destroy(&attr);
}

static pthread_t first;

static void *go_on(void *nothing) {
  CHECK(!pthread_join(first, NULL));
  ring(nothing);
  line("without the first");
  exit(finish());
}

int main(int argc, char **argv) {
  pthread_t last;
  count = argc, words = argv, first = pthread_self();
  in_thread(initialize, 0);
  ring(NULL);
  for (int i = 0; i < THREADS; i++) in_thread(ring, i % 2 ? 2 * PTHREAD_STACK_MIN : 0);
  line("%d threads", THREADS);
  if (argc == 1) return finish();
  CHECK(!pthread_create(&last, NULL, go_on, NULL));
  pthread_exit(NULL);
}
