/* Programs change their environment in any way before MPI_Init. The block that the kernel has
 * placed on the stack is the program's memory, and setproctitle overwrites it; only `environ` is
 * valid. Afterwards the program may do the same again. The argument names the way. */
#include "check.h"

extern char **environ;

static char **begin; /* the kernel's list, which precedes its auxiliary vector */

/* Returns a list of copies of all variables. */
static char **copies(void) {
  int n = 0;
  while (environ[n]) n++;
  char **all = calloc(n + 1, sizeof *all);
  for (int i = 0; i < n; i++) all[i] = strdup(environ[i]);
  return all;
}

static void set_all(char **all) {
  for (; *all; all++) putenv(*all);
}

/* Does what setproctitle does: the title replaces all arguments and variables. */
static void title(char **argv) {
  char **all = copies(), *end = argv[0];
  for (char **e = begin; *e; e++) end = *e + strlen(*e);
  environ = all;
  memset(argv[0], 0, end - argv[0]);
  strcpy(argv[0], "solver: reading");
}

static void change(const char *how, char **argv) {
  char **all = copies();
  if (!strcmp(how, "title")) title(argv);
  else if (!strcmp(how, "own")) environ = all;
  else if (!strcmp(how, "cleared")) clearenv(), set_all(all);
  else if (!strcmp(how, "emptied")) environ[0] = NULL, set_all(all);
  else if (!strcmp(how, "emptied-own")) environ[0] = NULL, environ = all;
  else failed(__FILE__, __LINE__, "no such way: %s", how);
}

int main(int argc, char **argv) {
  char how[32] = "";
  begin = environ;
  strncpy(how, argv[1], sizeof how - 1);
  if (!strcmp(how, "emptied-odd")) { /* the list has the other parity */
    setenv("OWNENVIRON", "1", 1);
    strcpy(how, "emptied-own");
  }
  change(how, argv);
  start(&argc, &argv);
  line("%s: %d ranks", how, np);
  if (strcmp(how, "title")) change(how, argv);
  int word = me, sum;
  MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAME(sum, np * (np - 1) / 2, "the sum of the ranks");
  return finish();
}
