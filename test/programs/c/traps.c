/* A program with its own floating-point environment: it traps invalid operations, division by zero,
 * overflow and underflow, rounds upwards and flushes denormals to zero. Communication neither traps
 * nor changes that.
 *
 *   traps before|after
 *
 * The argument tells whether the environment is set before MPI_Init or after. */
#define _GNU_SOURCE
#include "check.h"
#include <fenv.h>

/* The register with the floating-point settings, and its bit that flushes denormals to zero. */
#ifdef __x86_64__
#include <xmmintrin.h>
enum { FLUSH = 0x8000 };
static uint64_t settings(void) { return _mm_getcsr(); }
static void change(uint64_t settings) { _mm_setcsr((unsigned)settings); }
#else
enum { FLUSH = 1 << 24 };
static uint64_t settings(void) {
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}
static void change(uint64_t settings) { __asm__ volatile("msr fpcr, %0" : : "r"(settings)); }
#endif

enum { ROUNDS = 300, MESSAGES = 10, BYTES = 20000 };
static int trapped; /* the exceptions that are trapped, none on a processor that traps none */

static void set(void) {
  const int wanted = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW;
  trapped = feenableexcept(wanted) < 0 ? 0 : wanted;
  fesetround(FE_UPWARD);
  change(settings() | FLUSH);
}

static void check(const char *when) {
  SAME(fegetexcept(), trapped, when);
  SAME(fegetround(), FE_UPWARD, when);
  CHECK(settings() & FLUSH, "%s: denormals are not flushed to zero", when);
}

int main(int argc, char **argv) {
  static char out[BYTES], in[BYTES];
  int before = argc > 1 && !strcmp(argv[1], "before");
  if (before) set();
  start(&argc, &argv);
  if (!before) set();
  check("after MPI_Init");
  for (int i = 0; i < ROUNDS; i++) { /* until there is garbage to collect */
    double one = 1, sum = 0;
    MPI_Comm dup;
    for (int k = 0; k < MESSAGES; k++)
      MPI_Sendrecv(out, BYTES, MPI_CHAR, (me + 1) % np, 0, in, BYTES, MPI_CHAR, (me + np - 1) % np, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, dup);
    MPI_Comm_free(&dup);
    CHECK(sum == np, "the sum is %g", sum);
  }
  check("after communication");
  line("%s", before ? "before" : "after");
  return finish();
}
