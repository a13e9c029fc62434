/* The threads of a process, and the error if one cannot be made. With the argument N the process
 * cannot make the engine's N-th thread or any later one: the limit of an ordinary user's processes
 * is 0 then. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first thread that cannot be made; 0: all can. */
static int first;

/* Replaces the C library's function. Root has no such limit, but the kernel keeps a user for each
 * thread. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *of) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  static int made;
  Dl_info caller;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  if (first && dladdr(__builtin_return_address(0), &caller) && strstr(caller.dli_fname, "libmmpi-engine") &&
      __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED) >= first) {
    enum { ORDINARY = 64321 };
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (geteuid() == 0) syscall(SYS_setresuid, ORDINARY, ORDINARY, ORDINARY);
  }
  return next(thread, attr, run, of);
}

static int threads(void) {
  char text[256];
  int n = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(text, sizeof text, f)) sscanf(text, "Threads: %d", &n);
  if (f) fclose(f);
  return n;
}

int main(int argc, char **argv) {
  enum { ROUNDS = 2000, BYTES = 10000 };
  static char out[BYTES], in[BYTES];
  if (argc > 1) first = atoi(argv[1]);
  start(&argc, &argv);
  for (int i = 0; i < ROUNDS; i++) /* until there is garbage to collect */
    MPI_Sendrecv(out, BYTES, MPI_CHAR, (me + 1) % np, 0, in, BYTES, MPI_CHAR, (me + np - 1) % np, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  line("%d threads", threads());
  return finish();
}
