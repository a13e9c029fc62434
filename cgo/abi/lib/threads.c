/* The threads of the engine. The Go runtime makes them all, and the linker redirects its calls of
 * pthread_attr_init and pthread_create to this file (main.go). Otherwise the threads would not suit
 * a program's process: their stacks would be as long as `ulimit -s`, they would receive the
 * program's signals, and if one could not be made Go would end the process with a stack trace. */
#define _GNU_SOURCE
#include "limits.h"
#include <errno.h>
#include <fenv.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef void *(*thread_main)(void *);

int __real_pthread_attr_init(pthread_attr_t *attr);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_main run, void *of);
int __wrap_pthread_attr_init(pthread_attr_t *attr);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_main run, void *of);

static int add_local(struct dl_phdr_info *object, size_t size, void *sum) {
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; i++)
    if (object->dlpi_phdr[i].p_type == PT_TLS)
      *(size_t *)sum += object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
  return 0;
}

/* Returns the size in bytes of the stack of a thread of the engine. The C library places a thread's
 * copy of all thread-local variables on its stack, and OpenMP programs may have megabytes of
 * them. */
static size_t stack_bytes(void) {
  size_t local = 0, page = (size_t)sysconf(_SC_PAGESIZE);
  dl_iterate_phdr(add_local, &local);
  return (Z_STACK_BYTES + local + page - 1) / page * page;
}

int __wrap_pthread_attr_init(pthread_attr_t *attr) {
  int rc = __real_pthread_attr_init(attr);
  return rc ? rc : pthread_attr_setstacksize(attr, stack_bytes());
}

/* The function that a new thread of the engine runs, its argument, and the thread's number. Threads
 * are numbered from 0 in the order in which the runtime makes them. The second one is always the
 * monitor, which the first starts before anything else. */
typedef struct {
  thread_main run;
  void *of;
  int number;
} start;

enum { MONITOR = 1 };

static void *begin(void *p) {
  start s = *(start *)p;
  free(p);
  int monitor = s.number == MONITOR;
  prctl(PR_SET_NAME, monitor ? "zipper-monitor" : "zipper");
  prctl(PR_SET_TIMERSLACK, monitor ? Z_MONITOR_SLACK_NS : Z_WORKER_SLACK_NS, 0, 0, 0);
  /* a program that enables SIGFPE for its own arithmetic does not want it for the engine's */
  fesetenv(FE_DFL_ENV);
  return s.run(s.of);
}

/* Returns the first line of a file as a number, or -1 if it is not a number ("max"). */
static long number_in(const char *path) {
  long n = -1;
  FILE *f = fopen(path, "re");
  if (f && fscanf(f, "%ld", &n) != 1) n = -1;
  if (f) fclose(f);
  return n;
}

/* Returns the smallest pids.max of the process's control group and those above it, or -1 if there
 * is none. */
static long group_limit(void) {
  char line[4096], path[sizeof line + 64];
  long least = -1;
  FILE *f = fopen("/proc/self/cgroup", "re");
  while (f && fgets(line, sizeof line, f)) {
    char *group = strchr(line, ':'), *end;
    char *controllers = group ? group + 1 : line;
    if (!group || !(group = strchr(controllers, ':'))) continue;
    *group++ = 0;
    if (*controllers && !strstr(controllers, "pids")) continue;
    group[strcspn(group, "\n")] = 0;
    do {
      snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/pids.max", *controllers ? "/pids" : "", group);
      long n = number_in(path);
      if (n >= 0 && (least < 0 || n < least)) least = n;
      if ((end = strrchr(group, '/'))) *end = 0;
    } while (end);
  }
  if (f) fclose(f);
  return least;
}

/* Returns whether the address space has room for the stack of a thread with these attributes. */
static int room(const pthread_attr_t *attr) {
  size_t size = 0;
  pthread_attr_getstacksize(attr, &size);
  void *space = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return space != MAP_FAILED && !munmap(space, size);
}

/* Ends the process after printing that thread `number` cannot be made, with the error of
 * pthread_create, and which limit has been reached. */
_Noreturn static void refuse(const pthread_attr_t *attr, int number, int error) {
  struct rlimit user;
  char which[256];
  long group = group_limit();
  if (!room(attr)) snprintf(which, sizeof which, "the limit of address space (ulimit -v) or of memory");
  else {
    int n = snprintf(which, sizeof which, "the limit of the user's processes and threads (ulimit -u");
    if (!getrlimit(RLIMIT_NPROC, &user) && user.rlim_cur != RLIM_INFINITY)
      n += snprintf(which + n, sizeof which - (size_t)n, ", %lu now", (unsigned long)user.rlim_cur);
    n += snprintf(which + n, sizeof which - (size_t)n, ") or of the control group's (pids.max");
    if (group >= 0) n += snprintf(which + n, sizeof which - (size_t)n, ", %ld now", group);
    snprintf(which + n, sizeof which - (size_t)n, ")");
  }
  fprintf(
      stderr,
      "MMPI: thread %d of the engine cannot be made (%s): each rank needs up to %d beside those of its MPI library: "
      "raise %s\n",
      number + 1, strerror(error), Z_ENGINE_THREADS, which);
  fflush(stderr);
  _exit(1);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_main run, void *of) {
  static atomic_int made;
  sigset_t all, before;
  start *s = malloc(sizeof *s);
  if (!s) return ENOMEM;
  *s = (start){run, of, atomic_fetch_add(&made, 1)};
  int number = s->number, rc = EAGAIN;
  /* All threads of the runtime have the mask of its first thread, so that the program's signals are
   * delivered to the program's threads. In each thread Go unblocks the signals of crashes and the
   * C library's own signals, 32 and 33. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int try = 0; rc == EAGAIN && try < Z_THREAD_TRIES; try++) {
    if (try) nanosleep(&(struct timespec){0, try * Z_THREAD_PAUSE_MS * 1000000L}, NULL);
    rc = __real_pthread_create(thread, attr, begin, s);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (rc) refuse(attr, number, rc);
  return 0;
}
