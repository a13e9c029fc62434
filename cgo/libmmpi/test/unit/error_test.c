/* Errors: their classes, the communicators on which they are raised, and their texts
 * (core/error.c). */
#include "core/error.h"
#include "core/limits.h"
#include "request/request.h"
#include "test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(classes_of_the_engines_errors) {
  const struct {
    int z, class_;
  } want[] = {
      {Z_OK, MPI_SUCCESS},
      {Z_ERR_TRUNCATE, MPI_ERR_TRUNCATE},
      {Z_ERR_LINK, MPI_ERR_OTHER},
      {Z_ERR_ABORTED, MPI_ERR_OTHER},
      {Z_ERR_UNSUPPORTED, MPI_ERR_UNSUPPORTED_OPERATION},
      {Z_ERR_INTERNAL, MPI_ERR_INTERN},
      {Z_ERR_ARG, MPI_ERR_ARG},
      {Z_ERR_OP, MPI_ERR_OP},
      {Z_ERR_RMA_SYNC, MPI_ERR_RMA_SYNC},
      {Z_ERR_RMA_RANGE, MPI_ERR_RMA_RANGE},
      {Z_ERR_PROC_FAILED, Z_CLASS_PROC_FAILED},
      {Z_ERR_PROC_FAILED_PENDING, Z_CLASS_PROC_FAILED_PENDING},
      {Z_ERR_REVOKED, Z_CLASS_REVOKED},
      {12345, MPI_ERR_OTHER},
  };
  for (int i = 0; i < COUNT(want); i++) SAME(z_error_class(want[i].z), want[i].class_);
}

TEST(errors_are_raised_on_their_communicator) {
  FAKE_WORLD(0, 2, 1);
  MPI_Comm inside = fake_comm();
  zcomm c = {.native = inside};
  SAME(z_raise(&c, MPI_ERR_TAG, "MPI_Send", "the tag is %d", 7), MPI_ERR_TAG);
  CHECK(fake.raised_on == inside && fake.raised_code == MPI_ERR_TAG);
  SAME(z_raise_on(inside, MPI_ERR_RANK, "MPI_Send", "no rank"), MPI_ERR_RANK);
  CHECK(fake.raised_on == inside);
  c.freed = 1; /* the native communicator may have been freed */
  z_raise(&c, MPI_ERR_TAG, "MPI_Send", "again");
  CHECK(fake.raised_on == z_no_object());
  z_raise(NULL, MPI_ERR_TAG, "MPI_Send", "again");
  CHECK(fake.raised_on == z_no_object());
  SAME(fake.raised, 4);
}

TEST(errors_of_a_hidden_communicator_are_raised_on_the_programs) {
  FAKE_WORLD(0, 2, 1);
  MPI_Comm native = fake_comm();
  zcomm front = {.native = native}, hidden = {.native = fake_comm(), .front = &front};
  SAME(z_raise(&hidden, MPI_ERR_COUNT, "MPI_Start", "the count is %d", -1), MPI_ERR_COUNT);
  CHECK(fake.raised_on == native);
  front.freed = 1;
  z_raise(&hidden, MPI_ERR_COUNT, "MPI_Start", "again");
  CHECK(fake.raised_on == z_no_object());
}

/* Returns the text that the call writes to standard error. */
static const char *stderr_of(void (*call)(void)) {
  static char text[1000];
  FILE *file = tmpfile();
  int kept = dup(2);
  CHECK(file && kept >= 0 && dup2(fileno(file), 2) == 2);
  call();
  fflush(stderr);
  dup2(kept, 2), close(kept);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  return text;
}

static void fatal(void) { z_raise_engine(z_whole, Z_ERR_LINK, "MPI_Recv"); }
static z_cell cut = {.error = Z_ERR_TRUNCATE, .sent = 256, .bytes = 128};
static void truncated(void) { z_raise_cell(z_whole, &cut, "MPI_Gather"); }
static z_cell unknown = {.error = Z_ERR_TRUNCATE};
static void cut_somewhere(void) { z_raise_cell(z_whole, &unknown, "MPI_Recv"); }
static void long_text(void) { z_raise(z_whole, MPI_ERR_ARG, "MPI_Recv", "%02000d", 1); }

TEST(a_fatal_error_says_why_and_ends_all_clusters) {
  FAKE_WORLD(2, 2, 1);
  fake.handler = MPI_ERRORS_ARE_FATAL;
  const char *line = stderr_of(fatal);
  if (strcmp(line, "MMPI: virtual rank 2: MPI_Recv: the fake engine says no\n"))
    test_fail(__FILE__, __LINE__, "%s", line);
  SAME(fake.aborted, MPI_ERR_OTHER);
  CHECK(strstr(stderr_of(truncated), "the message of 256 bytes is longer than the receive buffer of 128\n"));
  SAME(fake.aborted, MPI_ERR_TRUNCATE);
  CHECK(strstr(stderr_of(cut_somewhere), "MPI_Recv: the message is longer than the receive buffer\n"));
  CHECK(strlen(stderr_of(long_text)) > 100); /* the text is cut, and no other memory is overwritten */
  /* the process has left the job, or has not joined: there is no other process to end */
  z_own_page.state = Z_OFF;
  fake.aborted = 0;
  stderr_of(fatal);
  SAME(fake.aborted, 0);
}

TEST(constants_of_two_libraries_may_be_why_a_message_is_not_as_long_as_expected) {
  FAKE_WORLD(2, 2, 1);
  char text[300];
  CHECK(!zconstants_differ(256, 128, text, sizeof text)); /* all clusters have one library */
  z_layout.libraries = 2;
  CHECK(zconstants_differ(256, 128, text, sizeof text) && strstr(text, "MPI_MAX_PROCESSOR_NAME (256, 128)"));
  CHECK(zconstants_differ(256, 512, text, sizeof text) && strstr(text, "MPI_MAX_ERROR_STRING"));
  CHECK(zconstants_differ(2 * 128, 2 * 256, text, sizeof text) && strstr(text, "MPI_MAX_PROCESSOR_NAME"));
  CHECK(!zconstants_differ(50 * 128, 50 * 256, text, sizeof text)); /* more than one string for each rank */
  CHECK(!zconstants_differ(256, 257, text, sizeof text));
  CHECK(!zconstants_differ(0, 0, text, sizeof text));
  fake.handler = MPI_ERRORS_ARE_FATAL;
  CHECK(strstr(stderr_of(truncated),
               "longer than the receive buffer of 128: constants that differ in Open MPI and MPICH "
               "(docs/howto/programs.md)? MPI_MAX_PROCESSOR_NAME"));
  cut.bytes = 512;
  CHECK(strstr(stderr_of(truncated),
               "256 bytes came where 512 were expected: constants that differ in Open MPI and MPICH"));
  cut.bytes = 128;
  z_layout.libraries = 1;
}

TEST(nonfatal_handler_prints_and_ends_nothing) {
  FAKE_WORLD(2, 2, 1);
  CHECK(!*stderr_of(fatal));
  SAME(fake.aborted, 0);
  SAME(fake.raised, 1);
}

static const char *text_of(int code) {
  static char text[MPI_MAX_ERROR_STRING];
  int length = -1;
  SAME(z_Error_string(code, text, &length), MPI_SUCCESS);
  SAME(length, strlen(text));
  return text;
}

/* Each text has one code, and equal texts have the same code. */
TEST(what_is_not_supported_has_a_text) {
  FAKE_WORLD(0, 2, 1);
  int a = z_unsupported(MPI_COMM_WORLD, "MPI_A"), b = z_unsupported(MPI_COMM_WORLD, "MPI_B");
  CHECK(a != b && a != MPI_ERR_UNSUPPORTED_OPERATION);
  SAME(z_unsupported(MPI_COMM_WORLD, "MPI_A"), a);
  CHECK(!strncmp(text_of(a), "MPI_A: not supported", 20));
  CHECK(!strncmp(text_of(b), "MPI_B: not supported", 20));
}

TEST(without_room_for_a_text_the_code_is_the_class) {
  FAKE_WORLD(0, 2, 1);
  fake_no_memory(0);
  SAME(z_unsupported(MPI_COMM_WORLD, "MPI_A"), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(z_unsupported(MPI_COMM_WORLD, "MPI_A") != MPI_ERR_UNSUPPORTED_OPERATION);
  int code = 0;
  for (int i = 0; i < 2 * Z_ERROR_TEXTS; i++) {
    char name[20];
    snprintf(name, sizeof name, "MPI_%d", i);
    code = z_unsupported(MPI_COMM_WORLD, name);
    SAME(code == MPI_ERR_UNSUPPORTED_OPERATION, i >= Z_ERROR_TEXTS - 1);
  }
}

/* ---- no memory for an allocation that the library depends on ---- */

static int ended;
static void say_aborted(int32_t code) { fprintf(stderr, "all clusters end with %d\n", code); }

static void in_child(void (*call)(void)) {
  pid_t child = fork();
  if (!child) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    z_eng.ze_abort = say_aborted;
    call();
    _exit(0);
  }
  CHECK(waitpid(child, &ended, 0) == child);
}

static void put(void) {
  static zmap map;
  fake_no_memory(0);
  zmap_put(&map, 1, &map);
}
static void no_table(void) { in_child(put); }

static void make_request(void) {
  fake.recv_init_fails = 1;
  zreq_new(z_whole, ZREQ_RECV, "MPI_Irecv");
}
static void no_placeholder(void) { in_child(make_request); }

TEST(no_memory_for_handles_ends_the_job_and_says_so) {
  FAKE_WORLD(2, 2, 1);
  const char *text = stderr_of(no_table);
  CHECK(strstr(text, "MMPI: virtual rank 2: out of memory for a table of handles"));
  CHECK(strstr(text, "all clusters end with 1"));
  CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
}

TEST(a_request_that_native_mpi_cannot_make_ends_the_job_and_says_so) {
  FAKE_WORLD(2, 2, 1);
  const char *text = stderr_of(no_placeholder);
  CHECK(strstr(text, "MMPI: virtual rank 2: MPI_Recv_init failed in the native MPI library"));
  CHECK(strstr(text, "native error"));
  CHECK(strstr(text, "all clusters end with 1"));
  CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
}

/* ---- children (core/job.c) ---- */

/* Returns the exit status of a child that no handler of pthread_atfork has prepared: 3 if z_is_off
 * and z_is_child are true in it, and 4 more if a fatal error in it has ended the job. */
static int off_in_child(void) {
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (!child) {
    close(2);
    fake.aborted = 0;
    fatal();
    _exit(z_is_off() + 2 * z_is_child() + 4 * !!fake.aborted);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return status >> 8;
}

TEST(a_child_is_off_with_and_without_pages_that_the_kernel_clears) {
  NEEDS_KERNEL("MADV_WIPEONFORK");
  FAKE_WORLD(0, 2, 1);
  fake.handler = MPI_ERRORS_ARE_FATAL;
  z_switch_on();
  SAME(z_own_page.state, Z_ON); /* the kernel clears it, whatever the page size */
  CHECK(!z_is_off() && !z_is_child());
  SAME(off_in_child(), 3);
  CHECK(!z_is_off());
  madvise(&z_own_page, sizeof z_own_page, MADV_KEEPONFORK); /* as with a kernel that clears no pages */
  z_own_page.state = Z_ON_BY_PID;
  SAME(off_in_child(), 3);
  CHECK(!z_is_off());
}

/* ---- output before the end (core/job.c) ---- */

/* Makes standard error a duplicate of the descriptor `end`, such as one end of a pipe. */
static void stderr_to(int end) { CHECK(dup2(end, 2) == 2); }

static int from, was_read;

static void reads(void *when) {
  char text[100];
  ssize_t n = read(from, text, sizeof text - 1);
  CHECK(n > 0);
  text[n] = 0;
  was_read = !!strstr(text, "no way\n");
  *(double *)when = fake.now;
}

static void fatal_words(int ends[2]) {
  FAKE_WORLD(2, 2, 1);
  double when = -1;
  int kept = dup(2);
  from = ends[0];
  stderr_to(ends[1]);
  fake.handler = MPI_ERRORS_ARE_FATAL;
  fake_at(fake.now + 300e3, reads, &when); /* the reader is busy until then */
  z_raise(z_whole, MPI_ERR_OTHER, "MPI_Recv", "no way");
  stderr_to(kept);
  CHECK(was_read);
  CHECK(fake.now >= when && fake.now < when + 10e3); /* the wait ends with the reader's delay */
}

TEST(a_fatal_error_in_a_pipe_is_read_before_the_process_ends) {
  int ends[2];
  CHECK(!pipe(ends));
  fatal_words(ends);
}

TEST(a_fatal_error_in_a_socket_is_read_before_the_process_ends) {
  int ends[2];
  CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  fatal_words(ends);
}

TEST(without_a_reader_the_wait_is_bounded) {
  FAKE_WORLD(0, 2, 1);
  int ends[2], kept = dup(2);
  CHECK(!pipe(ends) && write(ends[1], "x", 1) == 1);
  stderr_to(ends[1]);
  z_drain_stderr();
  CHECK(fake.now >= Z_DRAIN_STDERR_MS * 1e3 && fake.now < Z_DRAIN_STDERR_MS * 1e3 + 10e3);
  double before = fake.now;
  CHECK(!close(ends[0]) && !close(ends[1]));
  int file = open("/dev/null", O_WRONLY);
  stderr_to(file);
  z_drain_stderr();
  stderr_to(kept);
  SAME(fake.now, before);
}
