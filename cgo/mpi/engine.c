//go:build openmpi || mpich

#define _GNU_SOURCE
#include "../abi/abi.h"
#include "binding.h"
#include <dlfcn.h>

/* The go tool does not notice changes of a header in another directory. This line, changed together
 * with the header, makes it compile the file again. */
_Static_assert(Z_ABI_VERSION == 21, "abi.h has changed: change this line too, so that this file is compiled again");

/* Absent if the program is linked with the MPI library alone, so that it cannot be zipped. */
extern void mmpi_register_engine(uint32_t abi, const z_engine *) __attribute__((weak));

/* Registers the engine. This program exports the engine's functions itself (package cgo/abi). cgo
 * cannot link them across packages, but the dynamic linker can. */
const char *b_register_engine(void) {
  static z_engine engine;
  if (!mmpi_register_engine) return 0;
#define FIND(R, N, A) \
  if (!(engine.N = (N##_fn)dlsym(RTLD_DEFAULT, #N))) return #N;
  Z_ENGINE_FUNCTIONS(FIND)
  mmpi_register_engine(Z_ABI_VERSION, &engine);
  return 0;
}
