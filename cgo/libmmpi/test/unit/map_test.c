/* The hash from handles to pointers (map.h), compared with an array. */
#include "test.h"

enum { KEYS = 997 };

static void *value(int i) { return (void *)(uintptr_t)(2 * i + 1); }

static zmap map;

TEST(an_empty_map_has_nothing) {
  CHECK(zmap_get(&map, 5) == NULL);
  CHECK(zmap_remove(&map, 5) == NULL);
  SAME(zmap_count(&map), 0);
}

TEST(put_get_remove) {
  zmap_put(&map, 5, value(1));
  CHECK(zmap_get(&map, 5) == value(1));
  CHECK(zmap_get(&map, 6) == NULL);
  CHECK(zmap_remove(&map, 5) == value(1));
  CHECK(zmap_get(&map, 5) == NULL);
  CHECK(zmap_remove(&map, 5) == NULL);
  SAME(zmap_count(&map), 0);
}

TEST(take_empties_a_map) {
  int sum = 0;
  CHECK(zmap_take(&map) == NULL);
  for (int i = 1; i <= 100; i++) zmap_put(&map, (uint64_t)i, value(i));
  zmap_remove(&map, 50);
  for (void *v; (v = zmap_take(&map));) sum += (int)(uintptr_t)v / 2;
  SAME(sum, 5050 - 50);
  SAME(zmap_count(&map), 0);
}

TEST(put_takes_the_place_of_what_was_there) {
  zmap_put(&map, 5, value(1));
  zmap_put(&map, 5, value(2));
  CHECK(zmap_get(&map, 5) == value(2));
  SAME(zmap_count(&map), 1);
}

/* A removed key keeps its slot, so that a key behind it in the same run is still found. */
TEST(a_removed_key_hides_no_other) {
  uint64_t same[3];
  int n = 0;
  zmap_put(&map, 1, value(0));
  uint32_t start = ZMAP_START(map.table, 1);
  for (uint64_t k = 2; n < 3; k++)
    if (ZMAP_START(map.table, k) == start) same[n++] = k;
  for (int i = 0; i < 3; i++) zmap_put(&map, same[i], value(i + 1));
  zmap_remove(&map, 1);
  zmap_remove(&map, same[1]);
  CHECK(zmap_get(&map, same[0]) == value(1));
  CHECK(zmap_get(&map, same[2]) == value(3));
  zmap_put(&map, same[1], value(9)); /* the key gets its own slot again, not a second one */
  CHECK(zmap_get(&map, same[1]) == value(9));
  SAME(map.used, 4);
}

/* Random changes are compared with an array, through many rebuilds. */
TEST(matches_an_array_under_random_changes) {
  static void *want[KEYS];
  uint32_t random = 1, live = 0;
  for (int turn = 0; turn < 200000; turn++) {
    random = random * 1664525 + 1013904223;
    int i = (int)(random >> 8) % KEYS;
    uint64_t key = 0x55d0000000ull + 64 * (uint64_t)i; /* values like those of addresses */
    if (random >> 28 < 6) {
      live += want[i] == NULL;
      zmap_put(&map, key, want[i] = value(turn));
    } else if (random >> 28 < 12) {
      live -= want[i] != NULL;
      CHECK(zmap_remove(&map, key) == want[i]);
      want[i] = NULL;
    } else {
      CHECK(zmap_get(&map, key) == want[i]);
    }
    SAME(zmap_count(&map), live);
    /* otherwise the search for a missing key would be long */
    if (map.table) CHECK(4 * map.used <= 3 * (map.table->mask + 1));
  }
}

/* A few keys that are put and removed repeatedly, like the libraries' handles, need one small table
 * only. */
TEST(handles_used_again_need_no_more_room) {
  for (int i = 0; i < 10000; i++) {
    zmap_put(&map, (uint64_t)(i % 7 + 1), value(i));
    zmap_remove(&map, (uint64_t)(i % 7 + 1));
  }
  SAME(map.table->mask, 63);
  SAME(map.used, 7);
  SAME(fake_blocks(), 1);
}

/* Keys that are never put again are removed by rebuilding. */
TEST(dead_keys_are_swept_out) {
  for (uint64_t i = 1; i < 10000; i++) {
    zmap_put(&map, i, value(1));
    zmap_remove(&map, i);
  }
  SAME(map.table->mask, 63);
  SAME(fake_blocks(), 1);
}

/* With MPI_THREAD_MULTIPLE a reader may still use the old table, so it stays unchanged. */
TEST(with_threads_old_tables_stay) {
  z_threads = 1;
  zmap_put(&map, 1, value(1));
  ztable *first = map.table;
  for (uint64_t i = 2; i < 200; i++) zmap_put(&map, i, value(1));
  CHECK(map.table != first);
  SAME(first->mask, 63); /* the sanitizer ends the test here if the table has been freed */
  int chain = 0;
  for (ztable *t = map.table; t; t = t->retired) chain++;
  SAME(chain, fake_blocks());
  CHECK(chain > 1);
}
