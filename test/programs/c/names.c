/* Names of hosts, and constants of mpi.h in which libraries differ.
 *
 *   names             each rank's MPI_Get_processor_name, on a line
 *   names processor   gathers MPI_MAX_PROCESSOR_NAME bytes of each
 *   names error       broadcasts MPI_MAX_ERROR_STRING bytes */
#include "check.h"

enum { ENOUGH = 1024 };

int main(int argc, char **argv) {
  start(&argc, &argv);
  const char *what = argc > 1 ? argv[1] : "";
  char name[ENOUGH] = "", *all = calloc((size_t)np, ENOUGH);
  int n = -1, here = -1;
  MPI_Get_processor_name(name, &n);
  SAME(strlen(name), n, "length of the name");
  CHECK(n < MPI_MAX_PROCESSOR_NAME, "the name is too long: %d", n);
  if (!strcmp(what, "processor"))
    MPI_Gather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  else if (!strcmp(what, "error")) MPI_Bcast(all, MPI_MAX_ERROR_STRING, MPI_CHAR, 0, MPI_COMM_WORLD);
  /* Processes have the same name if and only if they share memory. */
  MPI_Comm host;
  MPI_Allgather(name, ENOUGH, MPI_CHAR, all, ENOUGH, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &here);
  for (int i = 0; i < np; i++) here -= !strcmp(all + (size_t)i * ENOUGH, name);
  SAME(here, 0, "processes on this host by MPI_Comm_split_type, more than have its name,");
  MPI_Comm_free(&host);
  free(all);
  line("%s", name);
  return finish();
}
