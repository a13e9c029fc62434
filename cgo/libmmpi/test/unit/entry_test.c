/* The mark of a thread that is inside the engine, and signal handlers that interrupt it there. */
#include "core/job.h"
#include "entry/entry.h"
#include "p2p/p2p.h"
#include "request/wait.h"
#include "test.h"
#include <pthread.h>
#include <signal.h>

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

TEST(mark_says_callback_in_callbacks) {
  FAKE_WORLD(0, 1, 1);
  z_eng.ze_progress = calls_back;
  real.Iprobe = probes_natively;
  z_poll();
  SAME(seen_native, Z_CALLBACK);
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

/* ---- signal handlers ---- */

/* 1 once the interrupted call of the engine has returned. */
static int returned;
static void (*do_in_handler)(void);

static void handle(int number) {
  (void)number;
  do_in_handler();
}

static void aborts(void) { z_abort(MPI_COMM_WORLD, 9); }

static int32_t is_interrupted(int32_t block) {
  (void)block;
  raise(SIGALRM);
  returned = z_place == Z_INSIDE;
  return 0;
}

static int is_interrupted_natively(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  *flag = z_place == Z_CALLBACK && !raise(SIGALRM);
  return probes_natively(source, tag, comm, flag, status);
}

static int ends_outside(MPI_Comm comm, int code) {
  (void)comm;
  SAME(code, 9);
  SAME(fake.aborted, 9);
  SAME(z_place, Z_OUTSIDE);
  SAME(z_leaving, 1);
  CHECK(returned);
  exit(0);
}

static void begin(void (*in_handler)(void), int32_t (*progress)(int32_t), int flags) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
  FAKE_WORLD(0, 1, 1);
  z_resume_start();
  do_in_handler = in_handler;
  z_eng.ze_progress = progress;
  real.Abort = ends_outside;
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGILL, &action, NULL); /* __builtin_trap on x86-64, and on aarch64: */
  sigaction(SIGTRAP, &action, NULL);
}

TEST(handler_has_the_engine_left_before_it_ends_the_job) {
  NEEDS_RESUME;
  begin(aborts, is_interrupted, 0);
  z_poll();
  test_fail(__FILE__, __LINE__, "the job has not ended");
}

TEST(handler_on_a_stack_of_its_own_has_the_engine_left) {
  NEEDS_RESUME;
  static char memory[1 << 16];
  stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  CHECK(!sigaltstack(&stack, NULL));
  begin(aborts, is_interrupted, SA_ONSTACK | SA_SIGINFO);
  z_poll();
  test_fail(__FILE__, __LINE__, "the job has not ended");
}

static int32_t calls_back_once(int32_t block) {
  returned = 0;
  calls_back(block);
  returned = 1;
  return 0;
}

TEST(handler_in_a_callback_has_the_engine_left) {
  NEEDS_RESUME;
  begin(aborts, calls_back_once, 0);
  real.Iprobe = is_interrupted_natively;
  z_poll();
  test_fail(__FILE__, __LINE__, "the job has not ended");
}

TEST(handler_outside_ends_the_job_at_once) {
  begin(aborts, notes, 0);
  z_poll();
  z_leaving = returned = 1; /* the thread has not had to leave the engine */
  raise(SIGALRM);
  test_fail(__FILE__, __LINE__, "the job has not ended");
}

static int32_t crashes(int32_t block) {
  (void)block;
  __builtin_trap();
}

static int ends_inside(MPI_Comm comm, int code) {
  (void)comm;
  SAME(code, 9);
  SAME(fake.aborted, 0);
  exit(0);
}

TEST(crash_of_the_engine_ends_this_process_alone) {
  begin(aborts, crashes, 0);
  real.Abort = ends_inside;
  z_poll();
  test_fail(__FILE__, __LINE__, "the process has not ended");
}

static int crashes_natively(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  if (z_place == Z_CALLBACK) __builtin_trap();
  return probes_natively(source, tag, comm, flag, status);
}

TEST(crash_in_a_callback_ends_this_process_alone) {
  NEEDS_RESUME;
  begin(aborts, calls_back_once, 0);
  real.Iprobe = crashes_natively;
  real.Abort = ends_inside;
  z_poll();
  test_fail(__FILE__, __LINE__, "the process has not ended");
}

static int raises_an_error(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  if (z_place == Z_CALLBACK) aborts(); /* the program's error handler calls MPI_Abort */
  return probes_natively(source, tag, comm, flag, status);
}

static int ends_in_callback(MPI_Comm comm, int code) {
  (void)comm;
  SAME(code, 9);
  SAME(fake.aborted, 9);
  SAME(z_leaving, 0);
  exit(0);
}

TEST(callback_that_ends_the_job_enters_the_engine_at_once) {
  begin(aborts, calls_back_once, 0);
  real.Iprobe = raises_an_error;
  real.Abort = ends_in_callback;
  z_poll();
  test_fail(__FILE__, __LINE__, "the process has not ended");
}

static void calls_mpi(void) { SAME(z_refuse("MPI_Send"), MPI_ERR_OTHER); }

TEST(handler_is_refused_what_needs_the_engine) {
  begin(calls_mpi, is_interrupted, 0);
  z_poll();
  CHECK(returned);
  SAME(fake.raised, 1);
  SAME(z_place, Z_OUTSIDE);
}

static int ends_with_error(MPI_Comm comm, int code) {
  SAME(code, MPI_ERR_OTHER);
  fake.aborted = 9;
  return ends_outside(comm, 9);
}

TEST(refused_handler_ends_the_job_if_errors_are_fatal) {
  NEEDS_RESUME;
  begin(calls_mpi, is_interrupted, 0);
  fake.handler = MPI_ERRORS_ARE_FATAL;
  real.Abort = ends_with_error;
  z_poll();
  test_fail(__FILE__, __LINE__, "the job has not ended");
}
