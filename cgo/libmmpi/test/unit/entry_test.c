/* The mark of a thread that is inside the engine (entry/entry.h). */
#include "core/job.h"
#include "entry/entry.h"
#include "p2p/p2p.h"
#include "request/wait.h"
#include "test.h"
#include <pthread.h>

static int seen, seen_native;

static int32_t notes(int32_t block) {
  (void)block;
  seen = z_place;
  return 0;
}

static int probes_natively(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  (void)source, (void)tag, (void)comm, (void)status;
  *flag = 0;
  seen_native = z_place;
  return MPI_SUCCESS;
}

static int32_t calls_back(int32_t block) {
  z_probe found;
  SAME(z_cb_iprobe(z_whole, Z_ANY_SOURCE, Z_ANY_TAG, &found), 0);
  return notes(block);
}

TEST(mark_is_set_inside_the_engine_alone) {
  FAKE_WORLD(0, 1, 1);
  z_eng.ze_progress = notes;
  z_poll();
  SAME(seen, Z_INSIDE);
  SAME(z_place, Z_OUTSIDE);
}

TEST(mark_is_cleared_in_callbacks) {
  FAKE_WORLD(0, 1, 1);
  z_eng.ze_progress = calls_back;
  real.Iprobe = probes_natively;
  z_poll();
  SAME(seen_native, Z_OUTSIDE);
  SAME(seen, Z_INSIDE);
  SAME(z_place, Z_OUTSIDE);
}

static void *another_thread(void *place) {
  *(int *)place = z_place;
  return NULL;
}

static int32_t looks_at_another_thread(int32_t block) {
  pthread_t other;
  (void)block;
  CHECK(!pthread_create(&other, NULL, another_thread, &seen));
  CHECK(!pthread_join(other, NULL));
  return 0;
}

TEST(mark_is_of_one_thread) {
  FAKE_WORLD(0, 1, 1);
  z_eng.ze_progress = looks_at_another_thread;
  z_poll();
  SAME(seen, Z_NEVER_ENTERED);
}
