/* A fake device driver, built as libcuda.so.1, libamdhip64.so.6 and libze_loader.so.1
 * (test/e2e). An address of the device is that of memory of the process with bit 62 set.
 * Processors have no such addresses, so any access is a crash; only the driver's copies clear
 * the bit. As with real drivers, copies are made late, when the program waits for them, and only
 * by a thread with a current context. The functions that begin with fake_ are in no real driver. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIT = 62, BEGINNING_US = 50000 /* real drivers take longer to find their devices */ };
enum { OK, UNKNOWN = 1, NO_CONTEXT = 201, FAILED = 719 };

static int known(uintptr_t p) { return p >> BIT == 1; }
static void *host(uintptr_t p) { return (void *)(p & ~((uintptr_t)1 << BIT)); }

/* Returns the address in the device of memory of this process. */
void *fake_device_address(const void *p) {
  static int begun;
  if (!begun) usleep(BEGINNING_US), begun = 1;
  return (void *)((uintptr_t)p | (uintptr_t)1 << BIT);
}

/* ---- copies ---- */

typedef struct copy {
  struct copy *next;
  char *to;
  const char *from;
  size_t width, rows, to_pitch, from_pitch;
} copy;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static copy *first, **end = &first; /* the copies that have not been made */

static int copies, failing; /* the number of copies made, and the number of the one that fails */

/* Returns the number of copies that have been made. */
int fake_copies(void) { return copies; }
/* Lets the n-th copy from now on fail. */
void fake_fails(int n) { failing = copies + n; }

static int dead; /* the error that the device has, or 0 */

/* Lets all further calls fail with an error. */
void fake_dies(int error) { dead = error; }

static uintptr_t managed; /* the address of managed memory of the fake's, or 0 */

/* Returns memory that the device and the processor can access. */
void *fake_managed(size_t n) {
  void *p = calloc(1, n);
  return managed = (uintptr_t)p, p;
}

static int later(uintptr_t to, uintptr_t from, size_t width, size_t rows, size_t to_pitch, size_t from_pitch) {
  copy *c = malloc(sizeof *c);
  *c = (copy){NULL, host(to), host(from), width, rows, to_pitch, from_pitch};
  pthread_mutex_lock(&lock);
  *end = c, end = &c->next;
  pthread_mutex_unlock(&lock);
  return OK;
}

static int make(void) {
  int rc = OK;
  pthread_mutex_lock(&lock);
  for (copy *c = first, *next; c; c = next) {
    next = c->next;
    if (++copies == failing) rc = FAILED;
    else
      for (size_t i = 0; i < c->rows; i++) memmove(c->to + i * c->to_pitch, c->from + i * c->from_pitch, c->width);
    free(c);
  }
  first = NULL, end = &first;
  pthread_mutex_unlock(&lock);
  return rc;
}

static int attribute(void *out, int what, uintptr_t p) {
  enum { CONTEXT = 1, MEMORY_TYPE = 2, SYNC_MEMOPS = 6, IS_MANAGED = 8, ORDINAL = 9, DEVICE = 2 };
  if (!known(p) && (!managed || p != managed)) return UNKNOWN;
  switch (what) {
  case CONTEXT: *(void **)out = &lock; return OK;
  case MEMORY_TYPE: *(unsigned *)out = DEVICE; return OK;
  case SYNC_MEMOPS: *(unsigned *)out = 0; return OK;
  case IS_MANAGED: *(unsigned *)out = !known(p); return OK;
  case ORDINAL: *(int *)out = 0; return OK;
  }
  return UNKNOWN;
}

/* ---- CUDA ---- */

static _Thread_local int contexts; /* the number of contexts on this thread's stack */

/* CUDA_MEMCPY2D, declared here again and not shared with device/cuda.c: a wrong declaration there
 * would otherwise be wrong here, too, and pass. */
typedef struct side {
  size_t x, y;
  unsigned type;
  const void *host;
  uintptr_t device;
  void *array;
  size_t pitch;
} side;
typedef struct plane {
  side from, to;
  size_t width, height;
} plane;

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, OK; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = &lock, OK; }
int cuCtxPushCurrent_v2(void *context) { return dead ? dead : (contexts++, context == &lock ? OK : NO_CONTEXT); }
int cuCtxPopCurrent_v2(void **context) { return *context = &lock, contexts-- > 0 ? OK : NO_CONTEXT; }
int cuCtxSetCurrent(void *context) { return contexts = context != NULL, OK; }
int cuPointerGetAttributes(unsigned n, const int *what, void **out, uintptr_t p) {
  if (dead) return dead;
  for (unsigned i = 0; i < n; i++)
    if (attribute(out[i], what[i], p)) *(int *)out[i] = 0; /* as for ordinary memory */
  return OK;
}
int cuPointerSetAttribute(const void *in, int what, uintptr_t p) { return (void)in, (void)what, !known(p); }
int cuStreamCreate(void **stream, unsigned flags) {
  *stream = contexts && flags <= 1 ? &first : NULL;
  return *stream ? OK : NO_CONTEXT;
}
int cuStreamSynchronize(void *stream) {
  if (stream == (void *)1) return contexts ? OK : NO_CONTEXT; /* the default stream */
  return contexts && stream == &first ? make() : NO_CONTEXT;
}
int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t n, void *stream) {
  return contexts && stream == &first ? later(to, from, n, 1, n, n) : NO_CONTEXT;
}
int cuMemcpy2DAsync_v2(const plane *p, void *stream) {
  if (!contexts || stream != &first) return NO_CONTEXT;
  return later(p->to.device, p->from.device, p->width, p->height, p->to.pitch, p->from.pitch);
}
int cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t n) {
  return contexts && known(to) ? memmove(host(to), from, n), OK : NO_CONTEXT;
}
int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t n) {
  return contexts && known(from) ? memmove(to, host(from), n), OK : NO_CONTEXT;
}
int cuMemAlloc_v2(uintptr_t *p, size_t n) { return *p = (uintptr_t)fake_device_address(calloc(1, n)), OK; }
int cuMemFree_v2(uintptr_t p) { return free(host(p)), OK; }
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { return (void)flags, *p = aligned_alloc(4096, n), OK; }
int cuMemFreeHost(void *p) { return free(p), OK; }
int cuGetErrorString(int error, const char **text) {
  *text = error == FAILED ? "a fake fault of a kernel" : error == NO_CONTEXT ? "invalid device context" : "unknown";
  return OK;
}

/* ---- HIP ---- */

int hipRuntimeGetVersion(int *version) { return *version = 60200000, OK; }
int hipPointerGetAttribute(void *out, int what, void *p) { return dead ? dead : attribute(out, what, (uintptr_t)p); }
int hipGetDevice(int *device) { return *device = 3, OK; }
int hipSetDevice(int device) { return contexts = device == 0, OK; }
int hipStreamCreateWithFlags(void **stream, unsigned flags) { return cuStreamCreate(stream, flags); }
int hipStreamSynchronize(void *stream) { return cuStreamSynchronize(stream); }
int hipMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream) {
  return kind != 4 ? UNKNOWN : cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, n, stream);
}
int hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows,
                     int kind, void *stream) {
  if (!contexts || stream != &first || kind != 4) return NO_CONTEXT;
  return later((uintptr_t)to, (uintptr_t)from, width, rows, to_pitch, from_pitch);
}
int hipHostMalloc(void **p, size_t n, unsigned flags) { return cuMemHostAlloc(p, n, flags); }
const char *hipGetErrorString(int error) {
  const char *text;
  return cuGetErrorString(error, &text), text;
}

/* ---- Level Zero, with command lists that are synchronous ---- */

#ifdef NO_DEVICES /* the answers of a system without devices */
int zeDriverGet(uint32_t *n, void **driver) { return *n = 0, (void)driver, 0x78000001; }
#else
int zeDriverGet(uint32_t *n, void **driver) { return *n = 1, *driver = &lock, OK; }
#endif
int zeContextCreate(void *driver, const void *of, void **context) {
  return *context = driver, *(const uint32_t *)of == 0xd ? OK : UNKNOWN;
}
int zeMemGetAllocProperties(void *context, const void *p, void *out, void **of) { /* never fails with the device */
  struct {
    uint32_t kind;
    void *next;
    uint32_t type;
  } *is = out;
  if (context != &lock || is->kind != 0x17) return UNKNOWN;
  is->type = known((uintptr_t)p) ? 2 : (uintptr_t)p == managed ? 3 : 0;
  if (of) *of = &first;
  return OK;
}
int zeMemAllocHost(void *context, const uint32_t *how, size_t n, size_t alignment, void **p) {
  return *p = aligned_alloc(alignment, n), context == &lock && *how == 0x16 ? OK : UNKNOWN;
}
int zeCommandListCreateImmediate(void *context, void *device, const void *how, void **list) {
  const struct {
    uint32_t kind;
    void *next;
    uint32_t ordinal, index, flags, mode, priority;
  } *of = how;
  *list = &end;
  return context == &lock && device == &first && of->kind == 0xe && of->mode == 1 ? OK : UNKNOWN;
}
int zeCommandListAppendMemoryCopy(void *list, void *to, const void *from, size_t n, void *event, uint32_t waits,
                                  void **events) {
  (void)events;
  if (list != &end || event || waits || dead) return UNKNOWN;
  return later((uintptr_t)to, (uintptr_t)from, n, 1, n, n), make();
}
int zeCommandListAppendMemoryCopyRegion(void *list, void *to, const uint32_t *there, uint32_t to_pitch, uint32_t slices,
                                        const void *from, const uint32_t *here, uint32_t from_pitch, uint32_t planes,
                                        void *event, uint32_t waits, void **events) {
  enum { X, Y, Z, WIDTH, HEIGHT, DEPTH };
  (void)events, (void)slices, (void)planes;
  if (list != &end || event || waits || here[DEPTH] != 1 || memcmp(here, there, 24)) return UNKNOWN;
  return later((uintptr_t)to, (uintptr_t)from, here[WIDTH], here[HEIGHT], to_pitch, from_pitch), make();
}
