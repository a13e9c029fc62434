/* The state of the process that everything reads; start/ and the engine set it. */
#include "core/job.h"
#include <stdio.h>
#include <string.h>

struct z_real real;
z_engine z_eng;
z_world z_layout;
int z_on, z_threads, z_native_size;
volatile int32_t z_busy;
int32_t z_pending, z_leaves, z_serving, z_others;
uint64_t z_world_mark;
_Thread_local int z_inside;

#ifdef Z_STANDARD_ABI
int z_on_open_mpi(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  return !real.Get_library_version(text, &n) && strstr(text, "Open MPI");
}
#endif

void z_no_memory(const char *what) {
  fprintf(stderr, "MMPI: virtual rank %d: out of memory for %s\n", z_layout.rank, what);
  if (z_on) z_eng.ze_abort(1);
  abort();
}
