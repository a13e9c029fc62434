/* A signal handler that ends the job, as solvers and frameworks have for SIGTERM of a batch system,
 * a watchdog's timer or a crash, while the process waits in MPI or computes. MPI does not allow the
 * call of MPI_Abort there, but libraries and programs rely on it.
 *
 *   handler WAIT END MICROSECONDS
 *
 * The last rank does WAIT, and a timer's signal comes after so many microseconds. Its handler does
 * END. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { STATUS = 42, LONG = 1 << 20, TAG = 99 };
static const char *end;
static MPI_Comm silent; /* no rank sends on it */

static int is(const char *word, const char *what) { return !strcmp(word, what); }

static void handle(int number) {
  static const char said[] = "the handler runs\n";
  (void)number;
  if (write(2, said, sizeof said - 1) < 0) _exit(1);
  if (is(end, "exit")) exit(STATUS);
  if (is(end, "_exit")) _exit(STATUS);
  if (is(end, "abort")) abort();
  if (is(end, "raise")) signal(SIGTERM, SIG_DFL), raise(SIGTERM);
  if (is(end, "crash")) *(volatile int *)8 = 1;
  MPI_Abort(MPI_COMM_WORLD, STATUS);
}

static void set_timer(int microseconds) {
  struct itimerval t = {{0, 0}, {microseconds / 1000000, microseconds % 1000000 + 1}};
  setitimer(ITIMER_REAL, &t, NULL);
}

static void *receive(void *unused) {
  int x;
  MPI_Recv(&x, 1, MPI_INT, 0, TAG, silent, MPI_STATUS_IGNORE);
  return unused;
}

/* Lets several threads wait, one of which gets the signal. */
static void receive_in_threads(void) {
  enum { THREADS = 3 };
  sigset_t timer;
  pthread_t threads[THREADS];
  sigemptyset(&timer), sigaddset(&timer, SIGALRM);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, receive, NULL);
  pthread_sigmask(SIG_BLOCK, &timer, NULL);
  receive(NULL);
}

/* Waits for good. */
static void wait_in(const char *wait) {
  static char out[LONG], in[LONG];
  const int right = (me + 1) % np, left = (me + np - 1) % np, last = me == np - 1;
  int x = 0, flag;
  MPI_Request r;
  if (is(wait, "exchange")) /* all ranks */
    for (;;)
      MPI_Sendrecv(out, LONG, MPI_CHAR, right, TAG, in, LONG, MPI_CHAR, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (is(wait, "collective") && me) MPI_Barrier(MPI_COMM_WORLD);
  if (is(wait, "finalize") && last) MPI_Finalize();
  if (last && is(wait, "receive")) MPI_Recv(&x, 1, MPI_INT, 0, TAG, silent, MPI_STATUS_IGNORE);
  if (last && is(wait, "threads")) receive_in_threads();
  if (last && is(wait, "any")) { /* polls native MPI and the engine in turn */
    MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, TAG, silent, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  while (last && is(wait, "probe")) MPI_Iprobe(MPI_ANY_SOURCE, TAG, silent, &flag, MPI_STATUS_IGNORE);
  while (last && is(wait, "compute")) x++;
  if (last && is(wait, "fault")) *(volatile int *)8 = 1; /* the program's own fault */
  for (;;) sleep(1);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  end = argv[2];
  if (is(argv[1], "threads")) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
  } else {
    start(&argc, &argv);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &silent);
  signal(SIGALRM, handle);
  if (!is(end, "crash")) signal(SIGSEGV, handle);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == np - 1) set_timer(atoi(argv[3]));
  wait_in(argv[1]);
}
