/* The mark of each thread that is inside the engine. */
#include "entry/entry.h"

z_engine z_eng;
_Thread_local volatile int z_place;

int z_first_entry(void) { return z_place = Z_OUTSIDE; }
