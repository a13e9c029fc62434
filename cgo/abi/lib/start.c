/* The start of Go's runtime as a guest in the process. The loader does not start it (start.ld), so
 * it gets a suitable environment, and its changes to the process are undone. */
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

/* The runtime's initialization functions, from start.ld. They are weak: a linker that does not
 * support such scripts defines none, and the loader has started the runtime. */
extern const starter z_go_start[] __attribute__((weak)), z_go_start_end[] __attribute__((weak));

/* Returns whether an entry NAME=VALUE of the environment is one by which users configure Go
 * programs of their own. Such a setting may be wrong for the engine, and a malformed one would end
 * the process. GOTRACEBACK is kept: it applies if the engine fails, when a user who has set it
 * wants to see more. */
static int is_for_go(const char *entry) {
  static const char *const names[] = {"GODEBUG=", "GOGC=", "GOMAXPROCS=", "GOMEMLIMIT="};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strncmp(entry, names[i], strlen(names[i]))) return 1;
  return 0;
}

/* Valgrind announces the instruction rdtscp on machines that lack it, and then takes it for an
 * illegal one; the runtime executes it where its threads wait for a lock. A library of the engine
 * that also reads this setting prints that it does not know it, so only Valgrind's runs have it. */
#ifdef __x86_64__
#define WITHOUT_RDTSCP ",cpu.rdtscp=off"
#else
#define WITHOUT_RDTSCP ""
#endif

/* Returns whether the process runs in Valgrind, which preloads libraries of its own. */
static int in_valgrind(void) {
  const char *preload = getenv("LD_PRELOAD");
  return preload && strstr(preload, "vgpreload_core");
}

/* Returns a block like the one that the kernel places on the stack of a new process: its arguments,
 * its environment, and the auxiliary vector, which the runtime reads. The process's own block may
 * have been overwritten meanwhile (setproctitle), or hold another environment than `environ`
 * (setenv). The runtime keeps pointers to the vector, so the block is never freed. */
static char **block(void) {
  static const unsigned long facts[] = {AT_PAGESZ, AT_RANDOM, AT_SECURE, AT_SYSINFO_EHDR};
  /* Go interrupts long loops by SIGURG, which is the program's signal: PETSc, for one, takes it for
   * a crash. The engine's loops are short, or call functions, in which Go can preempt them too.
   * With as many processors as the machine has cores the runtime would start threads that are not
   * needed later (main.go). */
  static char usual[] = "GODEBUG=asyncpreemptoff=1";
  static char valgrind[] = "GODEBUG=asyncpreemptoff=1" WITHOUT_RDTSCP;
  static char processors[] = "GOMAXPROCS=1", name[] = "";
  enum { OURS = 2, FACTS = sizeof facts / sizeof *facts };
  size_t n = 0, at = 0;
  for (char **e = environ; e && *e; e++) n++;
  char **all = calloc(2 + n + OURS + 1 + 2 * (FACTS + 1), sizeof *all);
  if (!all) return NULL;
  all[at] = name, at += 2;
  for (size_t i = 0; i < n; i++)
    if (!is_for_go(environ[i])) all[at++] = environ[i];
  all[at] = in_valgrind() ? valgrind : usual, all[at + 1] = processors, at += OURS + 1;
  for (size_t i = 0; i < FACTS; i++, at += 2) {
    all[at] = (char *)facts[i];                /* NOLINT: numbers and pointers share the list */
    all[at + 1] = (char *)getauxval(facts[i]); /* NOLINT */
  }
  return all;
}

/* The state of the process that Go changes. Go raises the soft limit of open files, which children
 * would inherit, and beyond which programs that use select must not go. It also installs handlers
 * for crashes and for SIGPIPE. Crashes are left to the handlers of the program or of MPI: Go's
 * handlers call those too, but no backtrace gets past them to the place of the crash. A write to a
 * pipe without a reader must end the process, as it does natively. */
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

/* Starts Go's runtime, and returns when it has the descriptors that it keeps. Returns NULL, or a
 * text for the user about why it cannot be started. */
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
