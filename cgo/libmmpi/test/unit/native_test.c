/* Native collectives that the engine starts inside a cluster (coll/native.c). */
#include "coll/coll.h"
#include "test.h"

static int fails_with; /* the code with which native collectives fail */
static int failing_barrier(MPI_Comm comm, MPI_Request *request) {
  (void)comm, (void)request;
  return fails_with;
}

/* The engine gets the error of a native collective, so that the program gets its class. */
TEST(failure_of_a_native_collective_keeps_its_class) {
  FAKE_WORLD(0, 2, 1);
  const struct {
    int native, z_error;
  } want[] = {
      {MPI_ERR_OP, Z_ERR_OP},
      {MPI_ERR_COUNT, Z_ERR_UNSUPPORTED},
      {MPI_ERR_TRUNCATE, Z_ERR_TRUNCATE},
      {Z_CLASS_PROC_FAILED, Z_ERR_PROC_FAILED},
      {Z_CLASS_REVOKED, Z_ERR_REVOKED},
      {MPI_ERR_INTERN, Z_ERR_INTERNAL},
      {MPI_ERR_OTHER, Z_ERR_INTERNAL},
  };
  real.Ibarrier = failing_barrier;
  z_coll barrier = {.op = Z_BARRIER};
  for (int i = 0; i < COUNT(want); i++) {
    uint64_t token;
    fails_with = want[i].native;
    SAME(z_cb_coll(z_whole, &barrier, &token), -want[i].z_error);
  }
}

TEST(failure_of_a_native_collective_that_has_started_keeps_its_class) {
  FAKE_WORLD(0, 2, 1);
  z_coll barrier = {.op = Z_BARRIER};
  uint64_t token;
  SAME(z_cb_coll(z_whole, &barrier, &token), Z_OK);
  fake_fails(fake_last_request(), MPI_ERR_TRUNCATE);
  SAME(z_cb_coll_test(token), -Z_ERR_TRUNCATE);
}

static MPI_Request pending; /* of the last barrier */
static int pending_barrier(MPI_Comm comm, MPI_Request *request) {
  (void)comm;
  *request = pending = fake_request();
  return MPI_SUCCESS;
}

/* The engine tests stages in an order of its own, so it may collect late what is over. A wait that
 * took such a stage for news at every turn would never yield. */
TEST(a_stage_that_is_over_is_news_once) {
  FAKE_WORLD(0, 2, 1);
  real.Ibarrier = pending_barrier;
  z_coll barrier = {.op = Z_BARRIER};
  uint64_t first, second;
  SAME(z_cb_coll(z_whole, &barrier, &first), Z_OK);
  MPI_Request one = pending;
  SAME(z_cb_coll(z_whole, &barrier, &second), Z_OK);
  SAME(zstages_moved(), 0);
  fake_done(pending, 0, 0, 0);
  SAME(zstages_moved(), 1);
  SAME(zstages_moved(), 0);
  fake_done(one, 0, 0, 0);
  SAME(zstages_moved(), 1);
  SAME(z_cb_coll_test(first), 1);
  SAME(z_cb_coll_test(second), 1);
}
