/* Every mode of sending, blocking and nonblocking, from 0 bytes to 4 MiB (or to the number of bytes
 * given as argument), the receive posted before the send and after it.
 */
#include "check.h"

enum { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };
static const char *const mode_name[] = {"standard", "synchronous", "buffered", "ready"};

static void send_blocking(int mode, const void *p, int n, int to, int tag) {
  switch (mode) {
  case STANDARD: MPI_Send(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
  case SYNCHRONOUS: MPI_Ssend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
  case BUFFERED: MPI_Bsend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
  case READY: MPI_Rsend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
  }
}

static void send_start(int mode, const void *p, int n, int to, int tag, MPI_Request *request) {
  switch (mode) {
  case STANDARD: MPI_Isend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
  case SYNCHRONOUS: MPI_Issend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
  case BUFFERED: MPI_Ibsend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
  case READY: MPI_Irsend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request); break;
  }
}

static void received(const char *what, int mode, const unsigned char *p, int n, int from, uint64_t seed,
                     const MPI_Status *status) {
  int count = -1;
  MPI_Get_count((MPI_Status *)status, MPI_BYTE, &count);
  if (count != n || status->MPI_SOURCE != from || !filled(p, n, seed) || p[n] != 0x5a)
    failed(__FILE__, __LINE__, "%s %s of %d bytes from %d: count %d source %d %s", what, mode_name[mode], n, from,
           count, status->MPI_SOURCE, p[n] != 0x5a ? "wrote past the end" : "");
}

int main(int argc, char **argv) {
  static const long sizes[] = {0,     1,     3,      8,       100,           1000,     4096,     65535,
                               65536, 65537, 200000, 1 << 20, (4 << 20) - 5, 16 << 20, 64 << 20, 256 << 20};
  start(&argc, &argv);
  long limit = argc > 1 ? atol(argv[1]) : 4 << 20;
  for (unsigned s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= limit; s++) {
    int n = (int)sizes[s];
    unsigned char *out = malloc(n + 1), *in = malloc(n + 2);
    void *buffer = malloc(n + 2 * MPI_BSEND_OVERHEAD);
    int detached;
    uint64_t sum = 0;
    MPI_Buffer_attach(buffer, n + 2 * MPI_BSEND_OVERHEAD);
    for (int shift = 1; shift<np; shift = n> 100000 ? shift + np / 2 + 1 : shift + 1) {
      int to = (me + shift) % np, from = (me + np - shift) % np;
      for (int mode = 0; mode < MODES; mode++) {
        uint64_t seed = (uint64_t)s << 32 | shift << 8 | mode;
        MPI_Status status;
        MPI_Request r[2];
        char token = 0;
        if (n > (1 << 20) && mode != (shift + (int)s) % MODES && mode != STANDARD) continue;

        /* The receive is posted first, as ready mode requires. */
        fill(out, n, seed + ((uint64_t)me << 48));
        in[n] = 0x5a;
        MPI_Irecv(in, n, MPI_BYTE, from, 10 + mode, MPI_COMM_WORLD, &r[0]);
        MPI_Sendrecv(&token, 1, MPI_CHAR, from, 1, &token, 1, MPI_CHAR, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        send_blocking(mode, out, n, to, 10 + mode);
        MPI_Wait(&r[0], &status);
        received("posted", mode, in, n, from, seed + ((uint64_t)from << 48), &status);
        sum = digest(sum, in, n);
        if (mode == BUFFERED) { /* waits until the buffer is free */
          MPI_Buffer_detach(&buffer, &detached);
          MPI_Buffer_attach(buffer, n + 2 * MPI_BSEND_OVERHEAD);
        }

        /* Nonblocking; except in ready mode the message is in flight before the receive is
         * posted. */
        seed += 1 << 20;
        fill(out, n, seed + ((uint64_t)me << 48));
        if (mode == READY) {
          MPI_Irecv(in, n, MPI_BYTE, from, 20 + mode, MPI_COMM_WORLD, &r[0]);
          MPI_Sendrecv(&token, 1, MPI_CHAR, from, 1, &token, 1, MPI_CHAR, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          send_start(mode, out, n, to, 20 + mode, &r[1]);
          MPI_Wait(&r[0], &status);
        } else {
          send_start(mode, out, n, to, 20 + mode, &r[1]);
          MPI_Sendrecv(&token, 1, MPI_CHAR, to, 1, &token, 1, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Recv(in, n, MPI_BYTE, from, 20 + mode, MPI_COMM_WORLD, &status);
        }
        received("unexpected", mode, in, n, from, seed + ((uint64_t)from << 48), &status);
        sum = digest(sum, in, n);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        if (mode == BUFFERED) {
          MPI_Buffer_detach(&buffer, &detached);
          MPI_Buffer_attach(buffer, n + 2 * MPI_BSEND_OVERHEAD);
        }
      }

      /* Combined forms. */
      MPI_Status status;
      uint64_t seed = (uint64_t)s << 32 | shift << 8 | 99;
      fill(out, n, seed + ((uint64_t)me << 48));
      MPI_Sendrecv(out, n, MPI_BYTE, to, 30, in, n, MPI_BYTE, from, 30, MPI_COMM_WORLD, &status);
      received("sendrecv", 0, in, n, from, seed + ((uint64_t)from << 48), &status);
      MPI_Sendrecv_replace(out, n, MPI_BYTE, to, 31, from, 31, MPI_COMM_WORLD, &status);
      int count;
      MPI_Get_count(&status, MPI_BYTE, &count);
      CHECK(count == n && status.MPI_SOURCE == from && status.MPI_TAG == 31 &&
                filled(out, n, seed + ((uint64_t)from << 48)),
            "sendrecv_replace of %d bytes", n);
      sum = digest(sum, in, n);
    }
    MPI_Buffer_detach(&buffer, &detached);
    line("%d bytes: %016llx", n, (unsigned long long)sum);
    free(buffer);
    free(out);
    free(in);
  }

  /* Ping-pong of blocking calls between all pairs, and a series of small messages that is faster
   * than its receiver. */
  for (int a = 0; a < np; a++)
    for (int b = a + 1; b < np; b++) {
      long v = 0;
      for (int i = 0; i < 50; i++) {
        if (me == a) {
          MPI_Send(&v, 1, MPI_LONG, b, 5, MPI_COMM_WORLD);
          MPI_Recv(&v, 1, MPI_LONG, b, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (me == b) {
          MPI_Recv(&v, 1, MPI_LONG, a, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          v = 3 * v + a + b;
          MPI_Send(&v, 1, MPI_LONG, a, 6, MPI_COMM_WORLD);
        }
      }
      if (me == a) line("ping-pong with %d: %lx", b, v);
      if (me == a)
        for (int i = 0; i < 3000; i++) MPI_Send(&i, 1, MPI_INT, b, 7, MPI_COMM_WORLD);
      if (me == b)
        for (int i = 0; i < 3000; i++) {
          int x = -1;
          MPI_Recv(&x, 1, MPI_INT, a, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          if (x != i) {
            failed(__FILE__, __LINE__, "train: got %d, want %d", x, i);
            break;
          }
        }
    }
  return finish();
}
