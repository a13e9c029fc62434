/* Point-to-point and one-sided operations. Each function makes n calls and returns how many
 * operations these were. The pair is the first and the last rank, which are in different
 * clusters. */
#include "measure.h"

#include <pthread.h>

enum { TAG = 1, ACK = 2, WINDOW = 64, FLOOD = 500, THREADS = 4 };

static MPI_Win win;

static int latency(int n) { /* of ping-pong, one way */
  for (int i = 0; i < n && (rank == 0 || rank == last); i++) {
    int other = rank ? 0 : last;
    if (rank == 0) MPI_Send(PART, other, TAG, WORLD);
    MPI_Recv(in, size, MPI_CHAR, other, TAG, WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(PART, other, TAG, WORLD);
  }
  return 2 * n;
}

/* Windows of messages to a partner, each answered by a short one. */
static int window(int n, int partner, int sends, int receives) {
  MPI_Request q[2 * WINDOW];
  char ack = 0;
  for (int i = 0; i < n && partner >= 0; i++) {
    int k = 0;
    for (int w = 0; w < WINDOW; w++) {
      if (receives) MPI_Irecv(in, size, MPI_CHAR, partner, TAG, WORLD, &q[k++]);
      if (sends) MPI_Isend(PART, partner, TAG, WORLD, &q[k++]);
    }
    MPI_Waitall(k, q, MPI_STATUSES_IGNORE);
    if (rank < partner) MPI_Recv(&ack, 1, MPI_CHAR, partner, ACK, WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(&ack, 1, MPI_CHAR, partner, ACK, WORLD);
  }
  return n * WINDOW;
}

static int of_pair(void) { return rank == 0 ? last : rank == last ? 0 : -1; }
static int bw(int n) { return window(n, of_pair(), rank == 0, rank == last); }
static int bibw(int n) { return window(n, of_pair(), 1, 1); }
static int rate(int n) { /* as many pairs as there are */
  int half = ranks / 2;
  return window(n, rank < half ? rank + half : rank < 2 * half ? rank - half : -1, rank < half, rank >= half);
}

static int flood(int n) { /* from all to one, which takes them in any order */
  for (int i = 0; i < n; i++) {
    if (rank)
      for (int k = 0; k < FLOOD; k++) MPI_Send(PART, 0, TAG, WORLD);
    else
      for (int k = 0; k < FLOOD * last; k++)
        MPI_Recv(in, size, MPI_CHAR, MPI_ANY_SOURCE, TAG, WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(WORLD);
  }
  return n * FLOOD * last;
}

static int thread_calls;
static void *thread(void *arg) {
  int tag = 10 + *(int *)arg, other = rank ? 0 : last;
  char *mine = out + (size_t) * (int *)arg * (size_t)size, *theirs = in + (size_t) * (int *)arg * (size_t)size;
  for (int i = 0; i < thread_calls; i++) {
    if (rank == 0) MPI_Send(mine, size, MPI_CHAR, other, tag, WORLD);
    MPI_Recv(theirs, size, MPI_CHAR, other, tag, WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(mine, size, MPI_CHAR, other, tag, WORLD);
  }
  return NULL;
}
static int threads(int n) { /* ping-pongs side by side */
  pthread_t t[THREADS];
  int id[THREADS];
  thread_calls = n;
  for (int i = 0; i < THREADS && (rank == 0 || rank == last); i++) {
    id[i] = i;
    if (pthread_create(&t[i], NULL, thread, &id[i])) die("no thread");
  }
  for (int i = 0; i < THREADS && (rank == 0 || rank == last); i++) pthread_join(t[i], NULL);
  return 2 * n * THREADS;
}

static int put_flush(int n) {
  if (rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win);
  for (int i = 0; i < n && rank == 0; i++) {
    MPI_Put(PART, last, 0, size, MPI_CHAR, win);
    MPI_Win_flush(last, win);
  }
  if (rank == 0) MPI_Win_unlock(last, win);
  return n;
}
static int get_flush(int n) {
  if (rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win);
  for (int i = 0; i < n && rank == 0; i++) {
    MPI_Get(in, size, MPI_CHAR, last, 0, size, MPI_CHAR, win);
    MPI_Win_flush(last, win);
  }
  if (rank == 0) MPI_Win_unlock(last, win);
  return n;
}
static int accumulate(int n) {
  if (rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win);
  for (int i = 0; i < n && rank == 0; i++) {
    MPI_Accumulate(out, numbers(), number(), last, 0, numbers(), number(), MPI_SUM, win);
    MPI_Win_flush(last, win);
  }
  if (rank == 0) MPI_Win_unlock(last, win);
  return n;
}
static int lock_put(int n) {
  for (int i = 0; i < n && rank == 0; i++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win);
    MPI_Put(PART, last, 0, size, MPI_CHAR, win);
    MPI_Win_unlock(last, win);
  }
  return n;
}
static int fence_put(int n) {
  MPI_Win_fence(0, win);
  for (int i = 0; i < n; i++) {
    if (rank == 0) MPI_Put(PART, last, 0, size, MPI_CHAR, win);
    MPI_Win_fence(0, win);
  }
  return n;
}

/* Every rank has memory in the window; one-sided operations access that of the last rank. */
void open_window(size_t bytes) {
  static char *memory;
  if (!memory) memory = room(bytes);
  MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, WORLD, &win);
}

void close_window(void) { MPI_Win_free(&win); }

const operation pairwise[] = {
    {.name = "latency", .calls = latency, .parts = 1},
    {.name = "bw", .calls = bw, .parts = 1},
    {.name = "bibw", .calls = bibw, .parts = 1},
    {.name = "rate", .calls = rate, .parts = 1},
    {.name = "flood", .calls = flood, .parts = 1},
    {.name = "threads", .calls = threads, .parts = THREADS},
    {.name = "put", .calls = put_flush, .parts = 1, .window = 1},
    {.name = "get", .calls = get_flush, .parts = 1, .window = 1},
    {.name = "accumulate", .calls = accumulate, .parts = 1, .window = 1},
    {.name = "lock", .calls = lock_put, .parts = 1, .window = 1},
    {.name = "fence", .calls = fence_put, .parts = 1, .window = 1},
    {.name = NULL},
};
