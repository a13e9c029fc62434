/* The program's view of the alternate stack of each thread; and handlers with SA_ONSTACK and
 * without, which both have the stack that they need. */
#define _GNU_SOURCE
#include "check.h"
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>

enum { SMALL = 16 << 10, LARGE = 1 << 20, NEEDED = 64 << 10 };

static char small[2][SMALL], large[2][LARGE];
static _Thread_local volatile sig_atomic_t came, on_large;
static _Thread_local int which; /* the one of this thread's two stacks that is set */

/* Needs more than the small stack. */
static void needs_much(int n) {
  volatile char *p = alloca(NEEDED);
  (void)n;
  for (int i = 0; i < NEEDED; i += 64) p[i] = 1;
  came += p[NEEDED - 64];
}

static void looks(int n) {
  char here;
  (void)n;
  came++;
  on_large = &here >= large[which] && &here < large[which] + LARGE;
}

static void set(void *at, size_t bytes, int flags, const char *what) {
  stack_t s = {.ss_sp = at, .ss_size = bytes, .ss_flags = flags}, old;
  errno = 0;
  int rc = sigaltstack(&s, &old);
  line("%s: %d, error %d, before it %zu bytes, flags %d", what, rc, errno, rc ? 0 : old.ss_size, rc ? 0 : old.ss_flags);
}

static void note(const char *what) {
  stack_t s;
  SAME(sigaltstack(NULL, &s), 0, "sigaltstack");
  line("%s: %zu bytes, flags %d, %s", what, s.ss_size, s.ss_flags,
       s.ss_sp == small[which]   ? "the small one"
       : s.ss_sp == large[which] ? "the large one"
       : s.ss_sp                 ? "another"
                                 : "none");
}

static void handle(void) {
  raise(SIGUSR1), raise(SIGUSR2);
  line("%d came, %s", (int)came, on_large ? "the second on the large stack" : "neither on the large stack");
  on_large = 0;
}

static void communicate(void) {
  int in = -1;
  for (int i = 0; i < 100; i++)
    MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % np, which, &in, 1, MPI_INT, (me + np - 1) % np, which, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  SAME(in, (me + np - 1) % np, "the message");
}

static void stacks(void) {
  note("at first");
  set(small[which], SMALL, 0, "a small one"), note("after that"), handle();
  set(large[which], LARGE, 0, "a large one"), note("after that"), handle();
  set(large[which], LARGE, 1 << 8, "flags that do not exist");
  set(small[which], 16, 0, "one that is too small"), note("after that");
  set(NULL, 0, SS_DISABLE, "none"), note("after that"), handle();
  set(small[which], SMALL, 0, "a small one"), note("after that"), handle();
}

static void *thread(void *unused) {
  which = 1;
  stacks();
  communicate();
  note("after messages");
  stacks();
  return unused;
}

int main(int argc, char **argv) {
  struct sigaction plain = {.sa_handler = needs_much}, with = {.sa_handler = looks, .sa_flags = SA_ONSTACK};
  pthread_t other;
  int level;
  sigaction(SIGUSR1, &plain, NULL), sigaction(SIGUSR2, &with, NULL);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  handle();
  sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL); /* MPICH may have set one */
  note("after MPI_Init");
  handle();
  pthread_create(&other, NULL, thread, NULL);
  pthread_join(other, NULL);
  stacks();
  communicate();
  note("after messages");
  stacks();
  return finish();
}
