/* Entries into the engine. A signal handler may interrupt a thread that is inside the engine, where
 * the thread may hold a lock or be about to change what another call reads. A mark of each thread
 * says so. Every call of the engine is made through Z_ENGINE, which sets the mark, and every
 * callback of z_native begins with Z_OUT_OF_ENGINE, which clears it while native MPI and the
 * program's functions run. */
#ifndef ZIPPER_ENTRY_H
#define ZIPPER_ENTRY_H
#include "abi.h"

#pragma GCC visibility push(hidden)

extern z_engine z_eng; /* the engine's functions, called by Z_ENGINE(ze_isend(…)) */

/* Where this thread is. A thread is outside before its first entry, too. */
enum z_place { Z_NEVER_ENTERED, Z_OUTSIDE, Z_INSIDE };
extern _Thread_local volatile int z_place; /* enum z_place, read by signal handlers */

/* The engine came with a Go program. Its runtime has alternate stacks of its own. */
extern int z_with_program;

/* Prepares this thread for its first entry: its handlers get an alternate stack. Returns Z_OUTSIDE;
 * or Z_NEVER_ENTERED if that has to be tried again. */
int z_first_entry(void);

static inline int z_entry_begin(void) {
  int before = z_place;
  if (__builtin_expect(before == Z_NEVER_ENTERED, 0)) before = z_first_entry();
  z_place = Z_INSIDE;
  return before;
}

static inline int z_exit_begin(void) {
  int before = z_place;
  z_place = Z_OUTSIDE;
  return before;
}

static inline void z_place_restore(const int *before) { z_place = *before; }

/* Holds for the rest of the block that it stands in. */
#define Z_IN_ENGINE __attribute__((cleanup(z_place_restore), unused)) const int z_before = z_entry_begin()
#define Z_OUT_OF_ENGINE __attribute__((cleanup(z_place_restore), unused)) const int z_before = z_exit_begin()

/* Calls a function of the engine and has its value: int rc = Z_ENGINE(ze_isend(…)). */
#define Z_ENGINE(CALL) \
  __extension__({      \
    Z_IN_ENGINE;       \
    z_eng.CALL;        \
  })

#pragma GCC visibility pop
#endif
