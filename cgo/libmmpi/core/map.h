/* A hash from a handle to a pointer. Readers take no lock: a slot keeps its key until the table is
 * rebuilt, a removed key has the value NULL, and a rebuilt table is published whole. Both MPI
 * libraries reuse few handle values, so rebuilding is rare. */
#ifndef ZIPPER_MAP_H
#define ZIPPER_MAP_H
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* A place for one entry of the hash table. */
typedef struct zslot {
  uint64_t key; /* 0: the slot is empty */
  void *value;  /* NULL: the key has been removed */
} zslot;

/* The hash table of a map. */
typedef struct ztable {
  /* The previous table, which a reader may still use. It is kept with MPI_THREAD_MULTIPLE only. */
  struct ztable *retired;
  uint32_t mask;  /* the number of slots, a power of two, minus 1 */
  uint32_t shift; /* 64 minus the number of bits of mask */
  zslot slots[];
} ztable;

typedef struct zmap {   /* {0} is an empty map */
  ztable *table;        /* the current table, or NULL before the first zmap_put */
  uint32_t used;        /* the number of slots with a key */
  uint32_t live;        /* the number of slots with a value */
  pthread_mutex_t lock; /* held by writers */
} zmap;

/* The index of the slot in which the search for a key begins. */
#define ZMAP_START(t, key) ((uint32_t)(((key)*0x9E3779B97F4A7C15ull) >> (t)->shift))

/* Returns the value of a key, or NULL. Safe in any thread. */
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

/* Returns the number of keys in the map. Safe in any thread. */
static inline uint32_t zmap_count(const zmap *m) { return __atomic_load_n(&m->live, __ATOMIC_RELAXED); }

/* Sets the value of a key, which must not be NULL. Safe in any thread. If memory is exhausted the
 * job ends (z_no_memory). */
void zmap_put(zmap *m, uint64_t key, void *value);

/* Removes a key and returns its value, or NULL if the key was not there. Safe in any thread. */
void *zmap_remove(zmap *m, uint64_t key);

/* Removes any one key and returns its value, or NULL if the map is empty. Safe in any thread. */
void *zmap_take(zmap *m);

/* Converts a handle of either library to a key. */
#define z_key(handle) ((uint64_t)(uintptr_t)(handle))
#endif
