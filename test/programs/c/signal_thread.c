/* A program with a thread of its own for signals: the other threads block them from before MPI_Init
 * on, and this thread waits for them by sigwaitinfo. Signals to the process must reach that thread,
 * and are counted. A POSIX timer makes threads of the C library.
 *
 *   signal_thread NUMBER... */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, BYTES = 1000, TICKS = 20, LAST = 65 };

static sigset_t all;
static sem_t seen, ticks;
static int last_seen;

/* Waits for signals until SIGUSR2 arrives. */
static void *take(void *nothing) {
  siginfo_t info;
  for (int got = 0; got != SIGUSR2;) {
    if ((got = sigwaitinfo(&all, &info)) < 0 && errno != EINTR) break;
    last_seen = got;
    sem_post(&seen);
  }
  return nothing;
}

static void tick(union sigval nothing) {
  (void)nothing;
  sem_post(&ticks);
}

static void communicate(void) {
  static char out[BYTES], in[BYTES];
  MPI_Sendrecv(out, BYTES, MPI_CHAR, (me + 1) % np, 0, in, BYTES, MPI_CHAR, (me + np - 1) % np, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* Sends a signal to the process, communicates and waits until the thread has received it. A signal
 * that another thread has received would leave this waiting for good. */
static void send(int number) {
  kill(getpid(), number);
  communicate();
  while (sem_wait(&seen)) continue;
  SAME(last_seen, number, "the signal");
}

int main(int argc, char **argv) {
  pthread_t thread;
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick};
  struct itimerspec often = {{0, 1000000}, {0, 1000000}};
  sigemptyset(&all);
  sigaddset(&all, SIGUSR2);
  for (int i = 1; i < argc; i++) sigaddset(&all, atoi(argv[i]));
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  start(&argc, &argv);
  sem_init(&seen, 0, 0), sem_init(&ticks, 0, 0);
  CHECK(!pthread_create(&thread, NULL, take, NULL));
  for (int i = 0; i < ROUNDS; i++)
    for (int k = 1; k < argc; k++) send(atoi(argv[k]));
  CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &often, NULL));
  for (int i = 0; i < TICKS; i++) {
    communicate();
    while (sem_wait(&ticks)) continue;
  }
  timer_delete(timer);
  send(SIGUSR2);
  CHECK(!pthread_join(thread, NULL));
  line("%d signals", argc - 1);
  return finish();
}
