/* HIP, the runtime of ROCm. */
#include "core/job.h"
#include "device/driver.h"
#include <stdio.h>

enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9 }; /* HIP_POINTER_ATTRIBUTE_… */
enum { ANY_DIRECTION = 4 };                                   /* hipMemcpyDefault */
/* A stream of the library waits for the program's default stream and the reverse, so that copies
 * are after calls such as hipMemcpy, which may return before the data are in the device's
 * memory. */
enum { BLOCKING = 0 };

static int (*get)(void *, int, uintptr_t), (*version_of)(int *);
static int (*current)(int *), (*select_device)(int);
static int (*stream)(void **, unsigned), (*synchronize)(void *);
static int (*copy_bytes)(void *, const void *, size_t, int, void *);
static int (*copy_plane)(void *, size_t, const void *, size_t, size_t, size_t, int, void *);
static int (*host_alloc)(void **, size_t, unsigned);
static const char *(*error_text)(int);
static const char *lacks;
/* the number by which HIP denotes memory of the type "device", which changed with HIP 6 */
static unsigned type_device;

static int open(void *library) {
  const zsymbol all[] = {{"hipPointerGetAttribute", (void **)&get},
                         {"hipRuntimeGetVersion", (void **)&version_of},
                         {"hipGetDevice", (void **)&current},
                         {"hipSetDevice", (void **)&select_device},
                         {"hipStreamCreateWithFlags", (void **)&stream},
                         {"hipStreamSynchronize", (void **)&synchronize},
                         {"hipMemcpyAsync", (void **)&copy_bytes},
                         {"hipMemcpy2DAsync", (void **)&copy_plane},
                         {"hipHostMalloc", (void **)&host_alloc},
                         {"hipGetErrorString", (void **)&error_text}};
  int version = 0;
  lacks = zdriver_look_up(library, all, sizeof all / sizeof *all);
  type_device = version_of && !version_of(&version) && version < 60000000 ? 1 : 2;
  return get != NULL;
}

static int owns(const void *p) {
  unsigned type = 0, managed = 0;
  int error = get(&type, MEMORY_TYPE, (uintptr_t)p);
  if (error) return zdriver_owned_despite(error, p);
  if (type != type_device) return 0;
  return get(&managed, IS_MANAGED, (uintptr_t)p) || !managed;
}

/* Sets *queue to the library's stream of the current device, which has this number. */
static int queue_of(void **queue, int device) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static void *streams[64];
  int error = 0;
  if ((unsigned)device >= sizeof streams / sizeof *streams) return *queue = NULL, 0; /* the default stream */
  pthread_mutex_lock(&lock);
  if (!streams[device]) error = stream(&streams[device], BLOCKING);
  *queue = streams[device];
  pthread_mutex_unlock(&lock);
  return error;
}

static int enter(zplace *place, const void *device) {
  int number = 0;
  if (lacks) return ZDRIVER_LACKS;
  int error = get(&number, DEVICE_ORDINAL, (uintptr_t)device);
  if (error || (error = current(&place->before)) || (error = select_device(number))) return error;
  if ((error = queue_of(&place->queue, number))) select_device(place->before);
  return error;
}

static void leave(const zplace *place) { select_device(place->before); }

static int copy(const zplace *place, const zrows *r) {
  if (r->rows == 1) return copy_bytes(r->to, r->from, (size_t)r->width, ANY_DIRECTION, place->queue);
  return copy_plane(r->to, (size_t)r->to_pitch, r->from, (size_t)r->from_pitch, (size_t)r->width, (size_t)r->rows,
                    ANY_DIRECTION, place->queue);
}

static int wait(const zplace *place) { return synchronize(place->queue); }

static void *pin(size_t bytes) {
  enum { PORTABLE = 1 }; /* for all devices */
  void *p;
  return host_alloc(&p, bytes, PORTABLE) ? NULL : p;
}

static const char *text(int error) {
  static _Thread_local char other[80];
  if (error != ZDRIVER_LACKS) return error_text(error);
  snprintf(other, sizeof other, "the driver lacks the function %s", lacks);
  return other;
}

const zdriver zdriver_hip = {"ROCm", "libamdhip64.so.", open, owns, enter, copy, wait, leave, pin, text};
