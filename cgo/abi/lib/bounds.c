/* The bounds of a thread's stack. Go queries them in each call of the engine that is made on
 * another stack than the thread's: by a coroutine, or a user-level thread (Argobots, Boost). For
 * the first thread of a process the C library reads /proc/self/maps, which takes milliseconds. So
 * the bounds are queried once. A stack that grows beyond them later, because the program has raised
 * its limit, is handled by Go like a coroutine's. */
#define _GNU_SOURCE
#include <pthread.h>

int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);

/* Sets *attr to the bounds of the calling thread's stack, in place of pthread_getattr_np in Go's
 * calls (bounds.go), which are all about the calling thread. */
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr) {
  static _Thread_local struct {
    void *low;
    size_t bytes; /* 0 before the first call */
  } known;
  if (known.bytes) return pthread_attr_setstack(attr, known.low, known.bytes);
  int rc = __real_pthread_getattr_np(thread, attr);
  if (!rc) pthread_attr_getstack(attr, &known.low, &known.bytes);
  return rc;
}
