/* Handles inaccessible memory of the program; see fault.h. */
#define _GNU_SOURCE
#include "request/fault.h"
#include "signal/signal.h"
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS};
enum { SIGNALS = sizeof signals / sizeof *signals, LOWEST = 65536 };

/* For each of the signals: `loaded` is the action when this library was loaded, which is the MPI
 * library's (UCX installs a handler then); `programs` is 1 if the program has installed an action
 * of its own since; and `kept` is the action before the library's own. */
static struct sigaction loaded[SIGNALS];
static int programs[SIGNALS];
static struct sigaction kept[SIGNALS];
/* the addresses where the engine's code begins and ends */
static uintptr_t text_from, text_to;

_Thread_local void **zfault_landing;
static _Thread_local struct {
  int signal, writes;
  /* the address that could not be accessed, or NULL if it is unknown */
  char *at;
} fault;

/* Reads one byte of the program's memory and, with `writes`, writes it back. Another thread may be
 * receiving into the memory, so the byte is written back only if its value has not changed. */
static void touch_byte(char *c, int writes) {
  char x = __atomic_load_n(c, __ATOMIC_RELAXED);
  if (writes) __atomic_compare_exchange_n(c, &x, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void touch(char *at, int64_t bytes, int writes) {
  int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t i = 0; i < bytes; i += page) touch_byte(at + i, writes);
  touch_byte(at + bytes - 1, writes);
}

/* Reports on standard error that memory at `at` could not be accessed. `what` names the message
 * that uses it, writes is 1 if the message was to be received there, and in_call tells whether the
 * program is in an MPI call. */
static void report(const char *at, int writes, const char *what, int in_call) {
  char line[600];
  const char *call = z_threads || !in_call ? NULL : __atomic_load_n(&z_waiting.call, __ATOMIC_RELAXED);
  char where[32];
  snprintf(where, sizeof where, at ? "%p" : "an invalid address", at);
  int n = snprintf(line, sizeof line,
                   "MMPI: virtual rank %d: %s%sthe memory at %s cannot be %s: it is not mapped%s, or is a part of a "
                   "file that is no longer there. The program has given it for %s: check the buffer's address and "
                   "length\n",
                   z_layout.rank, call ? call : "", call ? ": " : "", where, writes ? "written" : "read",
                   writes ? ", or is read-only" : "", what);
  if (n > (int)sizeof line - 1) n = sizeof line - 1;
  if (write(2, line, n) < 0) { /* the error cannot be reported */
  }
}

/* For each processor: `pc_of` returns the address of the instruction that a signal has interrupted,
 * or 0 if it is unknown, and `wrote` whether that instruction was writing to memory. */
#if defined __x86_64__
static uintptr_t pc_of(const ucontext_t *c) { return (uintptr_t)c->uc_mcontext.gregs[REG_RIP]; }
static int wrote(const ucontext_t *c) { return c->uc_mcontext.gregs[REG_ERR] >> 1 & 1; }
#elif defined __aarch64__
enum { WRITES = 1 << 6 }; /* WnR, a bit of the register ESR after an abort of data */
static uintptr_t pc_of(const ucontext_t *c) { return c->uc_mcontext.pc; }

static int wrote(const ucontext_t *c) {
  /* a list of records, each with its size; the one of size 0 ends it */
  const char *end = (const char *)(&c->uc_mcontext + 1);
  const struct _aarch64_ctx *r = (const struct _aarch64_ctx *)c->uc_mcontext.__reserved;
  while (r->size && (const char *)(r + 1) < end && r->magic != ESR_MAGIC)
    r = (const struct _aarch64_ctx *)((const char *)r + r->size);
  return r->magic == ESR_MAGIC && ((const struct esr_context *)r)->esr & WRITES;
}
#else
static uintptr_t pc_of(const ucontext_t *c) { return (void)c, 0; }
static int wrote(const ucontext_t *c) { return (void)c, 0; }
#endif

static void crashed(int sig, siginfo_t *info, void *context) {
  uintptr_t pc = pc_of(context), at = (uintptr_t)info->si_addr;
  int vague = info->si_code == SI_KERNEL;     /* a non-canonical address, which x86-64 does not report */
  sigaction(sig, &kept[sig == SIGBUS], NULL); /* when the handler returns the access is repeated */
  if (info->si_code <= 0) {
    raise(sig);
  } else if (pc >= text_from && pc < text_to && (vague || at >= LOWEST)) {
    fault.signal = sig, fault.writes = wrote(context), fault.at = vague ? NULL : (char *)at;
    if (zfault_landing) __builtin_longjmp(zfault_landing, 1);
    report(fault.at, fault.writes, "a message", 0);
  }
}

void zfault_landed(void) {
  zfault_landing = NULL;
  report(fault.at, fault.writes, "a message", 1);
  if (fault.at) touch(fault.at, 1, fault.writes);
  raise(fault.signal); /* another thread may have mapped the memory meanwhile, but the engine cannot continue */
  _exit(128 + fault.signal);
}

/* Returns whether a handler of the program's gets signal number i of `signals`. It may repair the
 * mapping, so nothing is reported then. */
static int handled(int i) {
  struct sigaction now;
  if (sigaction(signals[i], NULL, &now) || now.sa_handler == SIG_DFL) return 0;
  if (now.sa_sigaction == crashed) return 0;
  return programs[i] || now.sa_handler != kept[i].sa_handler;
}

static void access_it(const z_fault *f, int in_call) {
  if (!handled(0)) report(f->at, f->writes, f->what, in_call);
  touch(f->at, f->bytes, f->writes);
}

void zfault_access(const z_fault *f) { access_it(f, 0); }

void zfault_touch(void) {
  z_fault f;
  if (!Z_ENGINE(ze_fault(&f))) return;
  access_it(&f, 1);
  Z_ENGINE(ze_fault(NULL));
}

__attribute__((constructor)) static void note(void) {
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], NULL, &loaded[i]);
}

void zfault_before_init(void) {
  struct sigaction now;
  for (int i = 0; i < SIGNALS; i++)
    programs[i] =
        !sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_DFL && now.sa_handler != loaded[i].sa_handler;
}

/* Sets text_from and text_to to the bounds of the segment of code of `library` that contains
 * `address`. Returns 1 if it does contain it, otherwise 0. It is called by dl_iterate_phdr for each
 * library. */
static int find_text(struct dl_phdr_info *library, size_t size, void *address) {
  (void)size;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &library->dlpi_phdr[i];
    uintptr_t from = library->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || (uintptr_t)address < from || (uintptr_t)address >= to) continue;
    text_from = from, text_to = to;
    return 1;
  }
  return 0;
}

void zfault_watch(void) {
  void *engine; /* the address of the engine's first function */
  memcpy(&engine, &z_eng, sizeof engine);
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], NULL, &kept[i]);
  if (!dl_iterate_phdr(find_text, engine)) return;
  struct sigaction ours = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  for (int i = 0; i < SIGNALS; i++)
    if (!programs[i]) zsignal_first()->own(signals[i], &ours, &kept[i]);
}
