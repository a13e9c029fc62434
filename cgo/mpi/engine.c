//go:build openmpi || mpich

#define _GNU_SOURCE
#include "../abi/abi.h"
#include "binding.h"
#include <dlfcn.h>

/* The go tool does not see that a header in another directory has changed: this line, changed with
 * it, tells it so. */
_Static_assert(Z_ABI_VERSION == 17, "abi.h has changed: say so here, so that this file is compiled anew");

/* Absent when the program is linked with the MPI library alone: there is nothing to zip then. */
extern void mmpi_register_engine(uint32_t abi, const z_engine *) __attribute__((weak));

/* This very program exports the engine's functions (package cgo/abi). cgo cannot link them across
 * packages, but the dynamic linker can. */
const char *b_register_engine(void) {
  static z_engine engine;
  if (!mmpi_register_engine) return 0;
#define FIND(R, N, A) \
  if (!(engine.N = (N##_fn)dlsym(RTLD_DEFAULT, #N))) return #N;
  Z_ENGINE_FUNCTIONS(FIND)
  mmpi_register_engine(Z_ABI_VERSION, &engine);
  return 0;
}
