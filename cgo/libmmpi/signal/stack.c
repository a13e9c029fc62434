/* Alternate stacks of threads. The kernel has one for each thread: the program's if it is long
 * enough, otherwise the library's. The program sees the one that it has set.
 *
 * Handlers for which the program has requested its alternate stack then run on the library's, which
 * is longer. */
#define _GNU_SOURCE
#include "signal/limits.h"
#include "signal/signal.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The alternate stacks of this thread. */
static _Thread_local struct {
  char *map;           /* The guard and, above it, the library's stack, or NULL if there is none. */
  stack_t ours;        /* The library's stack, as it is passed to the kernel. */
  stack_t programs;    /* The stack that the program has set, while the kernel has the library's. */
  volatile int *given; /* The argument of zstack_give, or NULL while the thread has not entered the engine. */
} own;

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int set(const stack_t *s, stack_t *old) { return zsignal_sigaltstack()(s, old); }

static int is_ours(const stack_t *s) { return own.map && !(s->ss_flags & SS_DISABLE) && s->ss_sp == own.ours.ss_sp; }

/* Returns whether the kernel must have the library's alternate stack instead of *s, the program's:
 * because it is too short or, in a thread that has entered the engine, because there is none. */
static int falls_short(const stack_t *s) {
  return s->ss_flags & SS_DISABLE ? own.given != NULL : s->ss_size < Z_KEPT_STACK;
}

/* Puts back the program's stack and unmaps the library's when a thread ends, unless the thread ends
 * in a handler that runs on the library's. */
static void drop(void *unused) {
  stack_t now;
  (void)unused;
  if (set(NULL, &now) || (is_ours(&now) && (now.ss_flags & SS_ONSTACK || set(&own.programs, NULL)))) return;
  munmap(own.map, Z_STACK_GUARD + own.ours.ss_size);
  own.map = NULL;
  if (own.given) *own.given = 0;
  own.given = NULL;
}

static void make_key(void) { pthread_key_create(&at_end, drop); }

static size_t wanted(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur > Z_LONG_STACK) return Z_LONG_STACK;
  return limit.rlim_cur < Z_SHORT_STACK ? Z_SHORT_STACK : limit.rlim_cur / Z_STACK_GUARD * Z_STACK_GUARD;
}

/* Maps the library's alternate stack of this thread and the guard below it, unless it is mapped
 * already. Returns whether the thread has one. */
static int make(void) {
  enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK };
  if (own.map) return 1;
  pthread_once(&once, make_key);
  for (size_t n = wanted(); n >= Z_LEAST_STACK; n /= 2) {
    char *map = mmap(NULL, Z_STACK_GUARD + n, PROT_NONE, FLAGS, -1, 0);
    if (map == MAP_FAILED) continue;
    if (mprotect(map + Z_STACK_GUARD, n, PROT_READ | PROT_WRITE) || pthread_setspecific(at_end, map)) {
      munmap(map, Z_STACK_GUARD + n);
      continue;
    }
    own.map = map;
    own.ours = (stack_t){.ss_sp = map + Z_STACK_GUARD, .ss_size = n};
    return 1;
  }
  return 0;
}

/* Gives the kernel the library's alternate stack in place of *programs, which the program continues
 * to see, if there is memory for it. */
static void replace(const stack_t *programs) {
  if (make() && !set(&own.ours, NULL)) own.programs = *programs;
}

/* Blocks all signals in this thread and stores the previous mask in *was, because handlers must not
 * see the kernel's stack change. */
static void block(sigset_t *was) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, was);
}

/* Sets and returns the thread's alternate stack, as the program sees it. The kernel checks the
 * program's arguments; a stack that is too short is then replaced by the library's. */
EXPORT int sigaltstack(const stack_t *restrict s, stack_t *restrict old) {
  stack_t now, asked;
  sigset_t mask;
  if (!zsignal_zipped()) return set(s, old);
  block(&mask);
  int rc = set(s, &now);
  if (!rc && is_ours(&now)) {
    int running = now.ss_flags & SS_ONSTACK;
    now = own.programs;
    if (!(now.ss_flags & SS_DISABLE)) now.ss_flags |= running;
  }
  if (!rc && s && !set(NULL, &asked) && falls_short(&asked)) replace(&asked);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  if (!rc && old) *old = now;
  return rc;
}

int zstack_give(volatile int *given) {
  stack_t now;
  sigset_t mask;
  block(&mask);
  int can = !set(NULL, &now) && !(now.ss_flags & SS_ONSTACK);
  if (can) own.given = given;
  if (can && !is_ours(&now) && falls_short(&now)) replace(&now);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  return can;
}
