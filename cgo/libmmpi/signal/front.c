/* The functions of the C library that install handlers. Each of them is replaced here, because
 * those of glibc call sigaction by a private name, so that a replaced sigaction alone would not
 * see their handlers. */
#define _GNU_SOURCE
#include "signal/signal.h"
#include <dlfcn.h>
#include <errno.h>

/* The value SIG_HOLD of sigset, which headers define for old standards only. */
#define HOLD ((sighandler_t)2)

/* A set of signals: bit n - 1 is 1 if siginterrupt has made signal n interrupt system calls. */
static uint64_t interrupts;

static int valid(int number) { return number > 0 && number < NSIG; }

static uint64_t bit(int number) { return (uint64_t)1 << (number - 1); }

EXPORT int sigaction(int number, const struct sigaction *restrict act, struct sigaction *restrict old) {
  return zaction(number, act, old);
}

/* Installs a handler for a signal with these flags, and returns the previous one, or SIG_ERR after
 * setting errno. The action's mask has the signal itself if `masked` is 1. */
static sighandler_t install(int number, sighandler_t handler, int masked, int flags) {
  struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;
  if (handler == SIG_ERR || !valid(number)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  sigemptyset(&act.sa_mask);
  if (masked) sigaddset(&act.sa_mask, number);
  return zaction(number, &act, &old) ? SIG_ERR : old.sa_handler;
}

EXPORT sighandler_t signal(int number, sighandler_t handler) {
  int interrupting = valid(number) && __atomic_load_n(&interrupts, __ATOMIC_RELAXED) & bit(number);
  return install(number, handler, 1, interrupting ? 0 : SA_RESTART);
}

EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) { return signal(number, handler); }
EXPORT sighandler_t ssignal(int number, sighandler_t handler) { return signal(number, handler); }

/* The C library's name of the function signal with System V's meaning, which <signal.h> calls where
 * a program selects that meaning. */
sighandler_t __sysv_signal(int number, sighandler_t handler);
EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) {
  return install(number, handler, 0, SA_RESETHAND | SA_NODEFER | SA_INTERRUPT);
}
EXPORT sighandler_t sysv_signal(int number, sighandler_t handler) { return __sysv_signal(number, handler); }

/* Calls the C library's siginterrupt, which changes SA_RESTART of the installed handler and keeps
 * its other flags, and records the choice for later calls of signal. */
EXPORT int siginterrupt(int number, int interrupting) {
  static int (*next)(int, int);
  if (!next) next = (int (*)(int, int))dlsym(RTLD_NEXT, "siginterrupt");
  int rc = next(number, interrupting);
  if (rc) return rc;
  if (interrupting) __atomic_fetch_or(&interrupts, bit(number), __ATOMIC_RELAXED);
  else __atomic_fetch_and(&interrupts, ~bit(number), __ATOMIC_RELAXED);
  return rc;
}

EXPORT sighandler_t sigset(int number, sighandler_t handler) {
  sigset_t just, was;
  struct sigaction now;
  sigemptyset(&just);
  if (handler == SIG_ERR || sigaddset(&just, number)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  if (handler == HOLD) {
    if (sigprocmask(SIG_BLOCK, &just, &was)) return SIG_ERR;
    if (sigismember(&was, number)) return HOLD;
    return zaction(number, NULL, &now) ? SIG_ERR : now.sa_handler;
  }
  sighandler_t old = install(number, handler, 0, 0);
  if (old == SIG_ERR || sigprocmask(SIG_UNBLOCK, &just, &was)) return SIG_ERR;
  return sigismember(&was, number) ? HOLD : old;
}
