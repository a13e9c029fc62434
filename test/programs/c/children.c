/* Child processes that call MPI, made by fork, by _Fork and by the raw system call clone, of which
 * the last two call no handlers of pthread_atfork. A child has a copy of the rank's keys and
 * counters, so its messages must not be sent. It may call local functions, for example for its
 * rank. The rank itself goes on undisturbed. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TAG = 7, FORGED = 666 };

static pid_t by_fork(void) { return fork(); }
static pid_t by_bare_fork(void) { return _Fork(); }
static pid_t by_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static const struct {
  const char *name;
  pid_t (*make)(void);
} ways[] = {{"fork", by_fork}, {"_Fork", by_bare_fork}, {"clone", by_clone}};

/* The results of a child's calls. */
struct found {
  int rank, size, send, recv, barrier;
};

static void be_child(int pipe) {
  struct found f = {-1, -1, MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS};
  int value = FORGED;
  MPI_Comm_rank(MPI_COMM_WORLD, &f.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &f.size);
  f.send = MPI_Send(&value, 1, MPI_INT, (me + 1) % np, TAG, MPI_COMM_WORLD);
  f.recv = MPI_Recv(&value, 1, MPI_INT, (me + np - 1) % np, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  f.barrier = MPI_Barrier(MPI_COMM_WORLD);
  _exit(write(pipe, &f, sizeof f) != sizeof f);
}

/* Sends messages around the ring, whose content the receivers know. */
static void ring(int round) {
  for (int i = 0; i < 20; i++) {
    int out = 1000 * me + 20 * round + i, in = -1, left = (me + np - 1) % np;
    MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % np, TAG, &in, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(in, 1000 * left + 20 * round + i, "a message of the ring");
  }
}

static int status_of(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
    struct found f = {-1, -1, -1, -1, -1};
    int ends[2];
    ring(2 * i);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(!pipe(ends));
    pid_t child = ways[i].make();
    if (!child) be_child(ends[1]);
    SAME(status_of(child), 0, "the status of a child that handles errors");
    CHECK(read(ends[0], &f, sizeof f) == sizeof f);
    close(ends[0]), close(ends[1]);
    SAME(f.rank, me, "the child's rank");
    SAME(f.size, np, "the child's size");
    CHECK(f.send != MPI_SUCCESS && f.recv != MPI_SUCCESS && f.barrier != MPI_SUCCESS,
          "%s: send %d, recv %d, barrier %d", ways[i].name, f.send, f.recv, f.barrier);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (!(child = ways[i].make())) {
      MPI_Barrier(MPI_COMM_WORLD);
      _exit(0); /* the call was not refused */
    }
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s: status %#x of a child that is refused", ways[i].name,
          status);
    ring(2 * i + 1);
    line("children by %s are refused", ways[i].name);
  }
  return finish();
}
