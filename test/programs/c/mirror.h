/* Memory of a real CUDA device for programs that know nothing of it (on_device.h). malloc
 * returns memory of the host with a mirror in the device. The mirror has the valid data while
 * the program is inside MPI. When the program touches a block of the host's memory, the block is
 * read from the device; when the program calls MPI, its changes are written there. Changes are
 * found by comparing the block with a copy, so data that MPI receives into other parts of the
 * block are kept. */
#ifndef MIRROR_H
#define MIRROR_H
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MI_BLOCK = 64 << 10, MI_UNIT = 256, MI_CLASSES = 40 };
#define MI_BYTES ((size_t)512 << 20)
#define MI_BLOCKS (MI_BYTES / MI_BLOCK)

static struct {
  char *host, *view, *twin; /* the program's addresses; the same memory, always accessible; the copies */
  uintptr_t device;
  size_t used;                   /* the bytes that have been allocated from the front */
  unsigned char open[MI_BLOCKS]; /* 1 if the program may touch the block */
  int touched[MI_BLOCKS], n;     /* the blocks that it may touch */
  unsigned char *class_;         /* the class of the allocation that begins at each unit */
  unsigned *next;                /* the number of the next freed allocation of the class, for each unit */
  unsigned freed[MI_CLASSES];    /* the number of the first freed allocation of each class, or 0 */
  void *context;
  pthread_mutex_t lock;
  struct sigaction before;
  int (*set_context)(void *), (*write)(uintptr_t, const void *, size_t), (*read)(void *, uintptr_t, size_t);
} mi = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline int mi_has(const void *p) {
  return mi.host && (uintptr_t)p >= (uintptr_t)mi.host && (uintptr_t)p < (uintptr_t)mi.host + MI_BYTES;
}

static inline void mi_must(int error, const char *what) {
  if (!error) return;
  fprintf(stderr, "mirror: %s: error %d\n", what, error);
  _exit(9);
}

/* ---- coherence ---- */

static void mi_fault(int sig, siginfo_t *info, void *context) {
  if (!mi_has(info->si_addr)) {
    if (mi.before.sa_flags & SA_SIGINFO) mi.before.sa_sigaction(sig, info, context);
    else signal(sig, SIG_DFL);
    return;
  }
  size_t i = (size_t)((char *)info->si_addr - mi.host) / MI_BLOCK, at = i * MI_BLOCK;
  pthread_mutex_lock(&mi.lock);
  if (!mi.open[i]) {
    mi_must(mi.set_context(mi.context), "cuCtxSetCurrent");
    mi_must(mi.read(mi.view + at, mi.device + at, MI_BLOCK), "cuMemcpyDtoH");
    memcpy(mi.twin + at, mi.view + at, MI_BLOCK);
    mi.open[i] = 1;
    mi.touched[mi.n++] = (int)i;
    mi_must(mprotect(mi.host + at, MI_BLOCK, PROT_READ | PROT_WRITE), "mprotect");
  }
  pthread_mutex_unlock(&mi.lock);
}

/* Writes the bytes of a block that the program has changed to the device. */
static inline void mi_write(size_t at) {
  enum { WORD = 8 };
  const char *now = mi.view + at, *was = mi.twin + at;
  for (size_t i = 0, end; i < MI_BLOCK; i = end) {
    end = i + WORD;
    if (!memcmp(now + i, was + i, WORD)) continue;
    while (end < MI_BLOCK && memcmp(now + end, was + end, WORD)) end += WORD;
    size_t first = i, last = end;
    while (now[first] == was[first]) first++;
    while (now[last - 1] == was[last - 1]) last--;
    mi_must(mi.write(mi.device + at + first, now + first, last - first), "cuMemcpyHtoD");
  }
}

/* Makes the device's data valid: must be called before and after each call of MPI. */
static inline void mi_flush(void) {
  if (!mi.host) return;
  pthread_mutex_lock(&mi.lock);
  if (mi.n) mi_must(mi.set_context(mi.context), "cuCtxSetCurrent");
  for (int k = 0; k < mi.n; k++) {
    size_t i = (size_t)mi.touched[k], at = i * MI_BLOCK;
    mi_must(mprotect(mi.host + at, MI_BLOCK, PROT_NONE), "mprotect");
    mi.open[i] = 0;
    mi_write(at);
  }
  mi.n = 0;
  pthread_mutex_unlock(&mi.lock);
}

/* Makes memory accessible that is about to be passed to the kernel, whose accesses raise no
 * signal. */
static inline const void *mi_touch(const void *p, size_t n) {
  for (size_t i = 0; mi_has(p) && i < n; i += MI_BLOCK) (void)((const volatile char *)p)[i];
  if (mi_has(p) && n) (void)((const volatile char *)p)[n - 1];
  return p;
}

static inline void *mi_address(const void *p) {
  return mi_has(p) ? (void *)(mi.device + (size_t)((const char *)p - mi.host)) : (void *)(uintptr_t)p;
}

/* ---- memory ---- */

static inline void *mi_malloc(size_t n) {
  if (!mi.host) return malloc(n);
  int class_ = 0;
  while (((size_t)MI_UNIT << class_) < n) class_++;
  pthread_mutex_lock(&mi.lock);
  unsigned unit = mi.freed[class_];
  char *p = unit ? mi.host + (size_t)unit * MI_UNIT : NULL;
  if (p) mi.freed[class_] = mi.next[unit];
  else if (mi.used + ((size_t)MI_UNIT << class_) <= MI_BYTES) {
    p = mi.host + mi.used;
    mi.used += (size_t)MI_UNIT << class_;
  }
  if (p) mi.class_[(p - mi.host) / MI_UNIT] = (unsigned char)class_;
  pthread_mutex_unlock(&mi.lock);
  return p ? p : malloc(n); /* the host's alone */
}

static inline void mi_free(void *p) {
  if (!mi_has(p)) {
    free(p);
    return;
  }
  unsigned unit = (unsigned)(((char *)p - mi.host) / MI_UNIT), class_ = mi.class_[unit];
  pthread_mutex_lock(&mi.lock);
  mi.next[unit] = mi.freed[class_];
  mi.freed[class_] = unit;
  pthread_mutex_unlock(&mi.lock);
}

static inline void *mi_calloc(size_t n, size_t m) {
  void *p = mi_malloc(n * m);
  return p ? memset(p, 0, n * m) : p;
}

static inline void *mi_realloc(void *p, size_t n) {
  if (!mi_has(p)) return realloc(p, n);
  size_t room = (size_t)MI_UNIT << mi.class_[((char *)p - mi.host) / MI_UNIT];
  void *q = mi_malloc(n);
  if (q) memcpy(q, p, room < n ? room : n), mi_free(p);
  return q;
}

/* ---- beginning ---- */

static inline void mi_begin(void *driver) {
  int device, file = (int)memfd_create("mirror", 0);
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*get)(int *, int) = (int (*)(int *, int))dlsym(driver, "cuDeviceGet");
  int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*allocate)(uintptr_t *, size_t) = (int (*)(uintptr_t *, size_t))dlsym(driver, "cuMemAlloc_v2");
  mi.set_context = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
  mi.write = (int (*)(uintptr_t, const void *, size_t))dlsym(driver, "cuMemcpyHtoD_v2");
  mi.read = (int (*)(void *, uintptr_t, size_t))dlsym(driver, "cuMemcpyDtoH_v2");
  mi_must(!init || !get || !retain || !allocate || !mi.set_context || !mi.write || !mi.read, "dlsym");
  mi_must(init(0), "cuInit");
  mi_must(get(&device, 0), "cuDeviceGet");
  mi_must(retain(&mi.context, device), "cuDevicePrimaryCtxRetain");
  mi_must(mi.set_context(mi.context), "cuCtxSetCurrent");
  mi_must(allocate(&mi.device, MI_BYTES), "cuMemAlloc");
  mi_must(file < 0 || ftruncate(file, (off_t)MI_BYTES), "memfd_create");
  mi.view = mmap(NULL, MI_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  mi.twin = mmap(NULL, MI_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mi.class_ = calloc(MI_BYTES / MI_UNIT, 1);
  mi.next = calloc(MI_BYTES / MI_UNIT, sizeof *mi.next);
  mi.used = MI_UNIT; /* unit 0 stands for none */
  char *host = mmap(NULL, MI_BYTES, PROT_NONE, MAP_SHARED, file, 0);
  mi_must(mi.view == MAP_FAILED || mi.twin == MAP_FAILED || host == MAP_FAILED || !mi.class_ || !mi.next, "mmap");
  close(file);
  struct sigaction action = {.sa_sigaction = mi_fault, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
  sigaction(SIGSEGV, &action, &mi.before);
  mi.host = host;
}
#endif
