/* Entries into the engine. A signal handler may interrupt a thread that is inside the engine, where
 * the thread may hold a lock or be about to change what another call reads. A mark of each thread
 * says so. Every call of the engine is made through Z_ENGINE, which sets the mark, and every
 * callback of z_native begins with Z_OUT_OF_ENGINE, which clears it while native MPI and the
 * program's functions run. */
#ifndef ZIPPER_ENTRY_H
#define ZIPPER_ENTRY_H
#include "abi.h"
#include <stddef.h>

#pragma GCC visibility push(hidden)

extern z_engine z_eng; /* the engine's functions, called by Z_ENGINE(ze_isend(…)) */

/* Where this thread is. */
enum z_place {
  Z_NEVER_ENTERED,
  Z_OUTSIDE,
  Z_CALLBACK, /* native MPI or a function of the program's, which the engine has called */
  Z_INSIDE,
};
extern _Thread_local volatile int z_place; /* enum z_place, read by signal handlers */

/* The engine came with a Go program. Its runtime has alternate stacks of its own. */
extern int z_with_program;

/* Whether the caller is a signal handler that has interrupted this thread inside the engine. */
static inline int z_interrupts(void) { return __builtin_expect(z_place == Z_INSIDE, 0); }

/* Prepares this thread for its first entry: its handlers get an alternate stack. Returns Z_OUTSIDE;
 * or Z_NEVER_ENTERED if that has to be tried again. */
int z_first_entry(void);

/* What z_resume has left to be done when this thread is outside; NULL: nothing. */
extern _Thread_local void (*volatile z_left)(void);
void z_do_left(void);

static inline int z_entry_begin(void) {
  int before = z_place;
  if (__builtin_expect(before == Z_NEVER_ENTERED, 0)) before = z_first_entry();
  z_place = Z_INSIDE;
  return before;
}

static inline void z_entry_end(const int *before) {
  z_place = *before; /* first: a handler that comes later finds the thread outside */
  if (__builtin_expect(z_left != NULL, 0)) z_do_left();
}

static inline int z_callback_begin(void) {
  int before = z_place;
  if (before == Z_INSIDE) z_place = Z_CALLBACK; /* the library calls some of them, too */
  return before;
}

static inline void z_callback_end(const int *before) { z_place = *before; }

/* Holds for the rest of the block that it stands in. */
#define Z_IN_ENGINE __attribute__((cleanup(z_entry_end), unused)) const int z_before = z_entry_begin()
#define Z_OUT_OF_ENGINE __attribute__((cleanup(z_callback_end), unused)) const int z_before = z_callback_begin()

/* Calls a function of the engine and has its value: int rc = Z_ENGINE(ze_isend(…)). */
#define Z_ENGINE(CALL) \
  __extension__({      \
    Z_IN_ENGINE;       \
    z_eng.CALL;        \
  })

/* 1: calls of the engine that wait for other processes are to return, since a handler has left
 * something to be done outside. The engine looks at it (z_native.leave). */
extern volatile int32_t z_leaving;

/* For a signal handler that has interrupted this thread in a call of the engine, or in a callback.
 * The interrupted call goes on as if the handler had returned. When the thread comes out of the
 * engine it calls `then`, which must not return. Otherwise z_resume returns: 1 if there is no such
 * handler, and the engine may be called at once; 0 if the call cannot go on. That is so if the
 * thread has gone on before and is interrupted at the same place again, since it crashes there.
 * Safe in signal handlers. */
int z_resume(void (*then)(void));

/* Notes what z_resume has to know; before the engine is there. */
void z_resume_start(void);

#pragma GCC visibility pop
#endif
