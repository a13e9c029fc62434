/* The program's view of its signal actions: before MPI_Init and after, by each function that sets
 * actions, in handlers, threads and children. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs use such functions */

enum { SIGNAL = SIGUSR2, ROUNDS = 20000 };

static volatile sig_atomic_t came, flags_seen;

static void one(int n) { (void)n, came++; }
static void other(int n) { (void)n, came++; }
static void another(int n, siginfo_t *info, void *context) { (void)n, (void)info, (void)context, came++; }

/* Reads a handler's own action while it runs: with SA_RESETHAND it is the default. */
static void asks(int n) {
  struct sigaction was;
  sigaction(n, NULL, &was);
  flags_seen = was.sa_flags;
}

static const char *name(void (*handler)(int)) {
  return handler == one                       ? "one"
         : handler == other                   ? "other"
         : (void *)handler == (void *)another ? "another"
         : handler == asks                    ? "asks"
         : handler == SIG_DFL                 ? "default"
         : handler == SIG_IGN                 ? "ignored"
         : handler == SIG_ERR                 ? "error"
         : handler == SIG_HOLD                ? "held"
                                              : "unknown";
}

static void note(const char *what) {
  struct sigaction was;
  sigset_t none;
  sigemptyset(&none);
  sigaction(SIGNAL, NULL, &was);
  line("%s: %s, flags %x, mask %s", what, name(was.sa_handler), (unsigned)was.sa_flags,
       sigismember(&was.sa_mask, SIGNAL) ? "itself" : "none");
}

static void with_flags(void) {
  static const int flags[] = {0,           SA_RESTART, SA_SIGINFO, SA_ONSTACK, SA_NODEFER | SA_ONSTACK | SA_RESTART,
                              SA_NOCLDWAIT};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    struct sigaction act = {.sa_handler = one, .sa_flags = flags[i]}, was;
    if (flags[i] & SA_SIGINFO) act.sa_sigaction = another;
    SAME(sigaction(SIGNAL, &act, &was), 0, "sigaction");
    line("before: %s, flags %x", name(was.sa_handler), (unsigned)was.sa_flags);
    note("sigaction");
    raise(SIGNAL);
  }
  errno = 0;
  line("sigaction of no signal: %d, %d", sigaction(NSIG, &(struct sigaction){.sa_handler = one}, NULL),
       errno == EINVAL);
  line("sigaction of SIGKILL: %d, %d", sigaction(SIGKILL, &(struct sigaction){.sa_handler = one}, NULL),
       errno == EINVAL);
}

static void by_other_functions(void) {
  sighandler_t bsd_signal(int, sighandler_t);
  line("signal: %s", name(signal(SIGNAL, other))), note("signal");
  siginterrupt(SIGNAL, 1), note("siginterrupt");
  line("signal: %s", name(signal(SIGNAL, one))), note("signal that interrupts");
  siginterrupt(SIGNAL, 0), note("siginterrupt off");
  line("bsd_signal: %s", name(bsd_signal(SIGNAL, other))), note("bsd_signal");
  line("ssignal: %s", name(ssignal(SIGNAL, one))), note("ssignal");
  line("sysv_signal: %s", name(sysv_signal(SIGNAL, other))), note("sysv_signal");
  raise(SIGNAL), note("after it");
  line("sigset: %s", name(sigset(SIGNAL, one))), note("sigset");
  line("sigset: %s", name(sigset(SIGNAL, SIG_HOLD)));
  line("sigset: %s", name(sigset(SIGNAL, SIG_HOLD)));
  line("sigset: %s", name(sigset(SIGNAL, other))), note("sigset of a signal that was held");
  line("sigset: %s", name(sigset(0, other)));
  line("signal: %s", name(signal(NSIG, other)));
  line("signal: %s", name(signal(SIGNAL, SIG_ERR)));
  sigignore(SIGNAL), note("sigignore");
  line("signal: %s", name(signal(SIGNAL, SIG_DFL))), note("default");
}

static void in_handlers(void) {
  struct sigaction act = {.sa_handler = asks, .sa_flags = SA_RESETHAND};
  sigaction(SIGNAL, &act, NULL);
  raise(SIGNAL);
  line("in a handler: flags %x", (unsigned)flags_seen);
  note("after it");
}

static void in_children(void) {
  struct sigaction act = {.sa_handler = one, .sa_flags = SA_RESTART}, was;
  int status;
  sigaction(SIGNAL, &act, NULL);
  pid_t child = fork();
  if (!child) {
    act.sa_handler = other;
    sigaction(SIGNAL, &act, &was);
    if (was.sa_handler != one || was.sa_flags & SA_ONSTACK) _exit(1);
    sigaction(SIGNAL, NULL, &was);
    _exit(was.sa_handler == other && !(was.sa_flags & SA_ONSTACK) ? 0 : 2);
  }
  waitpid(child, &status, 0);
  SAME(status, 0, "the child's status");
  child = vfork();
  if (!child) {
    sigaction(SIGNAL, &(struct sigaction){.sa_handler = SIG_DFL}, &was);
    _exit(was.sa_handler == one && !(was.sa_flags & SA_ONSTACK) ? 0 : 3);
  }
  waitpid(child, &status, 0);
  SAME(status, 0, "the status of the child of vfork");
  note("after the children");
}

/* Sets two actions in turn, and checks that the previous action is one of them, with its own
 * flags. */
static void *in_turn(void *unused) {
  struct sigaction plain = {.sa_handler = one}, with = {.sa_handler = other, .sa_flags = SA_ONSTACK}, was;
  for (int i = 0; i < ROUNDS; i++) {
    sigaction(SIGNAL, i % 2 ? &plain : &with, &was);
    if (was.sa_handler != one && was.sa_handler != other) continue;
    if (!(was.sa_flags & SA_ONSTACK) != (was.sa_handler == one)) return unused;
  }
  return NULL;
}

static void in_threads(void) {
  pthread_t thread[2];
  void *wrong;
  signal(SIGNAL, SIG_IGN);
  for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, in_turn, thread);
  for (int i = 0; i < 2; i++) {
    pthread_join(thread[i], &wrong);
    CHECK(!wrong, "flags of another thread's action");
  }
}

static void all(void) {
  with_flags();
  by_other_functions();
  in_handlers();
  in_children();
  in_threads();
}

int main(int argc, char **argv) {
  all();
  struct sigaction act = {.sa_handler = one, .sa_flags = SA_NODEFER};
  sigaction(SIGNAL, &act, NULL);
  start(&argc, &argv);
  note("after MPI_Init");
  all();
  line("%d came", (int)came);
  return finish();
}
