/* The pieces of long sends from devices. A thread of the library copies one piece after the
 * other to the memory from which the engine sends, while the engine sends the pieces before it.
 * The first piece is copied before the message is announced, so that a device that has failed is
 * an error of the program's call. */
#include "core/job.h"
#include "core/limits.h"
#include "device/device.h"
#include <signal.h>
#include <stdio.h>

struct zfeed {
  zfeed *next; /* the next element of the list of waiting sends */
  const zdriver *driver;
  /* the next piece's place in the device's memory, and its place in the host's */
  const char *from;
  char *to;
  int64_t bytes;    /* the size of all data */
  int64_t *missing; /* the number of bytes that have not been copied, which the engine reads */
  int32_t comm;     /* the communicator and the request by which the engine knows the send */
  uint64_t request;
  int over; /* 1 once the thread does not use this object any more */
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t more, over;
  zfeed *first, **end; /* the sends that wait for the thread */
  int begun;           /* 1 once the thread runs */
} feeder = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0};

/* Ends the job, because the rest of a message that has been announced cannot be copied. */
static void give_up(void) {
  fprintf(stderr, "MMPI: virtual rank %d: %s, after the message was announced\n", z_layout.rank, zdevice_blame(""));
  z_drain_stderr();
  Z_ENGINE(ze_abort(1));
}

static void feed(zfeed *f) {
  for (int64_t left = *f->missing; left > 0;) {
    int64_t n = left < Z_DEVICE_PIECE ? left : Z_DEVICE_PIECE;
    if (zdevice_copy(f->driver, f->from, f->to, f->from, n)) {
      give_up();
      return;
    }
    f->from += n, f->to += n, left -= n;
    __atomic_store_n(f->missing, left, __ATOMIC_RELEASE);
    Z_ENGINE(ze_supply(f->comm, f->request));
  }
}

static void *run(void *arg) {
  (void)arg;
  pthread_mutex_lock(&feeder.lock);
  for (;;) {
    zfeed *f = feeder.first;
    if (!f) {
      pthread_cond_wait(&feeder.more, &feeder.lock);
      continue;
    }
    if (!(feeder.first = f->next)) feeder.end = NULL;
    pthread_mutex_unlock(&feeder.lock);
    feed(f);
    pthread_mutex_lock(&feeder.lock);
    f->over = 1;
    pthread_cond_broadcast(&feeder.over);
  }
  return NULL;
}

/* Starts the thread, with all signals blocked. The caller holds the lock. Returns whether it
 * runs. */
static int begin(void) {
  sigset_t all, mask;
  pthread_t thread;
  if (feeder.begun) return 1;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  feeder.begun = !pthread_create(&thread, NULL, run, NULL) && !pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  return feeder.begun;
}

zfeed *zfeed_new(const zdriver *driver, const void *from, void *to, int64_t bytes) {
  zfeed *f = malloc(sizeof *f);
  if (f) *f = (zfeed){.driver = driver, .from = from, .to = to, .bytes = bytes, .over = 1};
  return f;
}

void zfeed_start(zfeed *f, int32_t comm, z_cell *cell) {
  int64_t there = f->bytes - cell->missing;
  f->from += there, f->to += there;
  f->missing = &cell->missing, f->comm = comm, f->request = cell->request;
  pthread_mutex_lock(&feeder.lock);
  int runs = begin();
  if (runs) {
    f->over = 0;
    if (!feeder.end) feeder.end = &feeder.first;
    *feeder.end = f;
    feeder.end = &f->next;
    pthread_cond_signal(&feeder.more);
  }
  pthread_mutex_unlock(&feeder.lock);
  if (!runs) feed(f); /* in this thread */
}

void zfeed_end(zfeed *f) {
  pthread_mutex_lock(&feeder.lock);
  while (!f->over) pthread_cond_wait(&feeder.over, &feeder.lock);
  pthread_mutex_unlock(&feeder.lock);
  free(f);
}
