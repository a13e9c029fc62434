/* What the rows of scripts/bench longhaul measure in an MPI job of 2p ranks: rank i sends to rank
 * p + i. All ranks are on one machine, in namespaces of their own, and share its monotonic clock.
 *
 *   longhaul stream BYTES WARM SECONDS WINDOW
 *     Messages of BYTES, with WINDOW bytes of them under way at once over all pairs, but at least
 *     four messages of each. WARM seconds do not count; then come SECONDS seconds that do, or as
 *     many as four windows take. Mbit/s that arrive at each receiver.
 *   longhaul both BYTES WARM SECONDS WINDOW
 *     The same in both directions at once.
 *   longhaul block BYTES COUNT
 *     Blocking sends, one after the other: us until each has arrived, us until MPI_Send returned.
 *   longhaul coll NAME BYTES COUNT
 *     barrier, bcast, allreduce, allgather, alltoall: us from a common start to the last rank's
 *     end.
 *
 * Rank 0 prints lines of a word and numbers. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 1, TOTAL = 2, ACK = 3, MAX_WINDOW = 512, LEAST_WINDOWS = 4, MAX_WINDOWS = 1 << 16 };

static int rank, ranks, pairs;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *why) {
  fprintf(stderr, "longhaul: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *room(size_t n) {
  void *p = calloc(1, n ? n : 1);
  if (!p) die("no memory");
  memset(p, 1, n ? n : 1);
  return p;
}

static void show(const char *word, const double *v, int n) {
  printf("%s", word);
  for (int i = 0; i < n; i++) printf(" %.3f", v[i]);
  printf("\n");
}

/* Mbit/s between two moments at which whole windows had arrived. Native MPI lets the messages of a
 * window go on side by side, so that they arrive all at once, after a time in which none does: at
 * other moments as much as a window would be counted that came before, or not counted that has
 * come. at[k]: when window k + 1 had arrived. */
static double between(const double *at, int n, double window_bytes, double from, double until) {
  int i = 0, j = n - 1;
  while (i < n - 2 && at[i] < from) i++;
  while (j > i + 1 && at[j] > until) j--;
  return j > i ? (j - i) * window_bytes * 8 / 1e6 / (at[j] - at[i]) : 0;
}

/* Windows of requests, sends in the first half, receives in the second; MPI_REQUEST_NULL where
 * nothing is under way. */
static double stream(int bytes, double warm, double seconds, double under_way, int both) {
  int peer = rank < pairs ? rank + pairs : rank - pairs;
  int sends = both || rank < pairs, receives = both || rank >= pairs;
  int window = (int)(under_way / pairs / bytes);
  window = window < 4 ? 4 : window > MAX_WINDOW ? MAX_WINDOW : window;
  static MPI_Request q[2 * MAX_WINDOW + 1];
  static int done[2 * MAX_WINDOW + 1];
  static double at[MAX_WINDOWS];
  int total_at = 2 * window, windows = 0;
  char *out = room((size_t)bytes), *in = room((size_t)bytes);
  long sent = 0, posted = 0, received = 0, want_sent = -1, total = -1;
  double first = 0;
  for (int i = 0; i <= 2 * window; i++) q[i] = MPI_REQUEST_NULL;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now();
  if (receives) {
    MPI_Irecv(&total, 1, MPI_LONG, peer, TOTAL, MPI_COMM_WORLD, &q[total_at]);
    for (int i = 0; i < window; i++, posted++)
      MPI_Irecv(in, bytes, MPI_CHAR, peer, DATA, MPI_COMM_WORLD, &q[window + i]);
  }
  if (sends)
    for (int i = 0; i < window; i++, sent++) MPI_Isend(out, bytes, MPI_CHAR, peer, DATA, MPI_COMM_WORLD, &q[i]);
  for (;;) {
    int n;
    MPI_Waitsome(2 * window + 1, q, &n, done, MPI_STATUSES_IGNORE);
    if (n == MPI_UNDEFINED) break;
    double t = now();
    for (int k = 0; k < n; k++) {
      int i = done[k];
      if (i == total_at) continue;
      if (i < window) { /* a send */
        if (want_sent < 0 && t - start > warm + seconds && sent >= LEAST_WINDOWS * window) {
          /* The receiver has posted one window more than it has received. */
          want_sent = sent + window + 1;
          MPI_Send(&want_sent, 1, MPI_LONG, peer, TOTAL, MPI_COMM_WORLD);
        }
        if (want_sent < 0 || sent < want_sent) {
          MPI_Isend(out, bytes, MPI_CHAR, peer, DATA, MPI_COMM_WORLD, &q[i]);
          sent++;
        }
        continue;
      }
      received++;
      if (first == 0) first = t;
      if (received % window == 0 && windows < MAX_WINDOWS) at[windows++] = t;
      if (total < 0 || posted < total) {
        MPI_Irecv(in, bytes, MPI_CHAR, peer, DATA, MPI_COMM_WORLD, &q[i]);
        posted++;
      }
    }
    if (total >= 0 && posted > total && received == total) /* the total came late */
      for (int i = window; i < 2 * window; i++)
        if (q[i] != MPI_REQUEST_NULL) MPI_Cancel(&q[i]);
  }
  free(out);
  free(in);
  return between(at, windows, (double)window * bytes, first + warm, first + warm + seconds);
}

static void streams(int bytes, double warm, double seconds, double under_way, int both) {
  double rate = stream(bytes, warm, seconds, under_way, both), *all = room(sizeof(double) * (size_t)ranks);
  MPI_Gather(&rate, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) show("rates", both ? all : all + pairs, both ? ranks : pairs);
}

static void block(int bytes, int count) {
  size_t n = (size_t)bytes < sizeof(double) ? sizeof(double) : (size_t)bytes;
  char *b = room(n), ack = 0;
  double *arrives = room(sizeof(double) * (size_t)count), *returns = room(sizeof(double) * (size_t)count);
  for (int k = 0; k < count; k++)
    if (rank == 0) {
      double t = now();
      memcpy(b, &t, sizeof t);
      MPI_Send(b, (int)n, MPI_CHAR, pairs, DATA, MPI_COMM_WORLD);
      returns[k] = (now() - t) * 1e6;
      MPI_Recv(&ack, 1, MPI_CHAR, pairs, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == pairs) {
      double t;
      MPI_Recv(b, (int)n, MPI_CHAR, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      memcpy(&t, b, sizeof t);
      arrives[k] = (now() - t) * 1e6;
      MPI_Send(&ack, 1, MPI_CHAR, 0, ACK, MPI_COMM_WORLD);
    }
  if (rank == pairs) MPI_Send(arrives, count, MPI_DOUBLE, 0, TOTAL, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Recv(arrives, count, MPI_DOUBLE, pairs, TOTAL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    show("arrives", arrives, count);
    show("returns", returns, count);
  }
}

static void collective(const char *name, int bytes, int count) {
  char *in = room((size_t)bytes * (size_t)ranks), *out = room((size_t)bytes * (size_t)ranks);
  double *took = room(sizeof(double) * (size_t)count), *last = room(sizeof(double) * (size_t)count);
  double margin = 0.01; /* the start, that far away, is known everywhere before it has come */
  for (int k = -2; k < count; k++) {
    double start = now();
    MPI_Barrier(MPI_COMM_WORLD);
    if (k < 0) margin = 3 * (now() - start) + 0.01;
    start = now() + margin;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    struct timespec t = {(time_t)start, (long)((start - (time_t)start) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    if (!strcmp(name, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
    else if (!strcmp(name, "bcast")) MPI_Bcast(in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    else if (!strcmp(name, "allreduce")) MPI_Allreduce(in, out, bytes / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(name, "allgather")) MPI_Allgather(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD);
    else if (!strcmp(name, "alltoall")) MPI_Alltoall(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD);
    else die("what collective?");
    if (k >= 0) took[k] = (now() - start) * 1e6;
  }
  MPI_Reduce(took, last, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) show("took", last, count);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pairs = ranks / 2;
  if (ranks % 2 || ranks < 2) die("an even number of ranks, please");
  const char *what = argc > 1 ? argv[1] : "";
  if (argc == 6 && (!strcmp(what, "stream") || !strcmp(what, "both")))
    streams(atoi(argv[2]), atof(argv[3]), atof(argv[4]), atof(argv[5]), what[0] == 'b');
  else if (argc == 4 && !strcmp(what, "block")) block(atoi(argv[2]), atoi(argv[3]));
  else if (argc == 5 && !strcmp(what, "coll")) collective(argv[2], atoi(argv[3]), atoi(argv[4]));
  else die("stream|both BYTES WARM SECONDS WINDOW, block BYTES COUNT, coll NAME BYTES COUNT");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
