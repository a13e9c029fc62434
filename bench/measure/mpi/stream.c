/* Streams of messages and blocking sends, for long links: rank i sends to rank p + i of 2p ranks.
 * All ranks are on one machine, in namespaces of their own, and share its monotonic clock. */
#include "measure.h"

#include <string.h>

enum { DATA = 1, TOTAL = 2, ACK = 3, MAX_WINDOW = 512, LEAST_WINDOWS = 4, MAX_WINDOWS = 1 << 16 };

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

/* Sends and receives this rank's streams, and returns the rate in Mbit/s at which messages came. q
 * has a window of sends, a window of receives, and last the receive of the number of messages;
 * MPI_REQUEST_NULL where nothing is under way. */
static double stream_of(int both) {
  int pairs = ranks / 2;
  int peer = rank < pairs ? rank + pairs : rank - pairs;
  int sends = both || rank < pairs, receives = both || rank >= pairs;
  int window = (int)(options.window / pairs / size);
  window = window < 4 ? 4 : window > MAX_WINDOW ? MAX_WINDOW : window;
  static MPI_Request q[2 * MAX_WINDOW + 1];
  static int done[2 * MAX_WINDOW + 1];
  static double at[MAX_WINDOWS];
  int total_at = 2 * window, windows = 0;
  long sent = 0, posted = 0, received = 0, want_sent = -1, total = -1;
  double first = 0;
  for (int i = 0; i <= 2 * window; i++) q[i] = MPI_REQUEST_NULL;
  MPI_Barrier(WORLD);
  double start = now();
  if (receives) {
    MPI_Irecv(&total, 1, MPI_LONG, peer, TOTAL, WORLD, &q[total_at]);
    for (int i = 0; i < window; i++, posted++) MPI_Irecv(in, size, MPI_CHAR, peer, DATA, WORLD, &q[window + i]);
  }
  if (sends)
    for (int i = 0; i < window; i++, sent++) MPI_Isend(out, size, MPI_CHAR, peer, DATA, WORLD, &q[i]);
  for (;;) {
    int n;
    MPI_Waitsome(2 * window + 1, q, &n, done, MPI_STATUSES_IGNORE);
    if (n == MPI_UNDEFINED) break;
    double t = now();
    for (int k = 0; k < n; k++) {
      int i = done[k];
      if (i == total_at) continue;
      if (i < window) { /* a send */
        if (want_sent < 0 && t - start > options.warm + options.seconds && sent >= LEAST_WINDOWS * window) {
          /* The receiver has posted one window more than it has received. */
          want_sent = sent + window + 1;
          MPI_Send(&want_sent, 1, MPI_LONG, peer, TOTAL, WORLD);
        }
        if (want_sent < 0 || sent < want_sent) {
          MPI_Isend(out, size, MPI_CHAR, peer, DATA, WORLD, &q[i]);
          sent++;
        }
        continue;
      }
      received++;
      if (first == 0) first = t;
      if (received % window == 0 && windows < MAX_WINDOWS) at[windows++] = t;
      if (total < 0 || posted < total) {
        MPI_Irecv(in, size, MPI_CHAR, peer, DATA, WORLD, &q[i]);
        posted++;
      }
    }
    if (total >= 0 && posted > total && received == total) /* the total came late */
      for (int i = window; i < 2 * window; i++)
        if (q[i] != MPI_REQUEST_NULL) MPI_Cancel(&q[i]);
  }
  return between(at, windows, (double)window * size, first + options.warm, first + options.warm + options.seconds);
}

static void streams(const char *name, int both) {
  if (ranks % 2 || size < 1) die("want an even number of ranks and messages of a byte at least");
  double rate = stream_of(both), *all = room(sizeof(double) * (size_t)ranks);
  MPI_Gather(&rate, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, WORLD);
  if (rank == 0) point(name, both ? all : all + ranks / 2, both ? ranks : ranks / 2);
}
static void stream(void) { streams("stream", 0); }
static void both(void) { streams("both", 1); }

static void block(void) {
  int n = size < (int)sizeof(double) ? (int)sizeof(double) : size, count = options.count;
  char ack = 0;
  if (count < 1) die("block wants -c COUNT");
  double *arrives = room(sizeof(double) * (size_t)count), *returns = room(sizeof(double) * (size_t)count);
  for (int k = 0; k < count; k++)
    if (rank == 0) {
      double t = now();
      memcpy(out, &t, sizeof t);
      MPI_Send(out, n, MPI_CHAR, last, DATA, WORLD);
      returns[k] = (now() - t) * 1e6;
      MPI_Recv(&ack, 1, MPI_CHAR, last, ACK, WORLD, MPI_STATUS_IGNORE);
    } else if (rank == last) {
      double t;
      MPI_Recv(in, n, MPI_CHAR, 0, DATA, WORLD, MPI_STATUS_IGNORE);
      memcpy(&t, in, sizeof t);
      arrives[k] = (now() - t) * 1e6;
      MPI_Send(&ack, 1, MPI_CHAR, 0, ACK, WORLD);
    }
  if (rank == last) MPI_Send(arrives, count, MPI_DOUBLE, 0, TOTAL, WORLD);
  if (rank == 0) {
    MPI_Recv(arrives, count, MPI_DOUBLE, last, TOTAL, WORLD, MPI_STATUS_IGNORE);
    point("block", arrives, count);
    point("block.returns", returns, count);
  }
}

const operation longs[] = {
    {.name = "stream", .whole = stream, .parts = 1},
    {.name = "both", .whole = both, .parts = 1},
    {.name = "block", .whole = block, .parts = 1},
    {.name = NULL},
};
