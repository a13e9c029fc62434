/* Signals have the same effect in a process of a job as natively: those that end a process end it,
 * in the children to which they are sent here, and handlers and SIG_IGN from before MPI_Init stay
 * in effect. A write into a pipe without a reader raises SIGPIPE. */
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static void count(int number) { came = came * 100 + number; }

/* Closes the reading end of a pipe, and writes to the other. */
static int write_in_vain(void) {
  int ends[2];
  if (pipe(ends)) return -1;
  close(ends[0]);
  ssize_t n = write(ends[1], "x", 1);
  int error = errno;
  close(ends[1]);
  return n < 0 ? error : 0;
}

/* Returns the signal by which a child ends that gets a signal, or 0 if it ends by itself. */
static int ends_by(int number) {
  int status = -1;
  pid_t child = fork();
  if (!child) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (number == SIGPIPE) write_in_vain();
    else raise(number);
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv) {
  static const int ending[] = {SIGINT,  SIGQUIT, SIGILL, SIGTRAP,   SIGUSR2, SIGPIPE,
                               SIGALRM, SIGTERM, SIGSYS, SIGSTKFLT, SIGXCPU, SIGPWR};
  const char *before = argc > 1 ? argv[1] : "default";
  if (!strcmp(before, "handler")) signal(SIGPIPE, count), signal(SIGURG, count);
  if (!strcmp(before, "ignored")) signal(SIGPIPE, SIG_IGN);
  start(&argc, &argv);
  if (!strcmp(before, "default"))
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) line("%d: %d", ending[i], ends_by(ending[i]));
  else line("write: %d", write_in_vain() == EPIPE);
  raise(SIGURG);
  line("came: %d", (int)came);
  return finish();
}
