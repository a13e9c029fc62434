/* This library's table of the chapter's functions, and the search for the table of the copy that
 * was loaded with the program: that of libmmpi-signals.so if it is preloaded (signal.h). */
#define _GNU_SOURCE
#include "signal/signal.h"
#include <dlfcn.h>

const zsignals mmpi_signals = {.adopt = zaction_adopt, .show = zaction_show, .own = zaction_own, .stack = zstack_give};

const zsignals *zsignal_first(void) {
  static const zsignals *first;
  const zsignals *f = __atomic_load_n(&first, __ATOMIC_ACQUIRE);
  if (f) return f;
  /* The program's own handle is searched, because a library opened with RTLD_DEEPBIND finds itself
   * first */
  void *program = dlopen(NULL, RTLD_LAZY);
  if (program) f = dlsym(program, "mmpi_signals");
  if (program) dlclose(program);
  if (!f) f = &mmpi_signals;
  __atomic_store_n(&first, f, __ATOMIC_RELEASE);
  return f;
}
