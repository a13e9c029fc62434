/* MMPI's threads in a process raise no signal: a library may take any signal for a crash, as PETSc
 * does even with SIGURG, by which Go's threads interrupt one another. */
#include "check.h"
#include <signal.h>

enum { ROUNDS = 200, MESSAGES = 20, BYTES = 10000 };

static volatile sig_atomic_t came;
static void count(int number) { came = number; }

int main(int argc, char **argv) {
  static char out[BYTES], in[BYTES];
  MPI_Comm dup;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  signal(SIGURG, count), signal(SIGPIPE, count), signal(SIGUSR1, count), signal(SIGUSR2, count), signal(SIGIO, count);
  for (int i = 0; i < ROUNDS; i++) { /* until there is garbage to collect */
    for (int k = 0; k < MESSAGES; k++)
      MPI_Sendrecv(out, BYTES, MPI_CHAR, (me + 1) % np, 0, in, BYTES, MPI_CHAR, (me + np - 1) % np, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_free(&dup);
  }
  CHECK(!came, "signal %d came", (int)came);
  return finish();
}
