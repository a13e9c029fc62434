/* Signal handlers of the program and the stacks that they run on.
 *
 * The engine's code runs on stacks of a few KiB that Go allocates. The kernel puts the frame of a
 * handler without SA_ONSTACK on the stack of the interrupted code, so such a handler would write
 * past the end of a Go stack. Therefore, in the processes of a job, every handler has SA_ONSTACK
 * (action.c, front.c), and every thread that enters the engine, or that has set a small alternate
 * stack itself, has a large one (stack.c). The program sees neither.
 *
 * A process may have two copies of this chapter. libmmpi-signals.so is preloaded where libmmpi is
 * opened only later (cgo/audit), because only functions of a library that is loaded with the
 * program take precedence over those of the C library. Both copies then use the first one's
 * functions, by zsignal_first. */
#ifndef ZIPPER_SIGNAL_H
#define ZIPPER_SIGNAL_H
#include <signal.h>
#include <stdint.h>

#ifndef EXPORT
#define EXPORT __attribute__((visibility("default")))
#endif

#pragma GCC visibility push(hidden)

/* The functions that one copy of this chapter provides to the other. */
typedef struct zsignals {
  /* Adds SA_ONSTACK to all handlers of signals that were installed without this chapter's
   * functions. */
  void (*adopt)(void);

  /* Chooses what this thread sees when it asks for the action of a signal: the kernel's actions
   * unchanged (shown = 1), as Go's runtime must while it is loaded, or the actions as the program
   * has set them (0). */
  void (*show)(int shown);

  /* Installs the action `act` of the library's own for a signal, and returns 0 or -1. The program
   * continues to see the previous action, which is also returned in *before. It may be called once
   * for each signal, before the program's threads run. */
  int (*own)(int number, const struct sigaction *act, struct sigaction *before);

  /* Gives this thread a large alternate stack, unless it has one, before its first entry into the
   * engine: Go's runtime uses the existing one, and would otherwise make a small one. Returns 1,
   * also if there is no memory for the stack, or 0 if a handler runs on the thread's alternate
   * stack now, so that the caller must try again later. When the thread ends the stack is unmapped,
   * and *given, which must stay valid until then, is set to 0. */
  int (*stack)(volatile int *given);
} zsignals;

/* the functions of the copy of this chapter in this library */
extern EXPORT const zsignals mmpi_signals;

/* Returns the functions of the copy that was loaded with the program, which is this one if there is
 * no other. The first call must not be made in a handler, because it calls dlsym. */
const zsignals *zsignal_first(void);

/* Returns whether this process is one of a job. Async-signal-safe. The result is 0 while there is
 * no environment yet: sanitizers call sigaction before the C library has been initialized. */
int zsignal_zipped(void);

/* Does what sigaction does, but adds SA_ONSTACK to handlers and hides this from the program
 * (action.c). Async-signal-safe. */
int zaction(int number, const struct sigaction *act, struct sigaction *old);

/* The functions of this copy to which mmpi_signals points, in the order of struct zsignals, which
 * describes them. */
void zaction_adopt(void);
void zaction_show(int shown);
int zaction_own(int number, const struct sigaction *act, struct sigaction *before);
int zstack_give(volatile int *given);

/* Return the definitions of sigaction and of sigaltstack that come after this library's: the C
 * library's, or those of another library that comes before it. */
typedef int zsigaction_fn(int, const struct sigaction *, struct sigaction *);
typedef int zsigaltstack_fn(const stack_t *, stack_t *);
zsigaction_fn *zsignal_sigaction(void);
zsigaltstack_fn *zsignal_sigaltstack(void);

#pragma GCC visibility pop
#endif
