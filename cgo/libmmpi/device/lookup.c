/* Functions that the files of the drivers share. */
#define _GNU_SOURCE
#include "device/driver.h"
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

const char *zdriver_look_up(void *library, const zsymbol *symbols, size_t n) {
  const char *lacks = NULL;
  for (size_t i = 0; i < n; i++) {
    *symbols[i].at = dlsym(library, symbols[i].name);
    if (!*symbols[i].at && !lacks) lacks = symbols[i].name;
  }
  return lacks;
}

/* Returns whether the processor can read the byte at p. */
static int readable(const void *p) {
  char byte;
  const struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)p, 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

int zdriver_owned_despite(int error, const void *p) {
  enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, DEINITIALIZED = 4, INVALID_CONTEXT = 201 };
  if (error == INVALID_VALUE || error == NOT_INITIALIZED || error == DEINITIALIZED || error == INVALID_CONTEXT)
    return 0;
  return !readable(p);
}
