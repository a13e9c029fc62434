/* Signals that the program has blocked before MPI_Init stay blocked in all threads, and pending: no
 * thread of MPI's receives them. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int blocked[] = {SIGCHLD, SIGPROF, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGIO, SIGURG, SIGPIPE, 0, 0};
enum { BLOCKED = sizeof blocked / sizeof *blocked };

static sigset_t mask;
static volatile sig_atomic_t came;

static void handler(int n) { came = n; }

static void same_mask(const char *when) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  for (int n = 1; n < NSIG; n++)
    if (sigismember(&mask, n) >= 0 && sigismember(&now, n) != sigismember(&mask, n))
      CHECK(0, "%s signal %d is %s", when, n, sigismember(&mask, n) ? "open" : "blocked");
}

static void communicate(void) {
  static char out[5000], in[5000];
  for (int i = 0; i < 200; i++)
    MPI_Sendrecv(out, sizeof out, MPI_CHAR, (me + 1) % np, 0, in, sizeof in, MPI_CHAR, (me + np - 1) % np, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Checks that a signal sent to the process is pending when the program asks for it afterwards. */
static void wait_for(const char *when) {
  pid_t child = fork();
  if (!child) _exit(0);
  waitpid(child, NULL, 0);
  for (int i = 0; i < BLOCKED; i++)
    if (blocked[i] != SIGCHLD) kill(getpid(), blocked[i]);
  if (np > 1) communicate();
  for (int i = 0; i < BLOCKED; i++) {
    sigset_t one;
    sigemptyset(&one), sigaddset(&one, blocked[i]);
    CHECK(sigtimedwait(&one, NULL, &(struct timespec){0, 0}) == blocked[i], "%s signal %d is lost", when, blocked[i]);
  }
}

static void *thread(void *unused) {
  communicate();
  same_mask("in a thread");
  wait_for("in a thread");
  return unused;
}

int main(int argc, char **argv) {
  pthread_t other;
  int level;
  sigset_t set;
  sigemptyset(&set);
  blocked[BLOCKED - 2] = SIGRTMIN, blocked[BLOCKED - 1] = SIGRTMAX;
  for (int i = 0; i < BLOCKED; i++) {
    sigaddset(&set, blocked[i]);
    if (i % 2) signal(blocked[i], handler); /* the others would end the process, or be ignored */
  }
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  same_mask("after MPI_Init");
  communicate();
  wait_for("after MPI_Init");
  same_mask("after messages");
  pthread_create(&other, NULL, thread, NULL);
  pthread_join(other, NULL);
  CHECK(!came, "signal %d came", (int)came);
  return finish();
}
