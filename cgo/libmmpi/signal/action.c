/* Signal actions: SA_ONSTACK is added to the action of a handler, and removed again from the action
 * that the program sees.
 *
 * The kernel records that it was added, by a second flag that is set together with it and has no
 * effect on handlers on most machines. So record and action change atomically, whichever threads
 * and handlers install actions; a child has the record after fork and vfork, and it is gone after
 * exec. Nothing in this file takes a lock or allocates memory. */
#define _GNU_SOURCE
#include "signal/signal.h"
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The flag that marks an action to which SA_ONSTACK was added, SA_EXPOSE_TAGBITS. Linux before 5.11
 * keeps any flag; later versions keep those that they know. On ARM it gives handlers of SIGSEGV the
 * tag in the upper byte of an address. */
enum { ADDED = 0x800 };

/* 1 while this thread sees the kernel's actions unchanged (zaction_show), otherwise 0 */
static _Thread_local int shown;

void zaction_show(int as_they_are) { shown = as_they_are; }

/* For each signal for which the library has installed a handler of its own: that handler, otherwise
 * NULL, and the action that the program sees instead. */
static struct {
  void (*handler)(int);
  struct sigaction before;
} owned[NSIG];

static int needs_stack(const struct sigaction *a) {
  return !(a->sa_flags & SA_ONSTACK) && a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

static struct sigaction with_stack(const struct sigaction *a) {
  struct sigaction with = *a;
  with.sa_flags |= SA_ONSTACK | ADDED;
  return with;
}

int zaction(int number, const struct sigaction *act, struct sigaction *old) {
  zsigaction_fn *next = zsignal_sigaction();
  struct sigaction with;
  if (!zsignal_zipped() || shown) return next(number, act, old);
  if (act && needs_stack(act)) {
    with = with_stack(act);
    act = &with;
  }
  int rc = next(number, act, old);
  if (!rc && old && old->sa_flags & ADDED) old->sa_flags &= ~(SA_ONSTACK | ADDED);
  if (!rc && old && owned[number].handler && old->sa_handler == owned[number].handler) *old = owned[number].before;
  return rc;
}

int zaction_own(int number, const struct sigaction *act, struct sigaction *before) {
  if (zaction(number, NULL, before)) return -1;
  owned[number].before = *before;
  owned[number].handler = act->sa_handler;
  return zsignal_sigaction()(number, act, NULL);
}

/* Adds SA_ONSTACK to the installed action of a signal if it is a handler without it. `next` is the
 * C library's sigaction. If another thread installs a handler at the same time, that handler is
 * returned as the replaced action, and is put back. */
static void adopt(zsigaction_fn *next, int number) {
  struct sigaction was, replaced;
  if (next(number, NULL, &was)) return;
  while (needs_stack(&was)) {
    struct sigaction with = with_stack(&was);
    if (next(number, &with, &replaced) || replaced.sa_handler == was.sa_handler) return;
    was = replaced;
    if (!needs_stack(&was)) next(number, &was, NULL);
  }
}

/* Adds SA_ONSTACK to the handler of one of glibc's own signals, which glibc uses for setuid in all
 * threads and for pthread_cancel, and which its sigaction rejects. */
static void adopt_reserved(int number) {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
  } a;
  if (syscall(SYS_rt_sigaction, number, NULL, &a, sizeof a.mask) || a.handler == SIG_DFL) return;
  a.flags |= SA_ONSTACK;
  syscall(SYS_rt_sigaction, number, &a, NULL, sizeof a.mask);
}

void zaction_adopt(void) {
  for (int number = 1; number < NSIG; number++)
    if (number >= __SIGRTMIN && number < SIGRTMIN) adopt_reserved(number);
    else adopt(zsignal_sigaction(), number);
}
