/* One collective after the other, each with a given number of bytes per rank (alltoall,
 * reduce_scatter: per pair of ranks). Rank 0 prints the last collective and waits for a line of
 * input, so that the test can read counters while nothing is in flight. */
#include "check.h"

static void pause_after(const char *name, long bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    char answer[8];
    printf("%s %ld\n", name, bytes);
    fflush(stdout);
    if (!fgets(answer, sizeof answer, stdin)) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  pause_after("nothing", 0);
  for (int k = 1; k < argc; k++) {
    long m = atol(argv[k]), each = m > 1 << 20 ? m / np / 8 * 8 : m;
    int n = (int)(m / 8), block = (int)(each / 8), root = 0;
    uint64_t *a = calloc((size_t)np * n + 1, 8), *b = calloc((size_t)np * n + 1, 8);
    for (int i = 0; i < np * n; i++) a[i] = mix((uint64_t)me << 32 | (unsigned)i);
    MPI_Barrier(MPI_COMM_WORLD);
    pause_after("barrier", m);
    MPI_Bcast(b, n, MPI_UINT64_T, root, MPI_COMM_WORLD);
    pause_after("bcast", m);
    MPI_Gather(a, n, MPI_UINT64_T, b, n, MPI_UINT64_T, root, MPI_COMM_WORLD);
    pause_after("gatherv", m);
    MPI_Scatter(a, n, MPI_UINT64_T, b, n, MPI_UINT64_T, root, MPI_COMM_WORLD);
    pause_after("scatterv", m);
    MPI_Allgather(a, n, MPI_UINT64_T, b, n, MPI_UINT64_T, MPI_COMM_WORLD);
    pause_after("allgatherv", m);
    MPI_Alltoall(a, block, MPI_UINT64_T, b, block, MPI_UINT64_T, MPI_COMM_WORLD);
    pause_after("alltoallv", each);
    MPI_Reduce(a, b, n, MPI_UINT64_T, MPI_BXOR, root, MPI_COMM_WORLD);
    pause_after("reduce", m);
    MPI_Allreduce(a, b, n, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    pause_after("allreduce", m);
    for (int i = 0; i < n; i++) {
      uint64_t want = 0;
      for (int p = 0; p < np; p++) want ^= mix((uint64_t)p << 32 | (unsigned)i);
      if (b[i] != want) {
        failed(__FILE__, __LINE__, "allreduce of %d at %d", n, i);
        break;
      }
    }
    MPI_Reduce_scatter_block(a, b, block, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    pause_after("reduce_scatter", each);
    MPI_Scan(a, b, n, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    pause_after("scan", m);
    MPI_Exscan(a, b, n, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    pause_after("exscan", m);
    free(a), free(b);
  }
  MPI_Finalize();
  return failures != 0;
}
