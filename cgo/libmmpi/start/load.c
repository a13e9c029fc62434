/* Loading: thin, for any program may be preloaded with this. */
#define _GNU_SOURCE
#include "core/job.h"
#include "start/start.h"
#include <dlfcn.h>
#include <stdio.h>

static int missing(void) {
  fputs("MMPI: this MPI library lacks a function that its mpi.h had when MMPI was built: build MMPI again "
        "(scripts/build)\n",
        stderr);
  abort();
}

void zload(void) {
  if (real.Init) return;
  void **slot = (void **)&real;
  for (int i = 0; i < Z_REAL_COUNT; i++) {
    slot[i] = dlsym(RTLD_NEXT, z_real_names[i]);
    if (!slot[i]) slot[i] = (void *)missing;
  }
}

__attribute__((constructor)) static void load(void) { zload(); }
