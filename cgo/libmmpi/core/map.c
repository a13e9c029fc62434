/* The functions that change the hash; map.h describes the hash. */
#include "core/map.h"
#include "core/job.h"

static zslot *find(ztable *t, uint64_t key) {
  for (uint32_t i = ZMAP_START(t, key);; i++) {
    zslot *s = &t->slots[i & t->mask];
    if (s->key == key || !s->key) return s;
  }
}

/* Replaces the table of a map by one with room for another key, at most half of whose slots are
 * used then. zmap_put calls it if there is no table yet, or if more than three quarters of the
 * slots would have a key after it. The caller holds the lock. */
static void rebuild(zmap *m) {
  uint32_t bits = 6;
  while ((1u << bits) < 2 * (m->live + 1)) bits++;
  ztable *old = m->table, *t = calloc(1, sizeof *t + sizeof(zslot) * (1u << bits));
  if (!t) z_no_memory("a table of handles");
  t->mask = (1u << bits) - 1, t->shift = 64 - bits;
  m->used = 0;
  for (uint32_t i = 0; old && i <= old->mask; i++)
    if (old->slots[i].value) *find(t, old->slots[i].key) = old->slots[i], m->used++;
  t->retired = z_threads ? old : NULL;
  if (!z_threads) free(old);
  __atomic_store_n(&m->table, t, __ATOMIC_RELEASE);
}

void zmap_put(zmap *m, uint64_t key, void *value) {
  z_lock(&m->lock);
  if (!m->table || 4 * (m->used + 1) > 3 * (m->table->mask + 1)) rebuild(m);
  zslot *s = find(m->table, key);
  if (!s->value) __atomic_store_n(&m->live, m->live + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&s->value, value, __ATOMIC_RELEASE);
  if (!s->key) {
    m->used++;
    __atomic_store_n(&s->key, key, __ATOMIC_RELEASE);
  }
  z_unlock(&m->lock);
}

/* Sets the value of a slot to NULL and returns the value that it had. The caller holds the lock. */
static void *empty(zmap *m, zslot *s) {
  void *value = s->value;
  if (!value) return NULL;
  __atomic_store_n(&s->value, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&m->live, m->live - 1, __ATOMIC_RELAXED);
  return value;
}

void *zmap_remove(zmap *m, uint64_t key) {
  z_lock(&m->lock);
  void *value = m->table ? empty(m, find(m->table, key)) : NULL;
  z_unlock(&m->lock);
  return value;
}

void *zmap_take(zmap *m) {
  void *value = NULL;
  z_lock(&m->lock);
  for (uint32_t i = 0; m->live && !value; i++) value = empty(m, &m->table->slots[i]);
  z_unlock(&m->lock);
  return value;
}
