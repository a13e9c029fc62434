/* A program that looks as if its Fortran compiler had the value -1 for .true.: the function by
 * which MMPI learns the value is this one. Needs -rdynamic. */
#include <mpi.h>

void mpi_initialized_(MPI_Fint *flag, MPI_Fint *ierror);
void mpi_initialized_(MPI_Fint *flag, MPI_Fint *ierror) { *flag = -1, *ierror = MPI_SUCCESS; }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return 0;
}
