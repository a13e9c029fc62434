/* Inaccessible memory of the program: a buffer that is not mapped, is read-only, or ends before the
 * message does. Such a buffer is a mistake of the program, which ends as it would natively: by
 * SIGSEGV or SIGBUS in its MPI call, where its own handler, a debugger and a core file show the
 * place.
 *
 * The engine meets such memory in two ways. If a system call returns EFAULT, the engine keeps its
 * place in the stream, and the shim accesses the memory itself (zfault_touch). If a handler of the
 * program's repairs the mapping, as a garbage collector that tracks writes does, the message
 * continues. If the engine's own code gets the signal, on a stack that no backtrace can leave, the
 * call into the engine is abandoned, and the memory is accessed in the function that made the call
 * (Z_GUARDED). */
#ifndef ZIPPER_FAULT_H
#define ZIPPER_FAULT_H
#include "core/job.h"

#pragma GCC visibility push(hidden)

/* The jump buffer of the innermost guarded call, or NULL if there is none. The signal handler jumps
 * there, to zfault_landed. */
extern _Thread_local void **zfault_landing;
/* Reports the fault of an abandoned call and accesses its memory again, so that the signal comes in
 * the function that made the call. */
void zfault_landed(void) __attribute__((noreturn));

/* Z_ENGINE for a call that may access the program's memory. An abandoned call leaves the thread
 * marked as inside the engine, because the engine's locks may be held. */
#define Z_GUARDED(CALL)                              \
  __extension__({                                    \
    void *here_[5], **outer_ = zfault_landing;       \
    if (__builtin_setjmp(here_)) zfault_landed();    \
    zfault_landing = here_;                          \
    __typeof__(z_eng.CALL) result_ = Z_ENGINE(CALL); \
    zfault_landing = outer_;                         \
    result_;                                         \
  })

/* accesses the memory that the engine could not, after ze_progress has returned Z_FAULTED */
void zfault_touch(void);
/* Reads or writes the bad memory that f describes, so that the process gets the signal that the
 * engine's system call only returned as EFAULT. For calls on a thread of the engine. */
void zfault_access(const z_fault *f);
/* records whether the program handles SIGSEGV and SIGBUS itself; called before native MPI_Init */
void zfault_before_init(void);
/* Installs the library's handlers of SIGSEGV and SIGBUS, except for a signal that the program
 * handles itself (zfault_before_init). Called once the engine is open. */
void zfault_watch(void);

#pragma GCC visibility pop
#endif
