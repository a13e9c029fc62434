/* libmmpi-unmaps.so: preloaded with ZIPPER_REGISTRATION_CACHE=1, so that registrations of the
 * program's memory may be cached.
 *
 * A registration covers pages, not addresses: when a program unmaps memory and maps other memory at
 * the address, an adapter still reads the old pages. So every call by which a program unmaps pages
 * is noted before it is made. The engine reads the notes before it uses a cached registration.
 *
 * glibc's own calls do not use its exported symbols. Its malloc is configured to keep its memory:
 * blocks come from one heap that only grows. A thread's stack, whose pages glibc releases when the
 * thread ends, is noted by the thread itself. System calls that a program makes without glibc are
 * not noticed.
 *
 * Notes are made without locks, because calls also come from signal handlers and from inside of
 * other allocators. */
#define _GNU_SOURCE
#include "../unmaps.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* The next definition of a function, looked up at its first call: constructors of other libraries
 * may call it before this library's constructor has run. */
#define NEXT(f)                                             \
  ({                                                        \
    static __typeof__(&f) next;                             \
    if (!next) next = (__typeof__(&f))dlsym(RTLD_NEXT, #f); \
    next;                                                   \
  })

EXPORT zu_list zipper_unmaps;

static void note(uintptr_t from, uintptr_t to) {
  uint64_t t = __atomic_fetch_add(&zipper_unmaps.count, 1, __ATOMIC_SEQ_CST);
  __typeof__(&zipper_unmaps.note[0]) n = &zipper_unmaps.note[t % ZU_NOTES];
  __atomic_store_n(&n->number, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&n->from, from, __ATOMIC_SEQ_CST);
  __atomic_store_n(&n->to, to, __ATOMIC_SEQ_CST);
  __atomic_store_n(&n->number, t + 1, __ATOMIC_SEQ_CST);
}

static void note_bytes(const void *at, size_t n) {
  uintptr_t from = (uintptr_t)at, to = from + n;
  note(from, to < from ? UINTPTR_MAX : to);
}

static void note_all(void) { note(0, UINTPTR_MAX); }

__attribute__((constructor)) static void load(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);        /* free does not unmap, realloc does not remap */
  mallopt(M_TRIM_THRESHOLD, -1); /* the heap does not shrink */
  mallopt(M_ARENA_MAX, 1);       /* there are no other heaps */
#endif
}

EXPORT int munmap(void *at, size_t n) {
  note_bytes(at, n);
  return NEXT(munmap)(at, n);
}

EXPORT void *mremap(void *old, size_t n, size_t wanted, int flags, ...) {
  void *to = NULL;
  if (flags & MREMAP_FIXED) {
    va_list v;
    va_start(v, flags);
    to = va_arg(v, void *);
    va_end(v);
    note_bytes(to, wanted);
  }
  note_bytes(old, n);
  return NEXT(mremap)(old, n, wanted, flags, to);
}

/* Mapping at a fixed address unmaps the pages that were there. */
EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off) {
  if (flags & MAP_FIXED) note_bytes(at, n);
  return NEXT(mmap)(at, n, prot, flags, fd, off);
}

EXPORT void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t off) {
  if (flags & MAP_FIXED) note_bytes(at, n);
  return NEXT(mmap64)(at, n, prot, flags, fd, off);
}

EXPORT int madvise(void *at, size_t n, int advice) {
  switch (advice) {
  case MADV_NORMAL:
  case MADV_RANDOM:
  case MADV_SEQUENTIAL:
  case MADV_WILLNEED:
  case MADV_DONTFORK:
  case MADV_DOFORK:
  case MADV_DONTDUMP:
  case MADV_DODUMP: break; /* the pages stay */
  default: note_bytes(at, n);
  }
  return NEXT(madvise)(at, n, advice);
}

static void shrunk(uintptr_t end) {
  uintptr_t now = (uintptr_t)NEXT(sbrk)(0);
  if (end < now) note(end, now);
}

EXPORT int brk(void *end) {
  shrunk((uintptr_t)end);
  return NEXT(brk)(end);
}

EXPORT void *sbrk(intptr_t n) {
  if (n < 0) shrunk((uintptr_t)NEXT(sbrk)(0) + n);
  return NEXT(sbrk)(n);
}

EXPORT int shmdt(const void *at) {
  note_all(); /* only the kernel knows the range */
  return NEXT(shmdt)(at);
}

EXPORT int malloc_trim(size_t pad) {
  note_all();
  return NEXT(malloc_trim)(pad);
}

EXPORT int dlclose(void *library) {
  note_all();
  return NEXT(dlclose)(library);
}

/* ---- threads: the pages of a stack are released when its thread ends ---- */

struct beginning {
  void *(*run)(void *);
  void *argument;
};

static void ended(void *unused) {
  (void)unused;
  pthread_attr_t a;
  void *stack;
  size_t n;
  if (pthread_getattr_np(pthread_self(), &a)) {
    note_all();
    return;
  }
  if (pthread_attr_getstack(&a, &stack, &n)) note_all();
  else note_bytes(stack, n);
  pthread_attr_destroy(&a);
}

static void *begin(void *p) {
  struct beginning b = *(struct beginning *)p;
  void *result;
  free(p);
  pthread_cleanup_push(ended, NULL);
  result = b.run(b.argument);
  pthread_cleanup_pop(1);
  return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument) {
  struct beginning *b = malloc(sizeof *b);
  if (!b) return NEXT(pthread_create)(thread, attr, run, argument); /* which most likely fails too */
  *b = (struct beginning){run, argument};
  int rc = NEXT(pthread_create)(thread, attr, begin, b);
  if (rc) free(b);
  return rc;
}
