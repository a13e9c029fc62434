/* Pairs of ranks, one in each half of the world, exchange large and small messages and check every
 * byte, until the file argv[1] exists. Rank 0 prints each completed round, and at the end the
 * longest round. */
#include "check.h"
#include <unistd.h>

enum { LARGE = 4 << 20, SMALL = 64, SMALLS = 50 };

static void bytes(unsigned char *b, int n, unsigned round, int rank) {
  unsigned x = round * 2654435761u + rank + 1;
  for (int i = 0; i < n; i++) {
    x = x * 1664525u + 1013904223u;
    b[i] = x >> 24;
  }
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int other = (me + np / 2) % np, stop = 0;
  unsigned char *out = malloc(LARGE), *in = malloc(LARGE), *want = malloc(LARGE);
  double worst = 0;
  for (unsigned round = 0; !stop; round++) {
    bytes(out, LARGE, round, me);
    bytes(want, LARGE, round, other);
    double begin = MPI_Wtime();
    MPI_Sendrecv(out, LARGE, MPI_BYTE, other, 1, in, LARGE, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(memcmp(in, want, LARGE) == 0, "large message of round %u is damaged", round);
    for (int i = 0; i < SMALLS; i++) {
      int n = -1;
      MPI_Sendrecv(&i, 1, MPI_INT, other, 2, &n, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(n == i, "small message %d came where %d was due", n, i);
    }
    if (me == 0) stop = access(argv[1], F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begin;
    if (took > worst) worst = took;
    if (me == 0) {
      printf("round %u\n", round);
      fflush(stdout);
    }
  }
  if (me == 0) printf("longest round %.3f s\n", worst);
  return finish();
}
