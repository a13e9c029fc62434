/* A process's view of its place in MPI_COMM_WORLD before MPI_Init, by the launcher's variables: the
 * rank and the size, also in a process that it starts, and after MPI_Init. With the argument
 * "named" the variables of zipper exec have the same values. */
#include "check.h"
#include <unistd.h>

static const char *const launchers[][2] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"ZIPPER_RANK", "ZIPPER_SIZE"}};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

typedef struct {
  int rank, size; /* -1: not set */
} place;

static int number(const char *text) { return text && *text ? atoi(text) : -1; }

static void look(place p[LAUNCHERS]) {
  for (int i = 0; i < LAUNCHERS; i++) p[i] = (place){number(getenv(launchers[i][0])), number(getenv(launchers[i][1]))};
}

/* Reads the variables in a process that this one starts. */
static void look_in_child(place p[LAUNCHERS]) {
  for (int i = 0; i < LAUNCHERS; i++) {
    char command[200], text[100] = "";
    snprintf(command, sizeof command, "echo ${%s:--1} ${%s:--1}", launchers[i][0], launchers[i][1]);
    FILE *child = popen(command, "r");
    if (!child || !fgets(text, sizeof text, child) || pclose(child)) failed(__FILE__, __LINE__, "no child");
    p[i] = (place){-1, -1};
    sscanf(text, "%d %d", &p[i].rank, &p[i].size);
  }
}

static void right(const place p[LAUNCHERS], int named, const char *when) {
  int launcher = p[0].rank >= 0 ? 0 : 1;
  char what[100];
  for (int i = launcher; i < LAUNCHERS; i += 2 - launcher) {
    if (i == 2 && !named) break;
    snprintf(what, sizeof what, "%s %s", launchers[i][0], when);
    SAME(p[i].rank, me, what);
    snprintf(what, sizeof what, "%s %s", launchers[i][1], when);
    SAME(p[i].size, np, what);
  }
}

int main(int argc, char **argv) {
  place before[LAUNCHERS], child[LAUNCHERS], after[LAUNCHERS];
  int named = argc > 1 && !strcmp(argv[1], "named");
  look(before);
  look_in_child(child);
  start(&argc, &argv);
  look(after);
  right(before, named, "before MPI_Init");
  right(child, named, "in a child");
  right(after, named, "after MPI_Init");
  line("knows its place");
  return finish();
}
