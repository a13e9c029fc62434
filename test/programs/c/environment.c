/* The job's secret is in the environment until MPI_Init, and afterwards neither there, nor in
 * /proc's view of it, nor in that of a child. Natively there is none at any time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;
static const char name[] = "ZIPPER_SECRET=";

/* Counts the entries of a block that have a value. */
static int in(const char *block, size_t n) {
  int found = 0;
  for (size_t i = 0; i < n; i += strnlen(block + i, n - i) + 1)
    if (!strncmp(block + i, name, sizeof name - 1) && block[i + sizeof name - 1]) found++;
  return found;
}

static int in_file(FILE *f, int lines) {
  static char all[1 << 20];
  size_t n = fread(all, 1, sizeof all, f);
  for (size_t i = 0; lines && i < n; i++)
    if (all[i] == '\n') all[i] = 0;
  return in(all, n);
}

static int seen(void) {
  int n = getenv("ZIPPER_SECRET") != NULL;
  for (char **e = environ; *e; e++) n += in(*e, strlen(*e) + 1);
  FILE *f = fopen("/proc/self/environ", "r");
  n += f ? in_file(f, 0) : 100;
  fclose(f);
  f = popen("env", "r");
  n += f ? in_file(f, 1) : 100;
  pclose(f);
  return n;
}

int main(int argc, char **argv) {
  int before = seen(), zipped = getenv("ZIPPER_JOB") != NULL, rank, size, word;
  MPI_Init(&argc, &argv);
  int after = seen();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* the job runs, so the secret was read */
  word = before == (zipped ? 4 : 0) && after == 0;
  if (!word) fprintf(stderr, "rank %d sees the secret %d times before MPI_Init, %d times after\n", rank, before, after);
  MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d of %d ranks\n", word, size);
  MPI_Finalize();
  return word != size;
}
