/* A hash from a handle to a pointer. Readers take no lock: a slot keeps its key until the table is
 * rebuilt, a removed key has the value NULL, and a rebuilt table is published whole. Both MPI
 * libraries reuse few handle values again and again, so rebuilding is rare. */
#ifndef ZIPPER_MAP_H
#define ZIPPER_MAP_H
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct zslot {
  uint64_t key; /* 0 = empty */
  void *value;  /* NULL = removed */
} zslot;

typedef struct ztable {
  struct ztable *retired; /* older tables that a reader may still look at (only with MPI_THREAD_MULTIPLE) */
  uint32_t mask, shift;
  zslot slots[];
} ztable;

typedef struct zmap { /* {0} is an empty map */
  ztable *table;
  uint32_t used; /* slots with a key */
  uint32_t live; /* of them, with a value */
  pthread_mutex_t lock;
} zmap;

#define ZMAP_START(t, key) ((uint32_t)(((key)*0x9E3779B97F4A7C15ull) >> (t)->shift))

/* The value, or NULL. Any thread. */
static inline void *zmap_get(const zmap *m, uint64_t key) {
  const ztable *t = __atomic_load_n(&m->table, __ATOMIC_ACQUIRE);
  if (!t) return NULL;
  for (uint32_t i = ZMAP_START(t, key);; i++) {
    const zslot *s = &t->slots[i & t->mask];
    uint64_t k = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);
    if (k == key) return __atomic_load_n(&s->value, __ATOMIC_ACQUIRE);
    if (!k) return NULL;
  }
}

static inline uint32_t zmap_count(const zmap *m) { return __atomic_load_n(&m->live, __ATOMIC_RELAXED); }

/* Puts a value (not NULL) in place of what was there. Any thread. Without memory: z_no_memory. */
void zmap_put(zmap *m, uint64_t key, void *value);

/* Removes the key; its value, or NULL if it was not there. Any thread. */
void *zmap_remove(zmap *m, uint64_t key);

/* Removes a key; its value, or NULL if there is none. Any thread. */
void *zmap_take(zmap *m);

/* Any handle of either library as a key. */
#define z_key(handle) ((uint64_t)(uintptr_t)(handle))
#endif
