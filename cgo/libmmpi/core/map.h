/* A hash from a handle to a pointer. Readers take no lock: a slot keeps its key until the table is
 * rebuilt, a removed key has the value NULL, and a rebuilt table is published whole. Both MPI
 * libraries use the values of freed handles again, so there are few keys and rebuilding is rare. */
#ifndef ZIPPER_MAP_H
#define ZIPPER_MAP_H
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* One slot of the hash table of a map: a key and its value. */
typedef struct zslot {
  uint64_t key; /* the key, or 0 if the slot is empty */
  void *value;  /* the value, or NULL if the key has been removed */
} zslot;

/* The hash table of a map: its slots, of which at most three quarters have a key. */
typedef struct ztable {
  /* The table that this one has replaced, which a reader in another thread may still use, or NULL.
   * It is kept with MPI_THREAD_MULTIPLE only. */
  struct ztable *retired;
  uint32_t mask;  /* the number of slots, a power of two, minus 1 */
  uint32_t shift; /* 64 minus the number of bits of mask */
  zslot slots[];
} ztable;

typedef struct zmap {   /* a map from keys to pointers; {0} is an empty one */
  ztable *table;        /* the current table, or NULL before the first zmap_put */
  uint32_t used;        /* the number of slots with a key, removed ones included */
  uint32_t live;        /* the number of slots with a value, which is that of keys in the map */
  pthread_mutex_t lock; /* held while the map is changed */
} zmap;

/* The index of the slot of table t in which the search for a key begins. */
#define ZMAP_START(t, key) ((uint32_t)(((key)*0x9E3779B97F4A7C15ull) >> (t)->shift))

/* Returns the value of a key, or NULL if the key is not in the map. Any thread may call it at any
 * time. */
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

/* Returns the number of keys in the map. Any thread may call it at any time. */
static inline uint32_t zmap_count(const zmap *m) { return __atomic_load_n(&m->live, __ATOMIC_RELAXED); }

/* Sets the value of a key; the key must not be 0, and the value must not be NULL. Any thread may
 * call it at any time. If memory is exhausted the job ends (z_no_memory). */
void zmap_put(zmap *m, uint64_t key, void *value);

/* Removes a key and returns its value, or NULL if the key was not in the map. Any thread may call
 * it at any time. */
void *zmap_remove(zmap *m, uint64_t key);

/* Removes any one key of the map and returns its value, or NULL if the map is empty. Any thread may
 * call it at any time. */
void *zmap_take(zmap *m);

/* Converts a handle of MPI, an int or a pointer, to a key of a map. */
#define z_key(handle) ((uint64_t)(uintptr_t)(handle))
#endif
