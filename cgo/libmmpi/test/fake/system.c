/* The clock, sleeping and memory, which replace the C library's functions by the linker's
 * --wrap. */
#define _GNU_SOURCE
#include "fake.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

enum { EVENTS = 64, FOR_EVER_US = 100000000 };

static struct {
  double at;
  void (*what)(void *);
  void *arg;
} events[EVENTS];
static int waiting;

void fake_at(double us, void (*what)(void *), void *arg) {
  FAKE_ASSERT(waiting < EVENTS, "the fake has room for %d events", EVENTS);
  events[waiting].at = us, events[waiting].what = what, events[waiting].arg = arg;
  waiting++;
}

void fake_pass(double us) {
  fake.now += us;
  FAKE_ASSERT(fake.now < FOR_EVER_US, "nothing ends this wait");
  for (int i = 0; i < waiting; i++) {
    if (events[i].at > fake.now) continue;
    void (*what)(void *) = events[i].what;
    void *arg = events[i].arg;
    events[i--] = events[--waiting];
    what(arg);
  }
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t) {
  (void)id;
  *t = (struct timespec){(time_t)(fake.now / 1e6), (long)((fake.now - (double)(time_t)(fake.now / 1e6) * 1e6) * 1e3)};
  return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest) {
  (void)rest;
  double us = (double)t->tv_sec * 1e6 + (double)t->tv_nsec / 1e3;
  fake.calls.sleep++;
  fake.slept_us += us;
  if (us > fake.longest_sleep_us) fake.longest_sleep_us = us;
  fake_pass(us);
  return 0;
}

int __wrap_sched_yield(void) {
  fake.calls.yield++;
  fake_pass(fake.yield_us);
  return 0;
}

int __wrap_prctl(int option, ...) {
  (void)option; /* the timer slack has no effect here */
  return 0;
}

static const char *symbol;
static void *address;

void fake_symbol(const char *name, void *at) { symbol = name, address = at; }

void *__real_dlsym(void *handle, const char *name);

void *__wrap_dlsym(void *handle, const char *name) {
  if (handle == RTLD_NEXT) return __real_dlsym(handle, name); /* the next definitions that signal/ looks up */
  return symbol && !strcmp(symbol, name) ? address : NULL;
}

/* ---- memory ---- */

static long blocks, countdown = -1;
static int failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);

void fake_no_memory(int after) { countdown = after, failed = 0; }
int fake_memory_failed(void) { return failed; }
long fake_blocks(void) { return blocks; }

static int fails(void) {
  if (countdown < 0 || countdown--) return 0;
  return failed = 1;
}

static void *count(void *p) {
  blocks += p != NULL;
  return p;
}

void *__wrap_malloc(size_t n) { return fails() ? NULL : count(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : count(__real_calloc(n, size)); }

void *__wrap_realloc(void *p, size_t n) {
  if (fails()) return NULL;
  return p ? __real_realloc(p, n) : count(__real_malloc(n));
}

char *__wrap_strdup(const char *s) {
  char *copy = __wrap_malloc(strlen(s) + 1);
  return copy ? strcpy(copy, s) : NULL;
}

void __wrap_free(void *p) {
  blocks -= p != NULL;
  __real_free(p);
}
