/* The mark of each thread (enum z_place) that tells whether the thread is inside the engine. */
#include "entry/entry.h"
#include "signal/signal.h"

z_engine z_eng;
_Thread_local volatile int z_place;
_Thread_local void (*volatile z_deferred)(void);
volatile int32_t z_leaving;

int z_with_program;

int z_first_entry(void) { return z_with_program || zsignal_first()->stack(&z_place) ? Z_OUTSIDE : Z_NEVER_ENTERED; }

void z_run_deferred(void) {
  void (*then)(void) = z_deferred;
  /* a call of the engine from a callback has ended; the thread is still inside */
  if (z_place == Z_CALLBACK) return;
  z_deferred = NULL;
  then();
}
