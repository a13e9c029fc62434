/* Queries of device drivers about an address. Programs load drivers at any time, so each check
 * first tests whether the process has loaded a library since the last one. */
#define _GNU_SOURCE
#include "type/device.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CUDA, ROCM, LEVEL_ZERO, DRIVERS };
static const struct {
  const char *name, *file, *ask, *copy;
} drivers[DRIVERS] = {
    [CUDA] = {"CUDA", "libcuda.so.", "cuPointerGetAttribute", "cudaMemcpy"},
    [ROCM] = {"ROCm", "libamdhip64.so.", "hipPointerGetAttribute", "hipMemcpy"},
    [LEVEL_ZERO] = {"Level Zero", "libze_loader.so.", "zeMemGetAllocProperties", "zeCommandListAppendMemoryCopy"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The number of libraries that the process had loaded when the drivers were last searched for. */
static unsigned long long looked;
/* the coarse clock in nanoseconds when new libraries were last tested for, or 0 */
static uint64_t looked_at;
/* the driver's function that queries an address, for each driver, or NULL if it is not loaded */
static void *asks[DRIVERS];
/* the number by which HIP denotes memory of the type "device" */
static int rocm_device;
static void *ze_context;
static _Thread_local char blame[200];

/* ---- loaded drivers ---- */

/* A search for a driver among the libraries that the process has loaded. */
typedef struct search {
  unsigned long long loaded; /* the number of libraries that have been loaded so far */
  /* the index of the driver that is searched for, or -1 to only count the libraries */
  int driver;
  /* the number of matching libraries to skip before one is taken */
  int skip;
  char path[512]; /* the path of the library that was found */
} search;

static int visit(struct dl_phdr_info *info, size_t size, void *arg) {
  search *s = arg;
  (void)size;
  s->loaded = info->dlpi_adds;
  if (s->driver < 0) return 1;
  const char *slash = strrchr(info->dlpi_name, '/'), *base = slash ? slash + 1 : info->dlpi_name;
  if (strncmp(base, drivers[s->driver].file, strlen(drivers[s->driver].file)) || s->skip-- > 0) return 0;
  return snprintf(s->path, sizeof s->path, "%s", info->dlpi_name) < (int)sizeof s->path;
}

/* Makes a context of Level Zero from its library, which its queries need. Returns NULL if it
 * fails. */
static void *ze_begin(void *lib) {
  struct {
    uint32_t kind;
    void *next;
    uint32_t flags;
  } of = {.kind = 0xd};
  void *driver = NULL, *context = NULL;
  uint32_t one = 1;
  int (*get)(uint32_t *, void **) = (int (*)(uint32_t *, void **))dlsym(lib, "zeDriverGet");
  int (*create)(void *, const void *, void **) = (int (*)(void *, const void *, void **))dlsym(lib, "zeContextCreate");
  return get && create && !get(&one, &driver) && driver && !create(driver, &of, &context) ? context : NULL;
}

static void begin(int driver, void *lib) {
  void *ask = dlsym(lib, drivers[driver].ask);
  if (driver == ROCM) { /* the number changed with HIP 6 */
    int version = 0, (*get)(int *) = (int (*)(int *))dlsym(lib, "hipRuntimeGetVersion");
    rocm_device = get && !get(&version) && version < 60000000 ? 1 : 2;
  }
  /* Level Zero is not initialized, so nobody has allocated its memory */
  if (driver == LEVEL_ZERO && !(ze_context = ze_begin(lib))) ask = NULL;
  __atomic_store_n(&asks[driver], ask, __ATOMIC_RELEASE);
}

/* Searches the loaded libraries for a driver, and stores its query in `asks`. It tries all
 * libraries with the driver's name: hwloc loads the system's Level Zero, which has no device, for
 * MPI libraries, and the program may load its own. */
static void find(int driver) {
  search s;
  for (int nth = 0; !asks[driver]; nth++) {
    s = (search){.driver = driver, .skip = nth};
    if (!dl_iterate_phdr(visit, &s)) return;
    void *lib = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD); /* the library stays loaded */
    if (lib) begin(driver, lib);
  }
}

static void look(unsigned long long loaded) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < DRIVERS; i++) find(i);
  __atomic_store_n(&looked, loaded, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
}

/* Tests for newly loaded libraries once in a tick of the coarse clock, some milliseconds: from its
 * loading a driver takes longer than that until it returns memory. Signals are blocked meanwhile,
 * because the loader's lock is held, and a profiler's handler that unwinds the stack would take
 * that lock too, and so wait for the thread that it has interrupted. */
static void look_again(void) {
  struct timespec t;
  search s = {.driver = -1};
  sigset_t all, mask;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + 1;
  if (now == __atomic_load_n(&looked_at, __ATOMIC_ACQUIRE)) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  dl_iterate_phdr(visit, &s);
  if (s.loaded != __atomic_load_n(&looked, __ATOMIC_ACQUIRE)) look(s.loaded);
  __atomic_store_n(&looked_at, now, __ATOMIC_RELEASE);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* ---- queries ---- */

/* Makes CUDA's query about the address p, and returns 1 if it is in memory of type `device`, which
 * the host cannot read. HIP's query has the same numbers. Memory that host and device can read is
 * called managed. */
static int unreadable(void *ask, const void *p, unsigned device) {
  enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };
  int (*get)(void *, int, uintptr_t) = (int (*)(void *, int, uintptr_t))ask;
  unsigned type = 0, managed = 0;
  if (get(&type, MEMORY_TYPE, (uintptr_t)p) || type != device) return 0;
  return get(&managed, IS_MANAGED, (uintptr_t)p) || !managed;
}

static int ze_unreadable(void *ask, const void *p) {
  enum { DEVICE = 2 };
  struct {
    uint32_t kind;
    void *next;
    uint32_t type;
    uint64_t id, page;
  } is = {.kind = 0x17};
  int (*get)(void *, const void *, void *, void **) = (int (*)(void *, const void *, void *, void **))ask;
  return !get(ze_context, p, &is, NULL) && is.type == DEVICE;
}

int zdevice_has(const void *p, int64_t n) {
  if (!p || n <= 0) return 0;
  look_again();
  for (int i = 0; i < DRIVERS; i++) {
    void *ask = __atomic_load_n(&asks[i], __ATOMIC_ACQUIRE);
    if (!ask || !(i == LEVEL_ZERO ? ze_unreadable(ask, p) : unreadable(ask, p, i == CUDA ? 2 : (unsigned)rocm_device)))
      continue;
    snprintf(blame, sizeof blame,
             "the buffer is memory of a %s device: between clusters only the host's memory can be used; copy it there "
             "(%s)",
             drivers[i].name, drivers[i].copy);
    return 1;
  }
  return 0;
}

const char *zdevice_blame(const char *otherwise) {
  static _Thread_local char text[sizeof blame];
  if (!*blame) return otherwise;
  memcpy(text, blame, sizeof text);
  *blame = 0;
  return text;
}
