/* Opening the engine, which comes from its own library or linked into a Go program. */
#define _GNU_SOURCE
#include "core/job.h"
#include "core/limits.h"
#include "signal/signal.h"
#include "start/start.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The Z_ABI_VERSION of the engine that a Go program has registered, or 0 if there is none. */
static uint32_t registered;

EXPORT void mmpi_register_engine(uint32_t abi, const z_engine *engine) {
  registered = abi;
  z_with_program = 1;
  if (abi == Z_ABI_VERSION) z_eng = *engine;
}

/* Returns whether the resource limit `limited` leaves room for mib MiB of memory with this
 * protection (mmap). Go ends a process without room, as batch systems' limits may leave it, with a
 * stack trace that means nothing to a user. */
static int has_room(int limited, int protection, size_t mib) {
  struct rlimit limit;
  if (getrlimit(limited, &limit) || limit.rlim_cur == RLIM_INFINITY) return 1;
  void *space = mmap(NULL, mib << 20, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return space != MAP_FAILED && !munmap(space, mib << 20);
}

/* Returns a text for the user about the resource limit that leaves no room for the engine, or NULL
 * if there is room. Go reserves much address space and uses little of it. */
static const char *no_room(void) {
  if (!has_room(RLIMIT_AS, PROT_NONE, Z_ENGINE_MIB))
    return "the limit of address space (ulimit -v; a batch system's h_vmem, vmem or pvmem) leaves less than the 2 GiB "
           "that MMPI reserves beside the program, "
           "of which it uses little: raise it";
  if (!has_room(RLIMIT_DATA, PROT_READ | PROT_WRITE, Z_ENGINE_DATA_MIB))
    return "the limit of data (ulimit -d; a batch system's h_data) leaves less than the 128 MiB that MMPI needs beside "
           "the program: raise it";
  return NULL;
}

/* Occupies the free descriptor numbers below those that internal/highfd uses, stores them in taken
 * and returns how many they are. It occupies none if fewer than Z_SPARE_FDS higher numbers are
 * free, because Go ends a process in which it cannot open a descriptor. */
static int take_low_numbers(int taken[Z_HIGHEST_FD]) {
  struct rlimit limit;
  int n = 0, spare[Z_SPARE_FDS], got = 0;
  if (getrlimit(RLIMIT_NOFILE, &limit)) return 0;
  rlim_t most = limit.rlim_cur - limit.rlim_cur / 4;
  int floor = most < Z_HIGHEST_FD ? (int)most : Z_HIGHEST_FD, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int null = fd;
  /* The first duplicate makes the kernel's table grow to its full size at once */
  while (got < Z_SPARE_FDS && (spare[got] = fcntl(null, F_DUPFD_CLOEXEC, floor)) >= 0) got++;
  for (int i = 0; i < got; i++) close(spare[i]);
  while (got == Z_SPARE_FDS && fd >= 0 && fd < floor) {
    taken[n++] = fd;
    fd = fcntl(null, F_DUPFD_CLOEXEC, 0);
  }
  if (fd >= 0) close(fd);
  return n;
}

#define MISSING(FUNCTION) \
  "libmmpi-engine.so lacks " FUNCTION ": it and this library are of different builds (scripts/build)"

/* Opens the engine's library and starts Go's runtime in it. Returns the library's handle, and sets
 * *problem if the engine cannot be used.
 *
 * The low descriptor numbers are occupied meanwhile, because the runtime opens descriptors that
 * cannot be moved later. All signals are blocked meanwhile, because Go gives every thread the
 * signal mask of its first thread, which inherits this thread's mask. So the program's signals are
 * delivered to the program's threads. */
static void *load(const char *path, const char **problem) {
  z_resume_start();
  int taken[Z_HIGHEST_FD], n = take_low_numbers(taken);
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  zsignal_first()->show(1);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) *problem = dlerror();
  const char *(*begin)(void) = lib ? (const char *(*)(void))dlsym(lib, "ze_begin") : NULL;
  if (begin) {
    Z_IN_ENGINE;
    *problem = begin();
  } else if (lib) {
    *problem = MISSING("ze_begin");
  }
  zsignal_first()->show(0);
  zsignal_first()->adopt(); /* with the first thread of a process glibc installs a handler */
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  while (n > 0) close(taken[--n]);
  return lib;
}

const char *zengine_open(void) {
  if (registered == Z_ABI_VERSION) return NULL;
  if (registered)
    return "the program was built with another release of MMPI: build it again (after go clean -cache, if it was built "
           "in this source tree)";
  const char *problem = no_room();
  if (problem) return problem;
  static char path[PATH_MAX];
  if (!*zload_folder()) return "cannot find out where libmmpi lies";
  snprintf(path, sizeof path, "%slibmmpi-engine.so", zload_folder());
  void *lib = load(path, &problem);
  if (problem) return problem;
#define FIND(R, N, A) \
  if (!(z_eng.N = (N##_fn)dlsym(lib, #N))) return MISSING(#N);
  Z_ENGINE_FUNCTIONS(FIND)
#undef FIND
  return NULL;
}
