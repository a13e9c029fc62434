/* Pairs of ranks, one in each half of the world, put large blocks into each other's windows and
 * read them back. All ranks draw tickets from one counter. Every byte is checked, until the file
 * argv[1] exists. Rank 0 prints each completed round, and at the end the longest round. */
#include "check.h"
#include <unistd.h>

enum { LARGE = 2 << 20, TICKETS = 20 };

int main(int argc, char **argv) {
  start(&argc, &argv);
  int other = (me + np / 2) % np, stop = 0;
  unsigned char *out = malloc(LARGE), *in = malloc(LARGE), *block;
  long *counter, one = 1, drawn = 0;
  MPI_Win blocks, counters;
  MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &block, &blocks);
  MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &counters);
  *counter = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, blocks);
  MPI_Win_lock_all(0, counters);
  double worst = 0;
  for (unsigned round = 0; !stop; round++) {
    double begin = MPI_Wtime();
    fill(out, LARGE, 1000 * round + me);
    MPI_Put(out, LARGE, MPI_BYTE, other, 0, LARGE, MPI_BYTE, blocks);
    MPI_Win_flush(other, blocks);
    memset(in, 0, LARGE);
    MPI_Get(in, LARGE, MPI_BYTE, other, 0, LARGE, MPI_BYTE, blocks);
    long sum = 0, total = 0;
    for (int i = 0; i < TICKETS; i++) {
      long ticket = -1;
      MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, counters);
      MPI_Win_flush(0, counters);
      sum += ticket;
    }
    MPI_Win_flush(other, blocks);
    CHECK(memcmp(in, out, LARGE) == 0, "what was read back in round %u is damaged", round);
    MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_sync(blocks);
    CHECK(filled(block, LARGE, 1000 * round + other), "what was put in round %u is damaged", round);
    long n = (long)np * TICKETS;
    SAME(total, n * drawn + n * (n - 1) / 2, "sum of a round's tickets");
    drawn += n;
    if (me == 0) stop = access(argv[1], F_OK) == 0;
    /* no rank puts before all have checked */
    MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begin;
    if (took > worst) worst = took;
    if (me == 0) {
      printf("round %u\n", round);
      fflush(stdout);
    }
  }
  MPI_Win_unlock_all(counters);
  MPI_Win_unlock_all(blocks);
  MPI_Win_free(&counters);
  MPI_Win_free(&blocks);
  if (me == 0) printf("longest round %.3f s\n", worst);
  return finish();
}
