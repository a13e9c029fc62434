/* A program that closes descriptors which are not its own, and then opens files of its own:
 *
 *   twice    closes each of its files twice, the second time after MPI may have made descriptors:
 *            the job goes on
 *   sockets  closes all sockets from MPI_Init on that have numbers no program gets, as closefrom(3)
 *            would: the job ends with an error that says so
 *   timers   the same with timers
 *
 * The content of its files, in the directory that the second argument names, must stay unchanged.
 */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES = 40, HIGH = 256, TOP = 8192, ROUNDS = 200 };

static void ring(void) {
  for (int i = 0; i < ROUNDS; i++) {
    int out = 1000 * me + i, in = -1, left = (me + np - 1) % np;
    MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % np, 0, &in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(in, 1000 * left + i, "a message of the ring");
  }
}

/* Lets every rank wait for long enough to sleep, for which MPI may need a descriptor. */
static void long_wait(void) {
  for (int rank = 0; rank < np; rank++) {
    if (rank == me) usleep(100000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Closes the descriptors from HIGH on that have this name in /proc/self/fd. */
static int close_high(const char *what) {
  int n = 0;
  for (int fd = HIGH; fd < TOP; fd++) {
    char path[64], name[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(path, name, sizeof name - 1);
    if (len < 0) continue;
    name[len] = 0;
    if (strstr(name, what) && !close(fd)) n++;
  }
  return n;
}

/* Counts the descriptors from one number to another whose names contain `what`. */
static int count(const char *what, int from, int to) {
  int n = 0;
  for (int fd = from; fd < to; fd++) {
    char path[64], name[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(path, name, sizeof name - 1);
    name[len < 0 ? 0 : len] = 0;
    n += !!strstr(name, what);
  }
  return n;
}

static int open_file(const char *dir, int i) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/rank%d.%d", dir, me, i);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && fd < HIGH, "a file has the descriptor %d", fd);
  CHECK(write(fd, "mine\n", 5) == 5);
  return fd;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  const char *how = argc > 1 ? argv[1] : "twice", *dir = argc > 2 ? argv[2] : "/tmp";
  int files[FILES];
  CHECK(count("eventpoll", HIGH, TOP) == 1, "the poller of Go's runtime has a low number");
  CHECK(count("/cgroup/", 3, HIGH) == 0, "a file of Go's runtime has a low number");
  if (strcmp(how, "twice")) {
    ring();
    if (me == 0) CHECK(close_high(!strcmp(how, "sockets") ? "socket:" : "timerfd") > 0, "nothing was closed");
  } else {
    for (int round = 0; round < 3; round++) {
      for (int i = 0; i < FILES; i++) files[i] = open_file(dir, i);
      for (int i = 0; i < FILES; i++) close(files[i]);
      long_wait();
      for (int i = 0; i < FILES; i++) CHECK(close(files[i]), "%d is open again", files[i]);
      ring();
    }
  }
  for (int i = 0; i < FILES; i++) files[i] = open_file(dir, i);
  ring();
  if (!strcmp(how, "timers")) /* the progress thread may notice it first, but notices it in any case */
    for (;;) ring();
  line("%d files", FILES);
  return finish();
}
