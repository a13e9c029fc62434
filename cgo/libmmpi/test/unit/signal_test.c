/* Signal actions and alternate stacks (signal/): those of the kernel, and those that the program
 * sees. */
#define _GNU_SOURCE
#include "signal/limits.h"
#include "signal/signal.h"
#include "test.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static char small[32 << 10], large[1 << 20];
static volatile sig_atomic_t came;

static void handler(int number) { came = number; }
static void other(int number) { came = -number; }

static struct sigaction of_kernel(int number) {
  struct sigaction a;
  CHECK(!zsignal_sigaction()(number, NULL, &a));
  return a;
}

static struct sigaction of_program(int number) {
  struct sigaction a;
  CHECK(!sigaction(number, NULL, &a));
  return a;
}

static int on_stack(struct sigaction a) { return (a.sa_flags & SA_ONSTACK) != 0; }

static void install(int number, void (*f)(int), int flags) {
  struct sigaction a = {.sa_handler = f, .sa_flags = flags};
  CHECK(!sigaction(number, &a, NULL));
}

TEST(a_handler_gets_a_flag_that_the_program_does_not_see) {
  install(SIGUSR1, handler, SA_RESTART);
  CHECK(on_stack(of_kernel(SIGUSR1)));
  CHECK(of_program(SIGUSR1).sa_handler == handler);
  SAME(of_program(SIGUSR1).sa_flags & ~0x04000000 /* SA_RESTORER */, SA_RESTART);
}

TEST(the_flag_of_the_program_is_shown) {
  install(SIGUSR1, handler, SA_ONSTACK);
  CHECK(on_stack(of_program(SIGUSR1)));
}

TEST(no_handler_needs_a_stack) {
  install(SIGUSR1, SIG_IGN, 0), install(SIGUSR2, SIG_DFL, 0);
  CHECK(!on_stack(of_kernel(SIGUSR1)));
  CHECK(!on_stack(of_kernel(SIGUSR2)));
}

TEST(the_runtime_sees_what_the_kernel_has) {
  install(SIGUSR1, handler, 0);
  mmpi_signals.show(1);
  CHECK(on_stack(of_program(SIGUSR1)));
  mmpi_signals.show(0);
  CHECK(!on_stack(of_program(SIGUSR1)));
}

TEST(handlers_of_raw_system_calls_are_adopted) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_NODEFER};
  CHECK(!zsignal_sigaction()(SIGUSR1, &a, NULL));
  CHECK(!on_stack(of_kernel(SIGUSR1)));
  mmpi_signals.adopt();
  CHECK(on_stack(of_kernel(SIGUSR1)));
  CHECK(!on_stack(of_program(SIGUSR1)));
  CHECK(of_program(SIGUSR1).sa_handler == handler && of_program(SIGUSR1).sa_flags & SA_NODEFER);
  CHECK(!on_stack(of_kernel(SIGUSR2)));
}

TEST(an_action_that_was_asked_for_can_be_put_back) {
  install(SIGUSR1, handler, 0);
  struct sigaction was = of_program(SIGUSR1);
  install(SIGUSR1, other, SA_ONSTACK);
  CHECK(!sigaction(SIGUSR1, &was, NULL));
  CHECK(on_stack(of_kernel(SIGUSR1)));
  CHECK(!on_stack(of_program(SIGUSR1)));
}

TEST(every_function_that_installs_gives_the_flag) {
  CHECK(signal(SIGUSR1, handler) == SIG_DFL && on_stack(of_kernel(SIGUSR1)));
  CHECK(!siginterrupt(SIGUSR1, 1) && on_stack(of_kernel(SIGUSR1)));
  CHECK(!on_stack(of_program(SIGUSR1)) && !(of_program(SIGUSR1).sa_flags & SA_RESTART));
  CHECK(ssignal(SIGUSR1, other) == handler && on_stack(of_kernel(SIGUSR1)));
  CHECK(!(of_program(SIGUSR1).sa_flags & SA_RESTART));
  CHECK(sysv_signal(SIGUSR1, handler) == other && on_stack(of_kernel(SIGUSR1)));
  CHECK(sigset(SIGUSR1, other) == handler && on_stack(of_kernel(SIGUSR1)));
  CHECK(raise(SIGUSR1) == 0 && came == -SIGUSR1);
}

TEST(numbers_that_are_no_signals_are_refused) {
  errno = 0;
  CHECK(signal(0, handler) == SIG_ERR && errno == EINVAL);
  errno = 0;
  CHECK(sigset(NSIG, handler) == SIG_ERR && errno == EINVAL);
  errno = 0;
  CHECK(sigaction(NSIG, &(struct sigaction){.sa_handler = handler}, NULL) && errno == EINVAL);
}

static void *ends(void *unused) { return unused; }

TEST(handlers_of_the_c_library_are_adopted) {
  enum { SETXID = 33, WORDS = 4 };
  pthread_t thread;
  uint64_t a[WORDS] = {0}; /* handler, flags, restorer, mask */
  CHECK(!pthread_create(&thread, NULL, ends, NULL));
  CHECK(!pthread_join(thread, NULL));
  mmpi_signals.adopt();
  CHECK(!syscall(SYS_rt_sigaction, SETXID, NULL, a, sizeof *a));
  CHECK(a[0] != 0);
  CHECK(a[1] & SA_ONSTACK);
}

/* ---- stacks ---- */

static stack_t stack_of_kernel(void) {
  stack_t s;
  CHECK(!zsignal_sigaltstack()(NULL, &s));
  return s;
}

static stack_t stack_of_program(void) {
  stack_t s;
  CHECK(!sigaltstack(NULL, &s));
  return s;
}

static void set(void *at, size_t bytes) {
  stack_t s = {.ss_sp = at, .ss_size = bytes, .ss_flags = at ? 0 : SS_DISABLE};
  CHECK(!sigaltstack(&s, NULL));
}

static int mapped(const char *at) { return !msync((void *)at, 1, MS_ASYNC); }

static volatile int given;
static char *was_at;

static void *runs_and_ends(void *rlimit) {
  set(NULL, 0); /* removes the sanitizer's stack */
  SAME(mmpi_signals.stack(&given), 1);
  given = 1;
  stack_t s = stack_of_kernel();
  was_at = s.ss_sp;
  SAME(s.ss_size, *(rlim_t *)rlimit);
  CHECK(stack_of_program().ss_flags & SS_DISABLE);
  CHECK(mapped(was_at));
  int fd[2];
  CHECK(!pipe(fd));
  SAME(write(fd[1], was_at, 1), 1);
  SAME(write(fd[1], was_at - 1, 1), -1); /* the guard cannot be read */
  SAME(write(fd[1], was_at - Z_STACK_GUARD, 1), -1);
  close(fd[0]), close(fd[1]);
  return NULL;
}

static void in_a_thread(void *(*f)(void *), void *arg) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, f, arg));
  CHECK(!pthread_join(thread, NULL));
}

TEST(a_threads_stack_is_as_long_as_its_limit_and_goes_with_it) {
  NEEDS_KERNEL("setrlimit of RLIMIT_STACK");
  for (rlim_t n = 1 << 20; n <= 8 << 20; n *= 2) {
    struct rlimit limit = {n, RLIM_INFINITY};
    CHECK(!setrlimit(RLIMIT_STACK, &limit));
    in_a_thread(runs_and_ends, &n);
    SAME(given, 0);
    CHECK(!mapped(was_at));
  }
}

TEST(a_stack_is_within_bounds) {
  NEEDS_KERNEL("setrlimit of RLIMIT_STACK");
  rlim_t least = Z_SHORT_STACK, most = Z_LONG_STACK;
  CHECK(!setrlimit(RLIMIT_STACK, &(struct rlimit){256 << 10, RLIM_INFINITY}));
  in_a_thread(runs_and_ends, &least);
  CHECK(!setrlimit(RLIMIT_STACK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}));
  in_a_thread(runs_and_ends, &most);
}

TEST(a_large_stack_of_the_program_is_kept) {
  set(large, sizeof large);
  SAME(mmpi_signals.stack(&given), 1);
  CHECK(stack_of_kernel().ss_sp == large);
  set(NULL, 0); /* from here on the thread must have a stack */
  SAME(stack_of_kernel().ss_flags, 0);
  CHECK(stack_of_program().ss_flags & SS_DISABLE);
  set(large, sizeof large);
  CHECK(stack_of_kernel().ss_sp == large && stack_of_program().ss_sp == large);
}

TEST(a_small_stack_of_the_program_is_replaced) {
  set(small, sizeof small);
  CHECK(stack_of_kernel().ss_size >= Z_SHORT_STACK);
  CHECK(stack_of_program().ss_sp == small && stack_of_program().ss_size == sizeof small);
  set(NULL, 0);
  CHECK(stack_of_kernel().ss_flags & SS_DISABLE); /* a thread that never enters the engine needs no stack */
}

TEST(a_small_stack_is_replaced_at_the_first_entry) {
  CHECK(!zsignal_sigaltstack()(&(stack_t){.ss_sp = small, .ss_size = sizeof small}, NULL));
  SAME(mmpi_signals.stack(&given), 1);
  CHECK(stack_of_kernel().ss_size >= Z_SHORT_STACK);
  CHECK(stack_of_program().ss_sp == small);
}

static int in_handler, error;

static void enters(int number) {
  (void)number;
  in_handler = mmpi_signals.stack(&given);
  errno = 0;
  if (sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL)) error = errno;
  CHECK(stack_of_program().ss_flags & SS_ONSTACK);
}

TEST(a_stack_in_use_stays) {
  set(large, sizeof large);
  install(SIGUSR1, enters, SA_ONSTACK);
  raise(SIGUSR1);
  SAME(in_handler, 0);
  SAME(error, EPERM);
  CHECK(stack_of_kernel().ss_sp == large);
  SAME(mmpi_signals.stack(&given), 1);
}

TEST(what_the_kernel_refuses_changes_nothing) {
  set(small, sizeof small);
  errno = 0;
  CHECK(sigaltstack(&(stack_t){.ss_sp = small, .ss_size = 16}, NULL) && errno == ENOMEM);
  errno = 0;
  CHECK(sigaltstack(&(stack_t){.ss_sp = small, .ss_size = sizeof small, .ss_flags = 1 << 8}, NULL) && errno == EINVAL);
  CHECK(stack_of_program().ss_sp == small);
  CHECK(stack_of_kernel().ss_size >= Z_SHORT_STACK);
}
