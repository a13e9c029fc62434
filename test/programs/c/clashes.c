/* A program that exports names which also exist in the engine, in its Go runtime and in MMPI: each
 * keeps its own. It is compiled with -rdynamic, like programs that print backtraces. */
#include "check.h"

enum { ROUNDS = 100, BYTES = 100000 };

#define CLASHES(NAME) \
  void NAME(void);    \
  void NAME(void) { abort(); }

CLASHES(fatalf)
CLASHES(crosscall1)
CLASHES(crosscall2)
CLASHES(threadentry)
CLASHES(x_cgo_init)
CLASHES(x_cgo_callers)
CLASHES(x_cgo_thread_start)
CLASHES(_cgo_panic)
CLASHES(_cgo_sys_thread_start)
CLASHES(_cgo_try_pthread_create)
CLASHES(_cgo_wait_runtime_init_done)
CLASHES(zn_set_error)
CLASHES(ze_start)
CLASHES(ze_error)
CLASHES(zload)
CLASHES(z_enter)

int real = 1, z_eng = 2, z_busy = 3, z_layout = 4, running = 5;

int main(int argc, char **argv) {
  static char buffer[BYTES];
  start(&argc, &argv);
  for (int i = 0; i < ROUNDS; i++) {
    int n = 1 + i * (BYTES / ROUNDS), left = (me + np - 1) % np;
    MPI_Comm dup;
    fill(buffer, (size_t)n, (uint64_t)(1000 * me + i));
    MPI_Sendrecv_replace(buffer, n, MPI_CHAR, (me + 1) % np, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(buffer, (size_t)n, (uint64_t)(1000 * left + i)), "round %d", i);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_free(&dup);
  }
  SAME(real + z_eng + z_busy + z_layout + running, 15, "the sum of the program's variables");
  line("%d rounds", ROUNDS);
  return finish();
}
