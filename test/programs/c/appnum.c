/* MPI_APPNUM: the number of the program among those of the job. The argument is the number that
 * this program must have; without it MPI_APPNUM must have no value. All processes of a program find
 * each other by it. Natively: mpirun -n 2 appnum 0 : -n 2 appnum 1. */
#include "check.h"

int main(int argc, char **argv) {
  start(&argc, &argv);
  int *number = NULL, flag = 0, want = argc > 1 ? atoi(argv[1]) : -1, mine = 0, *all = calloc(np, sizeof *all), n;
  MPI_Comm part;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
  SAME(flag ? *number : -1, want, "MPI_APPNUM");
  MPI_Allgather(&want, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < np; i++) mine += all[i] == want;
  MPI_Comm_split(MPI_COMM_WORLD, flag ? *number : MPI_UNDEFINED, 0, &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm_size(part, &n);
    SAME(n, mine, "processes with this number");
    MPI_Comm_free(&part);
  }
  free(all);
  return finish();
}
