/* The state of the process that everything reads; start/ and the engine set it. */
#include "core/job.h"

struct z_real real;
z_engine z_eng;
z_world z_layout;
int z_on, z_threads, z_native_size;
volatile int32_t z_busy;
int32_t z_pending, z_serving;
_Thread_local int z_inside;
