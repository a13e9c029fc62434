/* Ranks send windows of large messages and overwrite a buffer as soon as its send has completed:
 * the data from before must arrive. */
#include "check.h"

enum { WINDOW = 48, LARGE = (1 << 20) + 13, ROUNDS = 6 };

int main(int argc, char **argv) {
  start(&argc, &argv);
  int to = (me + np / 2) % np, from = (me + np - np / 2) % np;
  unsigned char *out = malloc((size_t)WINDOW * LARGE), *in = malloc((size_t)WINDOW * LARGE);
  uint64_t all = 0;
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Request sends[WINDOW], receives[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
      memset(in + (size_t)i * LARGE, 0, LARGE);
      MPI_Irecv(in + (size_t)i * LARGE, LARGE, MPI_BYTE, from, i, MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = 0; i < WINDOW; i++) {
      fill(out + (size_t)i * LARGE, LARGE, 1000 * me + 100 * round + i);
      MPI_Isend(out + (size_t)i * LARGE, LARGE, MPI_BYTE, to, i, MPI_COMM_WORLD, &sends[i]);
    }
    for (int n = 0, i; n < WINDOW; n++) {
      MPI_Waitany(WINDOW, sends, &i, MPI_STATUS_IGNORE);
      memset(out + (size_t)i * LARGE, 0xee, LARGE);
    }
    MPI_Waitall(WINDOW, receives, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++) {
      CHECK(filled(in + (size_t)i * LARGE, LARGE, 1000 * from + 100 * round + i), "round %d, message %d", round, i);
      all = digest(all, in + (size_t)i * LARGE + LARGE - 64, 64);
    }
  }
  line("%016llx", (unsigned long long)all);
  return finish();
}
