/* Level Zero. */
#include "core/job.h"
#include "core/map.h"
#include "device/driver.h"
#include <stdio.h>

/* ZE_STRUCTURE_TYPE_… */
enum { CONTEXT_DESC = 0xd, QUEUE_DESC = 0xe, HOST_DESC = 0x16, MEMORY_PROPERTIES = 0x17 };
enum { TYPE_DEVICE = 2 }; /* ZE_MEMORY_TYPE_DEVICE */
enum { SYNCHRONOUS = 1 }; /* ZE_COMMAND_QUEUE_MODE_… */

typedef struct region {
  uint32_t x, y, z, width, height, depth;
} region;

static int (*driver_get)(uint32_t *, void **), (*create_context)(void *, const void *, void **);
static int (*properties)(void *, const void *, void *, void **);
static int (*create_list)(void *, void *, const void *, void **);
static int (*copy_bytes)(void *, void *, const void *, size_t, void *, uint32_t, void **);
static int (*host_alloc)(void *, const void *, size_t, size_t, void **);
static int (*copy_region)(void *, void *, const region *, uint32_t, uint32_t, const void *, const region *, uint32_t,
                          uint32_t, void *, uint32_t, void **);
static const char *lacks;
static void *context;

static int open(void *library) {
  const zsymbol all[] = {{"zeMemGetAllocProperties", (void **)&properties},
                         {"zeDriverGet", (void **)&driver_get},
                         {"zeContextCreate", (void **)&create_context},
                         {"zeMemAllocHost", (void **)&host_alloc},
                         {"zeCommandListCreateImmediate", (void **)&create_list},
                         {"zeCommandListAppendMemoryCopy", (void **)&copy_bytes},
                         {"zeCommandListAppendMemoryCopyRegion", (void **)&copy_region}};
  const struct {
    uint32_t kind;
    void *next;
    uint32_t flags;
  } of = {.kind = CONTEXT_DESC};
  void *driver = NULL;
  uint32_t one = 1;
  lacks = zdriver_look_up(library, all, sizeof all / sizeof *all);
  /* If this fails Level Zero is not initialized, so nobody has allocated its memory */
  return properties && driver_get && create_context && !driver_get(&one, &driver) && driver &&
         !create_context(driver, &of, &context) && context;
}

/* Returns whether p lies in memory of a device that the host cannot read, and sets *device to the
 * device. */
static int query(const void *p, void **device) {
  struct {
    uint32_t kind;
    void *next;
    uint32_t type;
    uint64_t id, page;
  } is = {.kind = MEMORY_PROPERTIES};
  return !properties(context, p, &is, device) && is.type == TYPE_DEVICE;
}

static int owns(const void *p) { return query(p, NULL); }

/* Held from enter to leave, because two threads must not use a command list at once. */
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;

/* Sets place->queue to an immediate command list of the device, which makes each copy at once. */
static int enter(zplace *place, const void *memory) {
  static zmap lists; /* the map from a device to the list */
  const struct {
    uint32_t kind;
    void *next;
    uint32_t ordinal, index, flags, mode, priority;
  } how = {.kind = QUEUE_DESC, .mode = SYNCHRONOUS};
  void *device = NULL;
  int error = 0;
  if (lacks) return ZDRIVER_LACKS;
  query(memory, &device);
  pthread_mutex_lock(&in_use);
  place->queue = zmap_get(&lists, z_key(device));
  if (!place->queue && !(error = create_list(context, device, &how, &place->queue)))
    zmap_put(&lists, z_key(device), place->queue);
  if (error) pthread_mutex_unlock(&in_use);
  return error;
}

static void leave(const zplace *place) {
  (void)place;
  pthread_mutex_unlock(&in_use);
}

static int copy(const zplace *place, const zrows *r) {
  const region all = {.width = (uint32_t)r->width, .height = (uint32_t)r->rows, .depth = 1};
  int fits = (uint64_t)r->width <= UINT32_MAX && r->rows <= UINT32_MAX && r->to_pitch <= UINT32_MAX &&
             r->from_pitch <= UINT32_MAX;
  if (r->rows > 1 && fits)
    return copy_region(place->queue, r->to, &all, (uint32_t)r->to_pitch, 0, r->from, &all, (uint32_t)r->from_pitch, 0,
                       NULL, 0, NULL);
  int error = 0;
  for (int64_t i = 0; i < r->rows && !error; i++)
    error =
        copy_bytes(place->queue, r->to + i * r->to_pitch, r->from + i * r->from_pitch, (size_t)r->width, NULL, 0, NULL);
  return error;
}

static int wait(const zplace *place) {
  (void)place;
  return 0;
}

static void *pin(size_t bytes) {
  const struct {
    uint32_t kind;
    void *next;
    uint32_t flags;
  } how = {.kind = HOST_DESC};
  void *p;
  return host_alloc(context, &how, bytes, 64, &p) ? NULL : p;
}

static const char *text(int error) {
  static _Thread_local char all[80];
  if (error == ZDRIVER_LACKS) snprintf(all, sizeof all, "the driver lacks the function %s", lacks);
  else snprintf(all, sizeof all, "error 0x%x", (unsigned)error);
  return all;
}

const zdriver zdriver_ze = {"Level Zero", "libze_loader.so.", open, owns, enter, copy, wait, leave, pin, text};
