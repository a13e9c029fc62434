/* A program gives up root's rights in the middle of a job, as servers do. All threads of the
 * process follow. A process of another user keeps its identity. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <grp.h>
#include <unistd.h>

enum { ROUNDS = 50, NOBODY = 65534 };

static void ring(void) {
  for (int i = 0; i < ROUNDS; i++) {
    int out = 1000 * me + i, in = -1, left = (me + np - 1) % np;
    MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % np, 1, &in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(in, 1000 * left + i, "a message of the ring");
  }
}

/* Returns the number after a word in a thread's status. */
static int number(const char *thread, const char *word) {
  char path[300], text[256];
  int n = -1;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
  FILE *f = fopen(path, "r");
  while (f && fgets(text, sizeof text, f))
    if (!strncmp(text, word, strlen(word))) n = atoi(text + strlen(word));
  if (f) fclose(f);
  return n;
}

static void check_threads(void) {
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *e; threads && (e = readdir(threads));) {
    if (*e->d_name == '.') continue;
    SAME(number(e->d_name, "Uid:"), getuid(), "the user of a thread");
    SAME(number(e->d_name, "Gid:"), getgid(), "the group of a thread");
  }
  CHECK(threads != NULL);
  closedir(threads);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  ring();
  if (!geteuid()) {
    gid_t group = NOBODY;
    CHECK(!setgroups(1, &group) && !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
  } else {
    CHECK(!setresuid(getuid(), getuid(), getuid()));
  }
  check_threads();
  ring();
  line("all threads have one user");
  return finish();
}
