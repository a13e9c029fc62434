/* Copies from and to memory of devices (device/copy.c), and the memory for their data
 * (device/pool.c), with a driver that records what it is asked for. */
#include "core/limits.h"
#include "device/device.h"
#include "test.h"
#include <string.h>

static struct {
  zrows rows[8];
  int n, entered, fails, pins;
} seen;

static int enter(zplace *place, const void *device) {
  (void)place, (void)device;
  if (seen.fails == 1) return 1;
  return seen.entered++, 0;
}
static int copy(const zplace *place, const zrows *rows) {
  (void)place;
  if (seen.n < 8) seen.rows[seen.n] = *rows;
  return seen.n++, seen.fails == 2 ? 2 : 0;
}
static int wait(const zplace *place) { return (void)place, seen.fails == 3 ? 3 : 0; }
static void leave(const zplace *place) { (void)place, seen.entered--; }
static void *pin(size_t bytes) { return seen.pins++, seen.fails == 4 ? NULL : aligned_alloc(64, bytes); }
static const char *text(int error) { return error == 1 ? "no context" : error == 2 ? "no copy" : "no end"; }
static const zdriver driver = {
    .name = "test", .enter = enter, .copy = copy, .wait = wait, .leave = leave, .pin = pin, .text = text};

static char from[1000], to[1000];

/* Copies n pieces of `width` bytes, one every `stride` bytes in `from` and packed in `to`. */
static int pieces(int n, int width, int stride) {
  zcopies c;
  memset(&seen.rows, 0, sizeof seen.rows);
  seen.n = 0;
  zdevice_begin(&c, &driver, from);
  for (int i = 0; i < n; i++) zdevice_add(&c, to + i * width, from + i * stride, width);
  return zdevice_end(&c);
}

TEST(pieces_at_equal_distances_are_one_copy) {
  SAME(pieces(10, 8, 24), MPI_SUCCESS);
  SAME(seen.n, 1);
  SAME(seen.rows[0].rows, 10);
  SAME(seen.rows[0].width, 8);
  SAME(seen.rows[0].from_pitch, 24);
  SAME(seen.rows[0].to_pitch, 8);
  SAME(seen.entered, 0);
}

TEST(adjacent_pieces_are_one_row) {
  SAME(pieces(10, 8, 8), MPI_SUCCESS);
  SAME(seen.n, 1);
  SAME(seen.rows[0].rows, 1);
  SAME(seen.rows[0].width, 80);
}

TEST(other_pieces_are_copies_of_their_own) {
  zcopies c;
  SAME(pieces(3, 8, -16), MPI_SUCCESS); /* no driver has negative pitches */
  SAME(seen.n, 3);
  seen.n = 0;
  zdevice_begin(&c, &driver, from);
  zdevice_add(&c, to, from, 8);
  zdevice_add(&c, to + 8, from + 16, 8);
  zdevice_add(&c, to + 16, from + 48, 8); /* another distance */
  zdevice_add(&c, to + 24, from + 64, 4); /* another size */
  zdevice_add(&c, to + 28, from + 90, 0);
  SAME(zdevice_end(&c), MPI_SUCCESS);
  SAME(seen.n, 3);
  SAME(seen.rows[0].rows, 2);
  SAME(seen.rows[2].width, 4);
}

TEST(an_error_of_the_driver_is_reported_once_with_its_text) {
  static const char *const why[] = {NULL, "no context", "no copy", "no end"};
  for (seen.fails = 1; seen.fails <= 3; seen.fails++) {
    SAME(pieces(3, 8, 24), MPI_ERR_OTHER);
    SAME(seen.entered, 0);
    CHECK(strstr(zdevice_blame(""), why[seen.fails]));
    SAME(strcmp(zdevice_blame("none"), "none"), 0);
  }
  seen.fails = 0;
}

TEST(pinned_memory_is_used_again) {
  seen.pins = 0;
  char *a = zstage_new(&driver, from, 5000), *b = zstage_new(&driver, from, 5000);
  CHECK(a && b && a != b);
  memset(a, 1, 5000);
  SAME(seen.pins, 1); /* both are cut from one piece */
  zstage_free(a);
  CHECK(zstage_new(&driver, from, 8000) == a); /* a block of the same class */
  SAME(seen.pins, 1);
  zstage_free(a);
  zstage_free(b);
  zstage_free(NULL);
}

TEST(without_pinned_memory_other_memory_is_used) {
  seen.fails = 4;
  char *a = zstage_new(&driver, from, 100000);
  CHECK(a);
  memset(a, 1, 100000);
  zstage_free(a);
  seen.fails = 0;
  seen.pins = 0;
  a = zstage_new(&driver, from, Z_PINNED_BYTES + 1); /* more than may be pinned */
  CHECK(a);
  SAME(seen.pins, 0);
  zstage_free(a);
}
