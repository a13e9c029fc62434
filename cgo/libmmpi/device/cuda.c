/* CUDA's driver. */
#include "core/job.h"
#include "core/map.h"
#include "device/driver.h"
#include <stdio.h>

enum { CONTEXT = 1, MEMORY_TYPE = 2, SYNC_MEMOPS = 6, IS_MANAGED = 8, DEVICE_ORDINAL = 9 }; /* CU_POINTER_ATTRIBUTE_… */
enum { TYPE_DEVICE = 2, TYPE_UNIFIED = 4 };                                                 /* CU_MEMORYTYPE_… */
enum { INVALID_VALUE = 1 };                                                                 /* CUDA_ERROR_… */
enum { NON_BLOCKING = 1 };                                                                  /* CU_STREAM_… */
#define LEGACY_STREAM ((void *)1)

/* CUDA_MEMCPY2D. Addresses are unified: the driver knows for each whether it is the host's. */
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

static int (*get)(unsigned, const int *, void **, uintptr_t), (*set)(const void *, int, uintptr_t);
static int (*device_get)(int *, int), (*retain)(void **, int);
static int (*push)(void *), (*pop)(void **);
static int (*stream)(void **, unsigned), (*synchronize)(void *);
static int (*copy_bytes)(uintptr_t, uintptr_t, size_t, void *), (*copy_plane)(const plane *, void *);
static int (*host_alloc)(void **, size_t, unsigned);
static int (*error_text)(int, const char **);
static const char *lacks;

static int open(void *library) {
  const zsymbol all[] = {{"cuPointerGetAttributes", (void **)&get}, {"cuPointerSetAttribute", (void **)&set},
                         {"cuDeviceGet", (void **)&device_get},     {"cuDevicePrimaryCtxRetain", (void **)&retain},
                         {"cuCtxPushCurrent_v2", (void **)&push},   {"cuCtxPopCurrent_v2", (void **)&pop},
                         {"cuStreamCreate", (void **)&stream},      {"cuStreamSynchronize", (void **)&synchronize},
                         {"cuMemcpyAsync", (void **)&copy_bytes},   {"cuMemcpy2DAsync_v2", (void **)&copy_plane},
                         {"cuMemHostAlloc", (void **)&host_alloc},  {"cuGetErrorString", (void **)&error_text}};
  lacks = zdriver_look_up(library, all, sizeof all / sizeof *all);
  return get != NULL;
}

/* The driver's answer about an address. */
typedef struct answer {
  unsigned type, managed, sync_memops;
  int ordinal;
  void *context;
} answer;

/* This thread's last answer about memory of a device, and the address: a copy follows the question
 * whether an address is memory of a device. */
static _Thread_local answer last;
static _Thread_local const void *asked;

/* All questions are asked at once, because the driver takes long to answer one about an ordinary
 * address, which it reports as an error. */
static int owns(const void *p) {
  static const int what[] = {MEMORY_TYPE, IS_MANAGED, SYNC_MEMOPS, DEVICE_ORDINAL, CONTEXT};
  answer is = {0};
  void *out[] = {&is.type, &is.managed, &is.sync_memops, &is.ordinal, &is.context};
  int error = get(sizeof what / sizeof *what, what, out, (uintptr_t)p);
  if (error) return last = is, zdriver_owned_despite(error, p);
  if ((is.type & 0xff) != TYPE_DEVICE || (is.managed & 0xff)) return 0;
  last = is, asked = p;
  return 1;
}

/* Sets *context to that of the memory of the last answer. Memory of a pool has none; it can be used
 * in the primary context of its device. */
static int context_of(void **context) {
  static void *primary[64]; /* retained once each, for good */
  int device, error;
  if ((*context = last.context)) return 0;
  if ((error = device_get(&device, last.ordinal))) return error;
  void **kept = (unsigned)last.ordinal < sizeof primary / sizeof *primary ? &primary[last.ordinal] : context;
  if (!*kept) error = retain(kept, device);
  *context = *kept;
  return error;
}

/* Sets *queue to the stream of the library in a context, which is current. */
static int queue_of(void **queue, void *context) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static zmap streams; /* the map from a context to the stream */
  int error = 0;
  pthread_mutex_lock(&lock);
  *queue = zmap_get(&streams, z_key(context));
  if (!*queue && !(error = stream(queue, NON_BLOCKING))) zmap_put(&streams, z_key(context), *queue);
  pthread_mutex_unlock(&lock);
  return error;
}

/* Lets the library's stream see what the program has written by calls such as cudaMemcpy, which may
 * return before the data are in the device's memory. With SYNC_MEMOPS later calls about this
 * allocation do not; earlier ones have used the default stream. */
static int settle(uintptr_t memory) {
  const unsigned yes = 1;
  if (last.sync_memops & 0xff) return 0;
  set(&yes, SYNC_MEMOPS, memory); /* some kinds of memory do not have it */
  return synchronize(LEGACY_STREAM);
}

static int enter(zplace *place, const void *device) {
  void *context;
  if (lacks) return ZDRIVER_LACKS;
  if (asked != device && !owns(device)) return INVALID_VALUE;
  int error = context_of(&context);
  asked = NULL; /* the memory may be another's at the next call */
  if (error || (error = push(context))) return error;
  if (!(error = queue_of(&place->queue, context))) error = settle((uintptr_t)device);
  if (error) pop(&context);
  return error;
}

static void leave(const zplace *place) {
  void *context;
  (void)place;
  pop(&context);
}

static int copy(const zplace *place, const zrows *r) {
  if (r->rows == 1) return copy_bytes((uintptr_t)r->to, (uintptr_t)r->from, (size_t)r->width, place->queue);
  const plane p = {.from = {.type = TYPE_UNIFIED, .device = (uintptr_t)r->from, .pitch = (size_t)r->from_pitch},
                   .to = {.type = TYPE_UNIFIED, .device = (uintptr_t)r->to, .pitch = (size_t)r->to_pitch},
                   .width = (size_t)r->width,
                   .height = (size_t)r->rows};
  return copy_plane(&p, place->queue);
}

static int wait(const zplace *place) { return synchronize(place->queue); }

static void *pin(size_t bytes) {
  enum { PORTABLE = 1 }; /* for all contexts */
  void *p;
  return host_alloc(&p, bytes, PORTABLE) ? NULL : p;
}

static const char *text(int error) {
  static _Thread_local char unknown[80];
  const char *known = NULL;
  if (error == ZDRIVER_LACKS) snprintf(unknown, sizeof unknown, "the driver lacks the function %s", lacks);
  else if (error_text && !error_text(error, &known) && known) return known;
  else snprintf(unknown, sizeof unknown, "error %d", error);
  return unknown;
}

const zdriver zdriver_cuda = {"CUDA", "libcuda.so.", open, owns, enter, copy, wait, leave, pin, text};
