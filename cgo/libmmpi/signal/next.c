/* The C library's functions behind those of this chapter, and the test whether the chapter is
 * active. */
#define _GNU_SOURCE
#include "signal/signal.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns the definition of the function `name` that comes after this library's, and keeps it in
 * *next. The constructor below calls this before any handler can run, because dlsym is not
 * async-signal-safe. Constructors of other libraries may call the functions even earlier. */
static void *find(void **next, const char *name) {
  void *f = __atomic_load_n(next, __ATOMIC_RELAXED);
  if (f) return f;
  f = dlsym(RTLD_NEXT, name);
  __atomic_store_n(next, f, __ATOMIC_RELAXED);
  return f;
}

zsigaction_fn *zsignal_sigaction(void) {
  static void *next;
  return (zsigaction_fn *)find(&next, "sigaction");
}

zsigaltstack_fn *zsignal_sigaltstack(void) {
  static void *next;
  return (zsigaltstack_fn *)find(&next, "sigaltstack");
}

int zsignal_zipped(void) {
  enum { UNKNOWN, NO, YES };
  static int known;
  int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (is == UNKNOWN && environ) {
    const char *job = getenv("ZIPPER_JOB");
    is = job && *job ? YES : NO;
    __atomic_store_n(&known, is, __ATOMIC_RELAXED);
  }
  return is == YES;
}

__attribute__((constructor)) static void load(void) {
  zsignal_sigaction();
  zsignal_sigaltstack();
  zsignal_zipped();
}
