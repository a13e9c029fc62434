/* The start of Go's runtime, as a guest in the process. The loader does not start it (start.ld), so
 * it gets an environment that is right, and what it changes of the process is put back. */
#define _GNU_SOURCE
#include "_cgo_export.h"
#include "limits.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

__attribute__((visibility("default"))) const char *ze_begin(void);

extern char **environ;

typedef void (*starter)(int, char **, char **);

/* The runtime's starters, of start.ld. Weak: where the linker does not know such scripts there are
 * none, and the loader has started the runtime. */
extern const starter z_go_start[] __attribute__((weak)), z_go_start_end[] __attribute__((weak));

/* Variables by which a user sets Go programs of their own. A setting for those may be wrong for the
 * engine, and a malformed one would end the process. GOTRACEBACK stays: it counts if the engine
 * fails, and who sets it wants to see more then. */
static int is_for_go(const char *entry) {
  static const char *const names[] = {"GODEBUG=", "GOGC=", "GOMAXPROCS=", "GOMEMLIMIT="};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strncmp(entry, names[i], strlen(names[i]))) return 1;
  return 0;
}

/* What the kernel lays onto the stack of a new process: its arguments, its environment, and facts
 * for libraries. The runtime reads it. The process's own may have been overwritten meanwhile
 * (setproctitle), or hold another environment than `environ` (setenv). The runtime keeps pointers
 * to the facts, so this is never freed. */
static char **block(void) {
  static const unsigned long facts[] = {AT_PAGESZ, AT_RANDOM, AT_SECURE, AT_SYSINFO_EHDR};
  /* Go interrupts loops that run long by SIGURG, which is the program's: PETSc, for one, takes it
   * for a crash. The engine's loops are short, or call functions, where Go can stop them too. And
   * with as many processors as the machine has cores the runtime would make threads at once that
   * nobody needs later (main.go). */
  static char preempt[] = "GODEBUG=asyncpreemptoff=1", processors[] = "GOMAXPROCS=1", name[] = "";
  enum { OURS = 2, FACTS = sizeof facts / sizeof *facts };
  size_t n = 0, at = 0;
  for (char **e = environ; e && *e; e++) n++;
  char **all = calloc(2 + n + OURS + 1 + 2 * (FACTS + 1), sizeof *all);
  if (!all) return NULL;
  all[at] = name, at += 2;
  for (size_t i = 0; i < n; i++)
    if (!is_for_go(environ[i])) all[at++] = environ[i];
  all[at] = preempt, all[at + 1] = processors, at += OURS + 1;
  for (size_t i = 0; i < FACTS; i++, at += 2) {
    all[at] = (char *)facts[i];                /* NOLINT: numbers and pointers share the list */
    all[at + 1] = (char *)getauxval(facts[i]); /* NOLINT */
  }
  return all;
}

/* What Go changes: it raises the soft limit of open files, which children would inherit, and which
 * programs that use select must not pass; and it has handlers for crashes and for SIGPIPE. Crashes
 * belong to the program's handlers, or MPI's: Go's call those too, but no backtrace gets past them
 * to the place of the crash. A write to a pipe that nobody reads shall end the process, as it does
 * natively. */
typedef struct {
  struct rlimit files;
  struct sigaction action[NSIG];
} process;

static void note(process *p) {
  getrlimit(RLIMIT_NOFILE, &p->files);
  for (int s = 1; s < NSIG; s++) sigaction(s, NULL, &p->action[s]);
}

static void put_back(const process *p) {
  setrlimit(RLIMIT_NOFILE, &p->files);
  for (int s = 1; s < NSIG; s++) {
    struct sigaction now;
    const struct sigaction *was = &p->action[s];
    if (!sigaction(s, NULL, &now) && now.sa_handler != was->sa_handler) sigaction(s, was, NULL);
  }
}

/* Starts the runtime, and returns when it has the descriptors that it keeps. NULL, or why not. */
const char *ze_begin(void) {
  static process before;
  note(&before);
  char **arguments = block();
  if (!arguments) return "there is no memory for the engine";
  for (const starter *f = z_go_start; f < z_go_start_end; f++) (*f)(1, arguments, arguments + 2);
  ze_settle();
  put_back(&before);
  return NULL;
}
