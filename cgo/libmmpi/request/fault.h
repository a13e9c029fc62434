/* Memory of the program that is not there: a buffer that is not mapped, is read-only, or ends
 * before the message does. It is the program's mistake, and ends it as natively: by SIGSEGV or
 * SIGBUS in its MPI call, where its own handler, a debugger and a core file show it.
 *
 * The engine meets it in two ways. A system call returns EFAULT: the engine keeps its place in the
 * stream, and the shim accesses the memory itself (zfault_touch). If a handler of the program's
 * repairs it, as a collector that tracks writes does, the message goes on. Or the engine's own
 * code gets the signal, on a stack that no backtrace leaves: then the call into the engine is
 * abandoned, and the memory is accessed in the function that made it (Z_GUARDED). */
#ifndef ZIPPER_FAULT_H
#define ZIPPER_FAULT_H
#include "core/job.h"

#pragma GCC visibility push(hidden)

extern _Thread_local void **zfault_landing; /* of the innermost guarded call; NULL: there is none */
void zfault_landed(void) __attribute__((noreturn));

/* Z_ENGINE for a call that may access the program's memory. A call that is abandoned leaves the
 * thread marked as inside: the engine's locks may be held. */
#define Z_GUARDED(CALL)                              \
  __extension__({                                    \
    void *here_[5], **outer_ = zfault_landing;       \
    if (__builtin_setjmp(here_)) zfault_landed();    \
    zfault_landing = here_;                          \
    __typeof__(z_eng.CALL) result_ = Z_ENGINE(CALL); \
    zfault_landing = outer_;                         \
    result_;                                         \
  })

void zfault_touch(void);              /* after ze_progress has returned Z_FAULTED */
void zfault_access(const z_fault *f); /* the same on a thread of the engine's own, which knows the fault */
void zfault_before_init(void);        /* notes whether the program handles such signals itself */
void zfault_watch(void);              /* called once the engine is open */

#pragma GCC visibility pop
#endif
