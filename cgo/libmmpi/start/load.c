/* Loading. This part does little, because the library may be preloaded into any program. */
#define _GNU_SOURCE
#include "core/job.h"
#include "start/start.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX];

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

const char *zload_folder(void) { return folder; }

/* Stores the absolute path of the folder of this library. A path from LD_LIBRARY_PATH may be
 * relative, and the program may change its working directory before MPI_Init. */
static void note_folder(void) {
  Dl_info self;
  size_t n = 0;
  if (!dladdr((void *)zload, &self) || !self.dli_fname) return;
  const char *slash = strrchr(self.dli_fname, '/');
  if (*self.dli_fname != '/') {
    if (!getcwd(folder, sizeof folder - 1)) return;
    n = strlen(folder);
    folder[n++] = '/';
  }
  snprintf(folder + n, sizeof folder - n, "%.*s", slash ? (int)(slash - self.dli_fname + 1) : 0, self.dli_fname);
}

__attribute__((constructor)) static void load(void) {
  zload();
  note_folder();
}
