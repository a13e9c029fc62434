/* Litmus tests of the orders in which one thread sees the stores of another. The processor must be
 * a real one: an emulator on x86-64 has that processor's strong order. LITMUS_ROUNDS in the
 * environment multiplies the rounds. */
#include "request/request.h"
#include "test.h"
#include <pthread.h>

enum { ITEMS = 4096, ROUNDS = 20 };

static long rounds(void) {
  const char *n = getenv("LITMUS_ROUNDS");
  return ROUNDS * (n ? strtol(n, NULL, 10) : 1);
}

static pthread_barrier_t both;

/* Runs two threads, which may meet at the barrier `both`, until both have ended. */
static void together(void *(*one)(void *), void *(*two)(void *)) {
  pthread_t t;
  CHECK(!pthread_barrier_init(&both, NULL, 2));
  CHECK(!pthread_create(&t, NULL, one, NULL));
  two(NULL);
  CHECK(!pthread_join(t, NULL));
}

/* ---- map.h: a value is published by its key, and a table by its address ---- */

static zmap map;
static uint64_t values[ITEMS][2];

static void *puts_values(void *unused) {
  for (long r = 1; r <= rounds(); r++) {
    pthread_barrier_wait(&both);
    for (uint64_t i = 0; i < ITEMS; i++) {
      values[i][0] = values[i][1] = (uint64_t)r << 32 | i;
      zmap_put(&map, (uint64_t)r << 32 | (i + 1), values[i]);
    }
    pthread_barrier_wait(&both);
    for (uint64_t i = 0; i < ITEMS; i++) zmap_remove(&map, (uint64_t)r << 32 | (i + 1));
  }
  return unused;
}

static void *gets_values(void *unused) {
  for (long r = 1; r <= rounds(); r++) {
    pthread_barrier_wait(&both);
    for (uint64_t i = ITEMS; i-- > 0;) {
      uint64_t *v;
      while (!(v = zmap_get(&map, (uint64_t)r << 32 | (i + 1)))) {
      }
      CHECK(v[1] == ((uint64_t)r << 32 | i) && v[0] == v[1]);
    }
    pthread_barrier_wait(&both);
  }
  return unused;
}

TEST(litmus_a_value_in_the_map_is_complete) {
  z_threads = 1;
  together(puts_values, gets_values);
}

/* ---- z_cell: the result is valid as soon as `done` is set ---- */

static zreq requests[ITEMS];

static void *completes(void *unused) {
  for (long r = 1; r <= rounds(); r++) {
    pthread_barrier_wait(&both);
    for (int i = 0; i < ITEMS; i++) {
      z_cell *c = &requests[i].cell;
      c->source = (int32_t)r, c->tag = i, c->bytes = r * i;
      __atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
    }
    pthread_barrier_wait(&both);
  }
  return unused;
}

static void *waits(void *unused) {
  for (long r = 1; r <= rounds(); r++) {
    memset(requests, 0, sizeof requests);
    pthread_barrier_wait(&both);
    for (int i = ITEMS; i-- > 0;) {
      while (!zreq_over(&requests[i])) {
      }
      CHECK(requests[i].cell.source == r && requests[i].cell.tag == i && requests[i].cell.bytes == r * i);
    }
    pthread_barrier_wait(&both);
  }
  return unused;
}

TEST(litmus_a_result_is_complete_when_its_cell_is_done) { together(completes, waits); }
