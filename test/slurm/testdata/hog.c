/* A rank that works with the others until the file that its argument names exists, and then
 * allocates memory until it is killed. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  while (access(argv[1], F_OK) != 0) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (;;) {
    char *p = malloc(8 << 20);
    if (p) {
      memset(p, 1, 8 << 20);
    }
    usleep(1000);
  }
}
