/* A small program that is built with a sanitizer: it counts the ranks. With the argument "overflow"
 * rank 0 writes past a block, which the address sanitizer reports. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  int me, n, one = 1, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  char *block = malloc(100 * (size_t)n), *other = malloc(100 * (size_t)n);
  memset(block, me, 100 * (size_t)n);
  MPI_Alltoall(block, 100, MPI_CHAR, other, 100, MPI_CHAR, MPI_COMM_WORLD);
  printf("%d of %d: %d, from the last %d\n", me, n, all, other[100 * n - 1]);
  fflush(stdout);
  if (argc > 1 && !strcmp(argv[1], "overflow") && me == 0) {
    volatile size_t past = 100 * (size_t)n;
    block[past] = 1;
  }
  free(block), free(other);
  MPI_Finalize();
  return 0;
}
