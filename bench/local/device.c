/* The time of an 8-byte message and the rate of 16 MiB messages between two processes, with buffers
 * of the host and of a CUDA device in turn:
 *
 *   device [LIBRARY]   the driver's library, libcuda.so.1
 *
 * The process with rank 0 sends to that with rank 1, which is in another cluster. Prints for each
 * kind of the sender's and of the receiver's buffer the medians of ROUNDS rounds: the time one way
 * in us, and the rate in GB/s of messages that are sent one after the other, and of messages of
 * which several are in flight. The kinds take turns within a round. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, ROUND_TRIPS = 1000, SHORT = 8, LONG = 16 << 20, MESSAGES = 8, TAG = 1 };
enum { LATENCY, ONE, SEVERAL, QUANTITIES };

static int rank;
static char *buffers[2]; /* the host's and the device's */

static void *need(void *library, const char *name) {
  void *f = dlsym(library, name);
  if (!f) fprintf(stderr, "device: %s\n", dlerror()), MPI_Abort(MPI_COMM_WORLD, 1);
  return f;
}

static void must(int error, const char *what) {
  if (error) fprintf(stderr, "device: %s: error %d\n", what, error), MPI_Abort(MPI_COMM_WORLD, 1);
}

static char *device_memory(const char *path, size_t bytes) {
  void *library = dlopen(path, RTLD_NOW), *context;
  uintptr_t p;
  int device;
  if (!library) fprintf(stderr, "device: %s\n", dlerror()), MPI_Abort(MPI_COMM_WORLD, 1);
  must(((int (*)(unsigned))need(library, "cuInit"))(0), "cuInit");
  must(((int (*)(int *, int))need(library, "cuDeviceGet"))(&device, 0), "cuDeviceGet");
  must(((int (*)(void **, int))need(library, "cuDevicePrimaryCtxRetain"))(&context, device),
       "cuDevicePrimaryCtxRetain");
  must(((int (*)(void *))need(library, "cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
  must(((int (*)(uintptr_t *, size_t))need(library, "cuMemAlloc_v2"))(&p, bytes), "cuMemAlloc");
  return (char *)p;
}

static double latency(char *p) {
  double start = MPI_Wtime();
  for (int i = 0; i < ROUND_TRIPS; i++) {
    if (rank == 0) MPI_Send(p, SHORT, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(p, SHORT, MPI_CHAR, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(p, SHORT, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) * 1e6 / ROUND_TRIPS / 2;
}

static double rate(char *p, int in_flight) {
  MPI_Request r[MESSAGES];
  MPI_Status s[MESSAGES];
  char ack = 0;
  double start = MPI_Wtime();
  for (int i = 0; i < MESSAGES; i += in_flight) {
    for (int k = 0; k < in_flight; k++)
      if (rank == 0) MPI_Isend(p + (size_t)k * LONG, LONG, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &r[k]);
      else MPI_Irecv(p + (size_t)k * LONG, LONG, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &r[k]);
    MPI_Waitall(in_flight, r, s);
  }
  if (rank == 1) MPI_Send(&ack, 1, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
  else MPI_Recv(&ack, 1, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return (double)MESSAGES * LONG / (MPI_Wtime() - start) / 1e9;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  enum { IN_FLIGHT = 4, KINDS = 4 };
  static const char *const name[] = {"host", "device"};
  static double sample[QUANTITIES][KINDS][ROUNDS + 1];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  buffers[0] = calloc(IN_FLIGHT, LONG);
  buffers[1] = device_memory(argc > 1 ? argv[1] : "libcuda.so.1", (size_t)IN_FLIGHT * LONG);
  memset(buffers[0], 1, (size_t)IN_FLIGHT * LONG);
  for (int round = 0; rank < 2 && round <= ROUNDS; round++) /* the first round is not counted */
    for (int kind = 0; kind < KINDS; kind++) {
      char *p = buffers[rank == 0 ? kind / 2 : kind % 2];
      int at = (round + ROUNDS) % (ROUNDS + 1);
      sample[LATENCY][kind][at] = latency(p);
      sample[ONE][kind][at] = rate(p, 1);
      sample[SEVERAL][kind][at] = rate(p, IN_FLIGHT);
    }
  if (rank == 0) printf("sender  receiver  8 B, us  16 MiB, GB/s  %d in flight, GB/s\n", IN_FLIGHT);
  for (int kind = 0; rank == 0 && kind < KINDS; kind++) {
    double median[QUANTITIES];
    for (int q = 0; q < QUANTITIES; q++) {
      qsort(sample[q][kind], ROUNDS, sizeof(double), compare);
      median[q] = sample[q][kind][ROUNDS / 2];
    }
    printf("%-7s %-8s %8.2f %13.2f %21.2f\n", name[kind / 2], name[kind % 2], median[LATENCY], median[ONE],
           median[SEVERAL]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
