/* Memory of the host for data from and to devices. Pinned memory is fast to copy and takes
 * milliseconds to allocate, so it is kept for later messages, in blocks for powers of two. Small
 * blocks are cut from larger pieces. */
#include "core/limits.h"
#include "device/device.h"
#include <pthread.h>
#include <stdlib.h>

enum { LEAST = 12, CLASSES = 28 }; /* blocks of 4 KiB and more */
enum { PIECE = 4 << 20 };

/* The head of a block. The data follow. */
typedef struct block {
  _Alignas(64) struct block *next; /* the next free block of the class */
  const zdriver *driver;           /* the driver that has pinned the memory, or NULL */
  int class_;                      /* the data have at most 1 << (LEAST + class_) bytes */
} block;

static int64_t size_of(int class_) { return ((int64_t)1 << (LEAST + class_)) + (int64_t)sizeof(block); }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* the free blocks of each class, of all drivers */
static block *unused[CLASSES];
static int64_t pinned; /* the number of bytes that drivers have pinned */
/* the rest of the piece that was pinned last, and its driver */
static struct {
  char *at;
  int64_t bytes;
  const zdriver *driver;
} rest;

/* Pins memory in the context of the memory `device`. Returns NULL if that fails, or if so much
 * memory must not be pinned. */
static void *pin(const zdriver *driver, const void *device, int64_t bytes) {
  zplace place;
  void *p = NULL;
  if (pinned + bytes > Z_PINNED_BYTES || driver->enter(&place, device)) return NULL;
  if ((p = driver->pin((size_t)bytes))) pinned += bytes;
  driver->leave(&place);
  return p;
}

/* Returns a new pinned block of a class, or NULL if there is none. The caller holds the lock. */
static block *fresh(const zdriver *driver, const void *device, int class_) {
  int64_t bytes = size_of(class_);
  block *b = NULL;
  if (bytes > PIECE / 4) {
    b = pin(driver, device, bytes);
  } else {
    if (rest.driver != driver || rest.bytes < bytes) {
      rest.at = pin(driver, device, PIECE);
      rest.bytes = rest.at ? PIECE : 0, rest.driver = driver;
    }
    if (rest.at) b = (block *)rest.at, rest.at += bytes, rest.bytes -= bytes;
  }
  if (b) *b = (block){NULL, driver, class_};
  return b;
}

/* Returns a pinned block of a class, or NULL if there is none. */
static block *take(const zdriver *driver, const void *device, int class_) {
  pthread_mutex_lock(&lock);
  block **at = &unused[class_], *b;
  while ((b = *at) && b->driver != driver) at = &b->next;
  if (b) *at = b->next;
  else b = fresh(driver, device, class_);
  pthread_mutex_unlock(&lock);
  return b;
}

void *zstage_new(const zdriver *driver, const void *device, int64_t bytes) {
  int class_ = 0;
  while (class_ < CLASSES && (int64_t)1 << (LEAST + class_) < bytes) class_++;
  block *b = class_ < CLASSES ? take(driver, device, class_) : NULL;
  size_t whole = ((size_t)bytes + 2 * sizeof *b - 1) / sizeof *b * sizeof *b;
  if (!b && (b = aligned_alloc(sizeof *b, whole))) *b = (block){NULL, NULL, 0};
  return b ? b + 1 : NULL;
}

void zstage_free(void *data) {
  if (!data) return;
  block *b = (block *)data - 1;
  if (!b->driver) {
    free(b);
    return;
  }
  pthread_mutex_lock(&lock);
  b->next = unused[b->class_];
  unused[b->class_] = b;
  pthread_mutex_unlock(&lock);
}
