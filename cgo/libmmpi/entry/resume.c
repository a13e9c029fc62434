/* How a signal handler that has interrupted the engine ends the job. The handler cannot call the
 * engine, because its thread is inside, with locks of the engine and of Go's runtime. It cannot
 * wait for another thread of the engine either, which may need those locks. But the handler need
 * not return, so its thread is resumed where it was interrupted, leaves the engine as usual, and
 * ends the job there.
 *
 * The way back is on the stack, where the kernel has put it before it called the handler: the
 * address to which the handler returns, whose code makes the system call rt_sigreturn, and above it
 * the context (struct rt_sigframe). */
#define _GNU_SOURCE
#include "entry/entry.h"
#include "entry/limits.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__

/* The beginning of struct rt_sigframe, the record that the kernel puts on the stack when it calls a
 * signal handler. The C library's ucontext_t cannot be used, since it is longer than the
 * kernel's. */
typedef struct {
  const void *returns_to;
  struct {
    unsigned long flags, link;
    stack_t stack;
    gregset_t registers;
    void *floating;
  } context;
} frame;

enum {
  USER_CODE = 0x33, /* the code segment of 64-bit programs */
  WORDS = 512,      /* the number of words that are read at once */
};

/* The address of the C library's code to which signal handlers return, or NULL if it is unknown. */
static const void *restorer;

void z_resume_start(void) {
  struct sigaction action;
  struct {
    void (*handler)(int);
    unsigned long flags;
    const void *restorer;
    unsigned long mask;
  } known = {0};
  /* The kernel knows the C library's restorer once an action has been set through the C library,
   * even an action that changes nothing. */
  if (!sigaction(SIGURG, NULL, &action) && !sigaction(SIGURG, &action, NULL) &&
      !syscall(SYS_rt_sigaction, SIGURG, NULL, &known, sizeof known.mask))
    restorer = known.restorer;
}

/* Copies `bytes` bytes at the address `from` in this process, which may be unmapped. Returns
 * whether all bytes were copied. */
static int copy(void *to, uintptr_t from, size_t bytes) {
  struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static int is_frame(const frame *f) {
  return f->returns_to == restorer && !f->context.link && (f->context.registers[REG_CSGSFS] & 0xffff) == USER_CODE;
}

/* Finds the innermost signal frame at or above `at`, copies it to f and returns its address, or 0
 * if there is none within Z_HANDLER_BYTES. */
static uintptr_t find(uintptr_t at, frame *f) {
  uintptr_t words[WORDS];
  for (uintptr_t end = at + Z_HANDLER_BYTES; at < end; at += sizeof words) {
    /* up to the end of the page */
    size_t bytes = sizeof words - at % sizeof words, n = bytes / sizeof *words;
    if (!copy(words, at, bytes)) return 0;
    for (size_t i = 0; i < n; i++)
      if (words[i] == (uintptr_t)restorer && copy(f, at + i * sizeof *words, sizeof *f) && is_frame(f))
        return at + i * sizeof *words;
    at -= at % sizeof words;
  }
  return 0;
}

/* The address of the instruction at which z_resume last resumed this thread, or 0. */
static _Thread_local greg_t resumed;

int z_resume(void (*then)(void)) {
  frame f;
  if (z_place < Z_CALLBACK) return 1;
  if (!restorer) return z_place == Z_CALLBACK; /* in a Go program, whose signal handlers are Go's */
  uintptr_t at = find((uintptr_t)__builtin_frame_address(0) & -sizeof(uintptr_t), &f);
  if (!at) return z_place == Z_CALLBACK;
  /* the thread crashes at this instruction every time */
  if (z_deferred && f.context.registers[REG_RIP] == resumed) return 0;
  resumed = f.context.registers[REG_RIP];
  z_leaving = 1;
  z_deferred = then;
  /* The handler's own return does the same */
  __asm__ volatile("mov %0, %%rsp\n\tjmp *%1" : : "r"(at + sizeof f.returns_to), "r"(restorer) : "memory");
  __builtin_unreachable();
}

#else

void z_resume_start(void) {}

int z_resume(void (*then)(void)) {
  (void)then;
  return z_place != Z_INSIDE;
}

#endif
