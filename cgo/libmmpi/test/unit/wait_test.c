/* Progress: the wait loop, on a clock that advances only when something takes time: a turn of the
 * engine, a probe of native MPI, a yield, a sleep. The numbers are those of core/limits.h. */
#include "coll/coll.h"
#include "core/comm.h"
#include "core/limits.h"
#include "test.h"
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum {
  SPIN_US = Z_SPIN_US,
  NATIVE_SPIN_US = Z_NATIVE_SPIN_US,
  FIRST_US = Z_FIRST_SLEEP_US,
  LONGEST_US = Z_LONGEST_SLEEP_US,
  ALONE_US = Z_ALONE_SLEEP_US,
};

static int over_now;
static int over(void *arg) { return arg ? *(int *)arg : over_now; }
static void end(void *arg) { *(int *)(arg ? arg : &over_now) = 1; }

/* Replaces ze_progress and records its arguments. */
static int blocks[1 << 16], turns;
static double begins[1 << 16];
static int (*inner)(int32_t);
static int noting(int32_t block_us) {
  CHECK(turns < COUNT(blocks));
  begins[turns] = fake.now;
  blocks[turns++] = block_us;
  return inner(block_us);
}

static void begin(const char *poll, int rank, int clusters, const int *sizes) {
  if (poll) setenv("ZIPPER_POLL", poll, 1);
  else unsetenv("ZIPPER_POLL");
  unsetenv("OMPI_MCA_mpi_yield_when_idle");
  fake_world(clusters, sizes, rank);
  inner = z_eng.ze_progress, z_eng.ze_progress = noting;
  z_busy = Z_BUSY;
}
#define BEGIN(POLL, RANK, ...) begin(POLL, RANK, COUNT(((int[]){__VA_ARGS__})), (int[]){__VA_ARGS__})

/* Waits until the clock shows `us` microseconds, and returns the clock after the wait. */
static double wait_until(double us) {
  over_now = 0, turns = 0;
  fake_at(us, end, NULL);
  z_wait(over, NULL);
  return fake.now;
}

static int longest(void) {
  int most = -1;
  for (int i = 0; i < turns; i++) most = blocks[i] > most ? blocks[i] : most;
  return most;
}

/* Returns the time at which a turn first slept, or -1. */
static double first_sleep(void) {
  for (int i = 0; i < turns; i++)
    if (blocks[i] > 0) return begins[i];
  return -1;
}

TEST(what_is_over_costs_nothing) {
  BEGIN(NULL, 0, 2, 2);
  z_cell cell = {.done = 1};
  z_wait_cell(&cell);
  over_now = 1;
  z_wait(over, NULL);
  SAME(fake.calls.progress + fake.calls.probe + fake.calls.yield, 0);
}

/* ---- spinning and sleeping ---- */

TEST(spins_then_sleeps_longer_and_longer) {
  BEGIN(NULL, 0, 2, 2);
  wait_until(10000);
  double slept_at = first_sleep();
  CHECK(slept_at >= SPIN_US && slept_at < SPIN_US + 10);
  SAME(blocks[0], 0);
  int want = FIRST_US, i = 0;
  while (blocks[i] <= 0) i++;
  for (; i < turns && want <= LONGEST_US; i++, want *= 2) SAME(blocks[i], want);
  SAME(longest(), LONGEST_US);
  CHECK(fake.now < 10000 + LONGEST_US);
}

TEST(gives_way_between_turns) {
  BEGIN(NULL, 0, 2, 2);
  wait_until(100);
  CHECK(turns > 10);
  for (int i = 1; i < turns; i++) SAME(blocks[i], Z_GIVE_WAY);
}

TEST(alone_in_its_cluster_it_may_sleep_long) {
  BEGIN(NULL, 2, 2, 1);
  wait_until(2000000);
  SAME(longest(), ALONE_US);
  int sleeps = 0;
  for (int i = 0; i < turns; i++) sleeps += blocks[i] > 0;
  CHECK(sleeps < 40);
}

/* With MPI_THREAD_MULTIPLE another thread may call MPI, so native progress may have to be
 * driven. */
TEST(with_threads_a_lone_process_sleeps_shortly) {
  z_threads = 1;
  BEGIN(NULL, 2, 2, 1);
  wait_until(20000);
  SAME(longest(), LONGEST_US);
}

static void news(void *arg) { (void)arg, fake.engine_moves = 1; }

TEST(news_begin_the_spin_again) {
  BEGIN(NULL, 0, 2, 2);
  fake_at(300, news, NULL);
  wait_until(2000);
  CHECK(first_sleep() >= 300 + SPIN_US);
  int zeros = 0;
  for (int i = 0; i < turns; i++) zeros += blocks[i] == 0;
  SAME(zeros, 2); /* the first turn and the turn after progress do not yield */
}

/* After a spin that has found nothing the next one is half as long; one that has found something
 * makes spins long again. */
TEST(spins_that_do_not_pay_become_short) {
  BEGIN(NULL, 0, 2, 2);
  double limit = SPIN_US;
  for (int i = 0; i<10; i++, limit = limit> 10 ? limit / 2 : 5) {
    double from = fake.now;
    wait_until(fake.now + 3000);
    double spun = first_sleep() - from;
    if (spun < limit - 1 || spun > limit + 5)
      test_fail(__FILE__, __LINE__, "wait %d spins %.1f us, want %.1f", i, spun, limit);
  }
  fake.engine_moves = 1;
  wait_until(fake.now + 100);
  double from = fake.now;
  wait_until(fake.now + 3000);
  CHECK(first_sleep() - from > SPIN_US - 1);
}

/* One wait in many tries whether spinning pays again. */
TEST(one_wait_in_many_explores) {
  BEGIN(NULL, 0, 2, 2);
  int longs = 0;
  for (int i = 0; i < 200; i++) {
    double from = fake.now;
    wait_until(fake.now + 3000);
    longs += first_sleep() - from > SPIN_US - 1;
  }
  CHECK(longs >= 2 && longs <= 6);
}

/* The time for which others have the core is not counted, unless it is a time slice of the
 * scheduler. */
TEST(others_turns_are_not_counted) {
  BEGIN(NULL, 0, 2, 2);
  fake.yield_us = 50; /* each yield lasts for the turns of other ranks */
  wait_until(100000);
  CHECK(first_sleep() > 4 * SPIN_US);
}

TEST(a_core_with_a_computing_process_is_left_at_once) {
  BEGIN(NULL, 0, 2, 2);
  fake.yield_us = 3000;
  wait_until(20000);
  CHECK(first_sleep() > 0 && first_sleep() < 2 * 3000 + 100);
}

TEST(busy_never_sleeps_nor_gives_way) {
  BEGIN("busy", 0, 2, 2);
  wait_until(3000);
  for (int i = 0; i < turns; i++) SAME(blocks[i], 0);
  CHECK(fake.calls.yield == 0 && fake.calls.sleep == 0);
}

TEST(event_sleeps_at_once) {
  BEGIN("event", 0, 2, 2);
  wait_until(3000);
  for (int i = 0; i < turns; i++) CHECK(blocks[i] >= FIRST_US && blocks[i] <= LONGEST_US);
  SAME(longest(), LONGEST_US);
}

/* ---- native MPI ---- */

TEST(each_turn_drives_native_mpi) {
  BEGIN(NULL, 0, 2, 2);
  wait_until(5000);
  CHECK(fake.calls.probe >= turns - 1 && fake.calls.probe <= turns);
}

TEST(alone_it_looks_into_native_mpi_seldom) {
  BEGIN(NULL, 2, 2, 1);
  wait_until(5000);
  CHECK(turns > 100 && fake.calls.probe <= turns / 64 + 1);
}

/* Testing a native request of a stage drives native progress. */
static int looks_too(int32_t block_us) {
  z_looks++;
  return noting(block_us);
}

TEST(no_probe_where_a_test_has_looked_already) {
  BEGIN(NULL, 0, 2, 2);
  z_eng.ze_progress = looks_too;
  wait_until(1000);
  SAME(fake.calls.probe, 0);
}

/* While a native operation is pending spins are nearly as long as native MPI's own. */
TEST(spins_long_while_native_stages_are_under_way) {
  BEGIN(NULL, 0, 2, 2);
  z_eng.ze_progress = looks_too;
  wait_until(40000);
  double slept_at = first_sleep();
  CHECK(slept_at >= NATIVE_SPIN_US && slept_at < NATIVE_SPIN_US + 100);
}

TEST(an_idle_engine_lets_native_mpi_wait) {
  BEGIN(NULL, 0, 2, 2);
  z_busy = Z_IDLE;
  MPI_Request r = fake_request();
  fake_done(r, 1, 2, 3);
  SAME(z_wait_native(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK(fake.calls.wait == 1 && turns == 0);
}

static void done(void *request) { fake_done(*(MPI_Request *)request, 1, 2, 3); }

/* With a busy engine, threads or pending operations of the shim a native wait may not block,
 * because it would serve nobody. */
TEST(a_native_wait_serves_the_links) {
  for (int why = 0; why < 3; why++) {
    if (!why) BEGIN(NULL, 0, 2, 2);
    z_busy = why == 0 ? Z_BUSY : Z_IDLE, z_threads = why == 1, z_pending = why == 2;
    MPI_Request r = fake_request();
    MPI_Status s;
    turns = 0;
    fake_at(fake.now + 100, done, &r);
    SAME(z_wait_native(&r, &s), MPI_SUCCESS);
    SAME(s.MPI_SOURCE, 1);
    SAME(fake.calls.wait, 0);
    if (z_busy) CHECK(turns > 10);
    else SAME(turns, 0); /* only native MPI can end the wait, so it behaves as native MPI does */
    CHECK(first_sleep() < 0);
  }
}

TEST(a_native_wait_that_fails) {
  BEGIN(NULL, 0, 2, 2);
  MPI_Request r = fake_request(), two[2] = {fake_request(), fake_request()};
  fake_fails(r, MPI_ERR_TRUNCATE);
  SAME(z_wait_native(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  fake_fails(two[0], MPI_ERR_TRUNCATE), fake_done(two[1], 1, 2, 3);
  MPI_Status s[2];
  SAME(z_wait_natives(2, two, s), MPI_ERR_IN_STATUS);
  SAME(s[0].MPI_ERROR, MPI_ERR_TRUNCATE);
}

/* A stage may take long, and nothing wakes the process, so it sleeps for short times. */
TEST(a_stage_naps) {
  BEGIN(NULL, 0, 2, 2);
  z_busy = Z_IDLE;
  MPI_Request r = fake_request();
  fake_at(60000, done, &r);
  SAME(z_wait_stage(&r), MPI_SUCCESS);
  CHECK(fake.calls.sleep > 10 && fake.longest_sleep_us == 200);
  CHECK(fake.slept_us > 30000 && fake.slept_us < 60000 - NATIVE_SPIN_US + 200);
}

TEST(a_barrier_before_what_blocks) {
  BEGIN(NULL, 0, 2, 2);
  MPI_Comm inside = fake_comm();
  SAME(z_native_barrier(inside), MPI_SUCCESS);
  SAME(fake_requests(), 0);
}

/* ---- stages of collectives alone ---- */

TEST(stages_alone_keep_out_of_the_engine) {
  BEGIN(NULL, 0, 2, 2);
  z_busy = Z_STAGING;
  over_now = 0;
  wait_until(1000);
  CHECK(turns > 0);
  CHECK(fake.calls.yield > 20 * turns); /* one turn in 64 enters the engine */
}

TEST(with_threads_stages_do_not) {
  BEGIN(NULL, 0, 2, 2);
  z_busy = Z_STAGING, z_threads = 1;
  wait_until(1000);
  SAME(fake.calls.yield, 0);
  CHECK(turns > 100);
}

/* ---- a probe waits for the links alone ---- */

TEST(waiting_for_the_links_sleeps_though_the_engine_is_idle) {
  BEGIN(NULL, 0, 2, 2);
  z_busy = Z_IDLE;
  fake_at(5000, end, NULL);
  z_wait_links(over, NULL);
  SAME(longest(), LONGEST_US);
}

/* ---- released requests ---- */

TEST(a_wait_ends_released_requests) {
  BEGIN(NULL, 0, 2, 2);
  MPI_Request r = MPI_REQUEST_NULL;
  static int data[4];
  SAME(z_Isend(data, 4, MPI_INT, 2, 0, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  fake_op *op = fake_last_op();
  z_Request_free(&r);
  SAME(z_whole->refs, 2);
  fake_at(50, (void (*)(void *))fake_sent, op);
  wait_until(100);
  SAME(z_whole->refs, 1);
}

TEST(a_poll_never_blocks) {
  BEGIN(NULL, 0, 2, 2);
  z_poll();
  CHECK(turns == 1 && blocks[0] == 0 && fake.calls.probe == 1);
  z_busy = Z_IDLE;
  z_poll_if_busy();
  SAME(turns, 1);
}

/* ---- Open MPI's own yielding ---- */

#ifdef OPEN_MPI
static int yields = 1, switched;
static bool let(bool yield) {
  bool was = yields;
  yields = yield, switched++;
  return was;
}

static int not_yielding(void *arg) {
  (void)arg;
  SAME(yields, 0);
  return over_now;
}

TEST(native_yielding_is_off_while_we_wait) {
  BEGIN(NULL, 0, 2, 2);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  z_poll_start(2, zstages_moved);
  CHECK(z_native_yields); /* the yielding cannot be switched off */
  fake_symbol("opal_progress_set_yield_when_idle", (void *)let);
  z_poll_start(2, zstages_moved);
  CHECK(!z_native_yields);
  fake_at(50, end, NULL);
  z_wait(not_yielding, NULL);
  CHECK(yields && switched == 2);
}

/* The wait of a second thread begins while the first one's let_yield(true) is in progress. Its
 * let_yield(false) must come after that, or native MPI yields during the second wait. */
static int second_tid, second_switched, first_done, second_saw = -1;

static int look_at_yields(void *arg) {
  (void)arg;
  while (!__atomic_load_n(&first_done, __ATOMIC_ACQUIRE)) {
  }
  second_saw = __atomic_load_n(&yields, __ATOMIC_ACQUIRE);
  return 1;
}

static void *second_wait(void *arg) {
  __atomic_store_n(&second_tid, gettid(), __ATOMIC_RELEASE);
  z_wait(look_at_yields, NULL);
  return arg;
}

/* Whether the second thread sleeps, which it does only in a lock. */
static int second_sleeps(void) {
  char path[64], text[300], *state;
  int tid = __atomic_load_n(&second_tid, __ATOMIC_ACQUIRE);
  if (!tid) return 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE *f = fopen(path, "r");
  CHECK(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return (state = strrchr(text, ')')) && state[2] == 'S';
}

static pthread_t second;

static bool let_in_threads(bool yield) {
  if (second_tid && gettid() == second_tid) {
    __atomic_store_n(&yields, yield, __ATOMIC_RELEASE);
    __atomic_store_n(&second_switched, 1, __ATOMIC_RELEASE);
  } else if (yield) {
    CHECK(!pthread_create(&second, NULL, second_wait, NULL));
    while (!__atomic_load_n(&second_switched, __ATOMIC_ACQUIRE) && !second_sleeps()) {
    }
    __atomic_store_n(&yields, yield, __ATOMIC_RELEASE);
    __atomic_store_n(&first_done, 1, __ATOMIC_RELEASE);
  }
  return true;
}

static int at_once(void *arg) { return (void)arg, 1; }

TEST(a_wait_that_begins_while_another_ends_is_not_made_to_yield) {
  BEGIN(NULL, 0, 2, 2);
  z_threads = 1;
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  fake_symbol("opal_progress_set_yield_when_idle", (void *)let_in_threads);
  z_poll_start(2, zstages_moved);
  z_wait(at_once, NULL);
  CHECK(!pthread_join(second, NULL));
  SAME(second_saw, 0);
}
#endif
