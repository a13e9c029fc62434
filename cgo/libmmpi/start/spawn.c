/* Processes that are not of the job: refused, on communicators inside a cluster too. They would not
 * have MMPI, which does collectives in forms that theirs do not match, and waits for their progress
 * in its own way: what they share with us would hang. */
#include "core/error.h"

static int refuse(MPI_Comm comm, const char *function) {
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "a zipped job takes no processes from outside: they would not have MMPI");
}

int z_Comm_spawn(const char *command, char *argv[], int n, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *inter,
                 int codes[]) {
  (void)command, (void)argv, (void)n, (void)info, (void)root, (void)inter, (void)codes;
  return refuse(comm, "MPI_Comm_spawn");
}

int z_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int n[], const MPI_Info infos[], int root,
                          MPI_Comm comm, MPI_Comm *inter, int codes[]) {
  (void)count, (void)commands, (void)argvs, (void)n, (void)infos, (void)root, (void)inter, (void)codes;
  return refuse(comm, "MPI_Comm_spawn_multiple");
}

int z_Comm_join(int socket, MPI_Comm *out) {
  (void)socket, (void)out;
  return refuse(MPI_COMM_SELF, "MPI_Comm_join");
}
