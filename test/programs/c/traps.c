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
#include <xmmintrin.h>

enum { ROUNDS = 300, MESSAGES = 10, BYTES = 20000, FLUSH = 0x8000 };
static const int trapped = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW;

static void set(void) {
  feenableexcept(trapped);
  fesetround(FE_UPWARD);
  _mm_setcsr(_mm_getcsr() | FLUSH);
}

static void check(const char *when) {
  SAME(fegetexcept(), trapped, when);
  SAME(fegetround(), FE_UPWARD, when);
  SAME(_mm_getcsr() & FLUSH, FLUSH, when);
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
