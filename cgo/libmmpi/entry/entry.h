/* Entries into the engine. A signal handler may interrupt a thread inside the engine, where the
 * thread may hold a lock or be halfway through a change of shared data. A mark in each thread
 * records that the thread is inside. Every call of the engine is made through Z_ENGINE, which sets
 * the mark, and every callback of z_native that calls native MPI begins with Z_OUT_OF_ENGINE, which
 * clears the mark while native MPI and the program's functions run. */
#ifndef ZIPPER_ENTRY_H
#define ZIPPER_ENTRY_H
#include "abi.h"
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* the table of the engine's functions, called by Z_ENGINE(ze_isend(…)) */
extern z_engine z_eng;

/* The place of a thread in relation to the engine, which signal handlers have to know. */
enum z_place {
  Z_NEVER_ENTERED,
  Z_OUTSIDE,
  Z_CALLBACK, /* in native MPI or a function of the program's that the engine has called */
  Z_INSIDE,
};
/* this thread's place (enum z_place), which signal handlers read */
extern _Thread_local volatile int z_place;

/* 1 if the engine is linked into a Go program, whose runtime has alternate stacks of its own. */
extern int z_with_program;

/* Returns whether the caller is a signal handler that has interrupted this thread inside the
 * engine. */
static inline int z_interrupts(void) { return __builtin_expect(z_place == Z_INSIDE, 0); }

/* Prepares this thread for its first entry into the engine by giving its signal handlers an
 * alternate stack. Returns Z_OUTSIDE, or Z_NEVER_ENTERED if the next entry must try again. */
int z_first_entry(void);

/* The function that z_resume has asked this thread to call once it is outside of the engine, or
 * NULL; z_run_deferred calls it. */
extern _Thread_local void (*volatile z_deferred)(void);
/* Calls the function that z_resume has stored in z_deferred, if any, unless the thread is in a
 * callback and so still inside the engine. The called function does not return. */
void z_run_deferred(void);

/* Marks this thread as inside the engine, and returns its previous place for z_entry_end. */
static inline int z_entry_begin(void) {
  int before = z_place;
  if (__builtin_expect(before == Z_NEVER_ENTERED, 0)) before = z_first_entry();
  z_place = Z_INSIDE;
  return before;
}

/* Sets this thread's mark to *before, its place before z_entry_begin, and calls the function that
 * z_resume has stored in z_deferred, if any. */
static inline void z_entry_end(const int *before) {
  z_place = *before; /* this comes first, so that a later handler finds the thread outside */
  if (__builtin_expect(z_deferred != NULL, 0)) z_run_deferred();
}

/* If this thread is inside the engine, marks it as in a callback. Returns its previous place for
 * z_callback_end. */
static inline int z_callback_begin(void) {
  int before = z_place;
  if (before == Z_INSIDE) z_place = Z_CALLBACK; /* the shim calls some of the callbacks too, from outside */
  return before;
}

/* Sets this thread's mark to *before, its place before z_callback_begin. */
static inline void z_callback_end(const int *before) { z_place = *before; }

/* Z_IN_ENGINE marks this thread as inside the engine for the rest of the enclosing block,
 * Z_OUT_OF_ENGINE as in a callback of the engine. */
#define Z_IN_ENGINE __attribute__((cleanup(z_entry_end), unused)) const int z_before = z_entry_begin()
#define Z_OUT_OF_ENGINE __attribute__((cleanup(z_callback_end), unused)) const int z_before = z_callback_begin()

/* Calls a function of the engine, with this thread marked as inside the engine, and evaluates to
 * the function's result: int rc = Z_ENGINE(ze_isend(…)). */
#define Z_ENGINE(CALL) \
  __extension__({      \
    Z_IN_ENGINE;       \
    z_eng.CALL;        \
  })

/* 1 if calls of the engine that wait for other processes must return, because a signal handler has
 * asked for a function to be called outside. The engine reads it as z_native.leave. */
extern volatile int32_t z_leaving;

/* Lets a thread leave the engine after a signal handler has interrupted it in a call of the engine
 * or in a callback, and then calls `then`, which must not return. The interrupted call continues as
 * if the handler had returned. z_resume itself returns only if it cannot do so. It returns
 * 1 if the engine may be called at once: the thread is outside of it, or in a callback that no
 * handler has interrupted. It returns 0 if the thread is inside and the interrupted call cannot
 * continue: the place of the interruption is not found on the stack, or the thread has been resumed
 * at this instruction before and crashes there. Safe in signal handlers. */
int z_resume(void (*then)(void));

/* Finds the address to which signal handlers return, which z_resume needs. It must be called before
 * the engine is loaded. */
void z_resume_start(void);

#pragma GCC visibility pop
#endif
