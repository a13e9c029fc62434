/* A sampling profiler: a timer interrupts communication at a high rate, and the handler, which was
 * installed without SA_ONSTACK, needs much stack.
 *
 *   sampler KIB before|after real|prof|timer MICROSECONDS ROUNDS|SECONDSs [THREADS]
 *
 * KIB is the size of the handler's frame. The handler is installed before or after MPI_Init. The
 * timer is ITIMER_REAL, ITIMER_PROF or timer_create's, and interrupts each MICROSECONDS. With
 * THREADS so many threads communicate at once. The run takes so many rounds, or seconds (600s). */
#include "check.h"
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

enum { STRIDE = 64, LONGEST = 6000 };

static size_t frame;
static int rounds, seconds, number, damaged;
static double began;
static volatile sig_atomic_t samples;

/* Uses the whole frame, like a handler that unwinds and formats. */
static void sample(int n) {
  (void)n;
  volatile unsigned char *p = alloca(frame);
  for (size_t i = 0; i < frame; i += STRIDE) p[i] = (unsigned char)(i / STRIDE);
  for (size_t i = 0; i < frame; i += STRIDE)
    if (p[i] != (unsigned char)(i / STRIDE)) damaged = 1;
  samples = 1;
}

/* Installs the handler; the functions that return an action return it as the program has set it. */
static void install(const char *timer) {
  struct sigaction act = {.sa_handler = sample, .sa_flags = SA_RESTART}, was;
  number = !strcmp(timer, "real") ? SIGALRM : !strcmp(timer, "prof") ? SIGPROF : SIGUSR1;
  SAME(sigaction(number, &act, NULL), 0, "sigaction");
  SAME(sigaction(number, NULL, &was), 0, "sigaction that asks");
  CHECK(was.sa_handler == sample, "another handler");
  SAME(was.sa_flags & (SA_ONSTACK | SA_RESTART), SA_RESTART, "flags");
}

static void set(const char *timer, timer_t made, int us) {
  struct itimerval usual = {{0, us}, {0, us}};
  struct itimerspec posix = {{0, us * 1000L}, {0, us * 1000L}};
  if (number == SIGUSR1) SAME(timer_settime(made, 0, &posix, NULL), 0, timer);
  else SAME(setitimer(number == SIGALRM ? ITIMER_REAL : ITIMER_PROF, &usual, NULL), 0, timer);
}

static void ring(MPI_Comm comm, int i) {
  static _Thread_local char out[LONGEST], in[LONGEST], late[LONGEST];
  int n = i * 37 % LONGEST + 1, to = (me + 1) % np, from = (me + np - 1) % np;
  MPI_Request r[2];
  fill(out, (size_t)n, (uint64_t)(i * np + me));
  MPI_Sendrecv(out, n, MPI_CHAR, to, 1, in, n, MPI_CHAR, from, 1, comm, MPI_STATUS_IGNORE);
  CHECK(filled(in, (size_t)n, (uint64_t)(i * np + from)), "round %d", i);
  MPI_Irecv(late, n, MPI_CHAR, from, 2, comm, &r[0]);
  MPI_Isend(out, n, MPI_CHAR, to, 2, comm, &r[1]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  CHECK(filled(late, (size_t)n, (uint64_t)(i * np + from)), "round %d, nonblocking", i);
}

static void together(int i) {
  long mine = me + i, all = 0, later = 0;
  MPI_Request r;
  MPI_Comm dup;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  SAME(all, (long)np * i + (long)np * (np - 1) / 2, "sum");
  MPI_Iallreduce(&mine, &later, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  SAME(later, np - 1 + i, "maximum");
  if (i % 50) return;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_free(&dup);
}

/* Whether all ranks end before round i: after the last round, or when one finds that the time is
 * over. */
static int ends(MPI_Comm comm, int i) {
  int late = MPI_Wtime() - began > seconds, any = 0;
  if (!seconds) return i == rounds;
  if (i % 50 == 0) MPI_Allreduce(&late, &any, 1, MPI_INT, MPI_MAX, comm);
  return any;
}

static void *communicate(void *comm) {
  for (int i = 0; !ends(*(MPI_Comm *)comm, i); i++) ring(*(MPI_Comm *)comm, i);
  return NULL;
}

int main(int argc, char **argv) {
  enum { MOST = 8 };
  int level, wanted = argc > 6 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, threads = argc > 6 ? atoi(argv[6]) : 0;
  pthread_t thread[MOST];
  MPI_Comm comm[MOST];
  timer_t made = NULL;
  if (argc < 6 || threads > MOST) return 2;
  frame = (size_t)atoi(argv[1]) << 10, rounds = atoi(argv[5]), seconds = strchr(argv[5], 's') ? rounds : 0;
  int before = !strcmp(argv[2], "before");
  if (before) install(argv[3]);
  MPI_Init_thread(&argc, &argv, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  CHECK(level >= wanted, "thread level %d", level);
  if (!before) install(argv[3]);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
  if (number == SIGUSR1) SAME(timer_create(CLOCK_MONOTONIC, &event, &made), 0, "timer_create");
  set(argv[3], made, atoi(argv[4]));
  began = MPI_Wtime();
  for (int i = 0; i < threads; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    pthread_create(&thread[i], NULL, communicate, &comm[i]);
  }
  for (int i = 0; !ends(MPI_COMM_WORLD, i); i++) {
    ring(MPI_COMM_WORLD, i);
    together(i);
  }
  for (int i = 0; i < threads; i++) {
    pthread_join(thread[i], NULL);
    MPI_Comm_free(&comm[i]);
  }
  while (!samples) clock(); /* the clock of ITIMER_PROF is coarse */
  set(argv[3], made, 0);
  CHECK(!damaged, "a sample's frame was written by others");
  line("%s %s %s", argv[1], argv[2], argv[3]);
  return finish();
}
