/* The drivers that the process has loaded. Programs load drivers at any time, so each check
 * first tests whether the process has loaded a library since the last one. */
#define _GNU_SOURCE
#include "device/device.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const zdriver *const drivers[] = {&zdriver_cuda, &zdriver_hip, &zdriver_ze};
enum { DRIVERS = sizeof drivers / sizeof *drivers };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The number of libraries that the process had loaded when the drivers were last searched for. */
static unsigned long long looked;
/* the coarse clock in nanoseconds when new libraries were last tested for, or 0 */
static uint64_t looked_at;
/* the drivers that are loaded and may have devices, at their indices in `drivers`, otherwise
 * NULL */
static const zdriver *usable[DRIVERS];

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
  const char *file = drivers[s->driver]->file;
  if (strncmp(base, file, strlen(file)) || s->skip-- > 0) return 0;
  return snprintf(s->path, sizeof s->path, "%s", info->dlpi_name) < (int)sizeof s->path;
}

/* Searches the loaded libraries for a driver, and stores it in `usable`. It tries all libraries
 * with the driver's name: hwloc loads the system's Level Zero, which has no device, for MPI
 * libraries, and the program may load its own. */
static void find(int driver) {
  search s;
  for (int nth = 0; !usable[driver]; nth++) {
    s = (search){.driver = driver, .skip = nth};
    if (!dl_iterate_phdr(visit, &s)) return;
    void *lib = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD); /* the library stays loaded */
    if (lib && drivers[driver]->open(lib)) __atomic_store_n(&usable[driver], drivers[driver], __ATOMIC_RELEASE);
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

const zdriver *zdevice_of(const void *p, int64_t n) {
  if (!p || n <= 0) return NULL;
  look_again();
  for (int i = 0; i < DRIVERS; i++) {
    const zdriver *d = __atomic_load_n(&usable[i], __ATOMIC_ACQUIRE);
    if (d && d->owns(p)) return d;
  }
  return NULL;
}
