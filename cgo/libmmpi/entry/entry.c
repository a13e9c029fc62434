/* The mark of each thread that is inside the engine. */
#include "entry/entry.h"
#include "signal/signal.h"

z_engine z_eng;
_Thread_local volatile int z_place;

int z_with_program;

int z_first_entry(void) { return z_with_program || zsignal_first()->stack(&z_place) ? Z_OUTSIDE : Z_NEVER_ENTERED; }
