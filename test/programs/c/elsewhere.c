/* A program that changes its working directory before MPI_Init, and again afterwards. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
  int sum = 0;
  if (chdir("/")) return 1;
  start(&argc, &argv);
  CHECK(!chdir("/proc"));
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  line("sum %d", sum);
  return finish();
}
