/* What scripts/bench sweep measures in an MPI job: an operation at several sizes, or one such after
 * the other.
 *
 *   sweep SECONDS OPERATION SIZE... [OPERATION SIZE...]...
 *
 * Sizes are bytes: of a message, or of the part that each rank has for each other (or all) in a
 * collective. They come in the order given. Before a size come calls that are not counted, then
 * some SECONDS of calls that are, in blocks; the value is the median of the blocks. For each size
 * rank 0 prints
 *
 *   point OPERATION SIZE MICROSECONDS
 *
 * Collectives are timed call by call, with a barrier between two calls that is not counted, and the
 * time is the mean of all ranks; of point to point and one-sided operations it is the time of whole
 * blocks at rank 0. sweep list prints the operations. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 1, ACK = 2, SMALL = 3 };
enum { WINDOW = 64, FLOOD = 500, THREADS = 4, BULKS = 120, BULK = 4 << 20, BULKS_AT_ONCE = 4, MOST_STAMPS = 1 << 14 };
enum { LEAST_BLOCKS = 3, BLOCKS = 8, MOST_CALLS = 10000 };

static int rank, ranks, last, size;
static char *out, *in;
static int *counts, *places;
static MPI_Win win;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *why) {
  fprintf(stderr, "sweep: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
  exit(2);
}

static void *room(size_t n) {
  void *p = NULL;
  n = n ? n : 1;
  if (posix_memalign(&p, 4096, n)) die("no memory");
  memset(p, 1, n); /* what was never written is one page of zeros */
  return p;
}

/* Reductions are of floats; a size that holds no whole number of them is one of bytes. */
static MPI_Datatype number(void) { return size % 4 ? MPI_UNSIGNED_CHAR : MPI_FLOAT; }
static int numbers(void) { return size % 4 ? size : size / 4; }

/* ---- collectives: one call */

#define WORLD MPI_COMM_WORLD
#define PART out, size, MPI_CHAR
static void barrier(void) { MPI_Barrier(WORLD); }
static void bcast(void) { MPI_Bcast(PART, 0, WORLD); }
static void reduce(void) { MPI_Reduce(out, in, numbers(), number(), MPI_SUM, 0, WORLD); }
static void allreduce(void) { MPI_Allreduce(out, in, numbers(), number(), MPI_SUM, WORLD); }
static void scan(void) { MPI_Scan(out, in, numbers(), number(), MPI_SUM, WORLD); }
static void gather(void) { MPI_Gather(PART, in, size, MPI_CHAR, 0, WORLD); }
static void scatter(void) { MPI_Scatter(PART, in, size, MPI_CHAR, 0, WORLD); }
static void allgather(void) { MPI_Allgather(PART, in, size, MPI_CHAR, WORLD); }
static void alltoall(void) { MPI_Alltoall(PART, in, size, MPI_CHAR, WORLD); }
static void alltoallv(void) { MPI_Alltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, WORLD); }
static void reduce_scatter(void) {
  int each[ranks];
  for (int i = 0; i < ranks; i++) each[i] = numbers();
  MPI_Reduce_scatter(out, in, each, number(), MPI_SUM, WORLD);
}

#define WAITS(call)                  \
  do {                               \
    MPI_Request q;                   \
    call;                            \
    MPI_Wait(&q, MPI_STATUS_IGNORE); \
  } while (0)
static void ibarrier(void) { WAITS(MPI_Ibarrier(WORLD, &q)); }
static void ibcast(void) { WAITS(MPI_Ibcast(PART, 0, WORLD, &q)); }
static void ireduce(void) { WAITS(MPI_Ireduce(out, in, numbers(), number(), MPI_SUM, 0, WORLD, &q)); }
static void iallreduce(void) { WAITS(MPI_Iallreduce(out, in, numbers(), number(), MPI_SUM, WORLD, &q)); }
static void iscan(void) { WAITS(MPI_Iscan(out, in, numbers(), number(), MPI_SUM, WORLD, &q)); }
static void igather(void) { WAITS(MPI_Igather(PART, in, size, MPI_CHAR, 0, WORLD, &q)); }
static void iscatter(void) { WAITS(MPI_Iscatter(PART, in, size, MPI_CHAR, 0, WORLD, &q)); }
static void iallgather(void) { WAITS(MPI_Iallgather(PART, in, size, MPI_CHAR, WORLD, &q)); }
static void ialltoall(void) { WAITS(MPI_Ialltoall(PART, in, size, MPI_CHAR, WORLD, &q)); }
static void ialltoallv(void) {
  WAITS(MPI_Ialltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, WORLD, &q));
}
static void ireduce_scatter(void) {
  int each[ranks];
  for (int i = 0; i < ranks; i++) each[i] = numbers();
  WAITS(MPI_Ireduce_scatter(out, in, each, number(), MPI_SUM, WORLD, &q));
}

/* ---- point to point and one-sided: n calls. The pair is the first and the last rank, so that they
 * are in different clusters. They return how many operations these were. */

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

static int flood(int n) { /* from all to one, who takes what comes */
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

/* ---- a small message now and then beside bulk on the same way. All ranks are on one machine and
 * share its clock: what counts is when a message has come after it was sent. */

static double stamps[MOST_STAMPS];
static int stamped;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void send_stamp(double t) {
  memcpy(out, &t, sizeof t);
  MPI_Send(PART, last, SMALL, WORLD);
}

static void sending(int bulks) {
  static char *block;
  if (!block) block = room(BULK);
  MPI_Request q[BULKS_AT_ONCE];
  int begun = 0, ended = 0, i, done;
  for (i = 0; i < BULKS_AT_ONCE; i++) q[i] = MPI_REQUEST_NULL;
  for (; begun < bulks && begun < BULKS_AT_ONCE; begun++) MPI_Isend(block, BULK, MPI_CHAR, last, TAG, WORLD, &q[begun]);
  double start = now(), next = start + 0.02;
  while (bulks ? ended < bulks : now() < start + 0.5) {
    MPI_Testany(BULKS_AT_ONCE, q, &i, &done, MPI_STATUS_IGNORE);
    if (bulks && done && i != MPI_UNDEFINED) {
      ended++;
      if (begun < bulks) {
        MPI_Isend(block, BULK, MPI_CHAR, last, TAG, WORLD, &q[i]);
        begun++;
      }
    }
    double t = now();
    if (t >= next) {
      send_stamp(t);
      next = t + 0.0037; /* no multiple of what bulk takes */
    }
  }
  send_stamp(0);
}

static void receiving(int bulks) {
  static char *blocks[BULKS_AT_ONCE];
  MPI_Request q[BULKS_AT_ONCE + 1];
  int posted = 0, ended = 0, over = 0, i;
  for (i = 0; i < BULKS_AT_ONCE; i++) {
    if (!blocks[i]) blocks[i] = room(BULK);
    q[i] = MPI_REQUEST_NULL;
    if (posted < bulks) MPI_Irecv(blocks[i], BULK, MPI_CHAR, 0, TAG, WORLD, &q[i]), posted++;
  }
  MPI_Irecv(in, size, MPI_CHAR, 0, SMALL, WORLD, &q[BULKS_AT_ONCE]);
  while (!over || ended < bulks) {
    MPI_Waitany(BULKS_AT_ONCE + 1, q, &i, MPI_STATUS_IGNORE);
    if (i == BULKS_AT_ONCE) {
      double t = now(), sent;
      memcpy(&sent, in, sizeof sent);
      if (sent == 0) over = 1;
      else {
        if (stamped < MOST_STAMPS) stamps[stamped++] = t - sent;
        MPI_Irecv(in, size, MPI_CHAR, 0, SMALL, WORLD, &q[BULKS_AT_ONCE]);
      }
    } else {
      ended++;
      if (posted < bulks) MPI_Irecv(blocks[i], BULK, MPI_CHAR, 0, TAG, WORLD, &q[i]), posted++;
    }
  }
}

static void beside(const char *name, int bulks) {
  if (size < (int)sizeof(double)) die("a message beside others has 8 bytes at least");
  stamped = 0;
  MPI_Barrier(WORLD);
  if (rank == 0) sending(bulks);
  if (rank == last) receiving(bulks);
  double v[2] = {0, 0};
  if (rank == last && stamped) {
    qsort(stamps, (size_t)stamped, sizeof *stamps, ascending);
    v[0] = stamps[stamped / 2], v[1] = stamps[stamped * 9 / 10];
    MPI_Send(v, 2, MPI_DOUBLE, 0, ACK, WORLD);
  } else if (rank == last) die("no small message came beside the others");
  if (rank == 0) {
    MPI_Recv(v, 2, MPI_DOUBLE, last, ACK, WORLD, MPI_STATUS_IGNORE);
    printf("point %s %d %.3f\npoint %s.p90 %d %.3f\n", name, size, v[0] * 1e6, name, size, v[1] * 1e6);
  }
}

/* ---- what there is */

static const struct {
  const char *name;
  void (*one)(void); /* a collective */
  int (*calls)(int); /* others */
  int parts;         /* of the buffers: 1, or 0: one for each rank */
  int window;        /* it is about memory of the last rank */
  int bulks;         /* of small messages beside others: -1 none, but measured so */
} all[] = {
    {.name = "latency", .calls = latency, .parts = 1},
    {.name = "bw", .calls = bw, .parts = 1},
    {.name = "bibw", .calls = bibw, .parts = 1},
    {.name = "rate", .calls = rate, .parts = 1},
    {.name = "flood", .calls = flood, .parts = 1},
    {.name = "threads", .calls = threads, .parts = THREADS},
    {.name = "alone", .parts = 1, .bulks = -1},
    {.name = "beside", .parts = 1, .bulks = BULKS},
    {.name = "put", .calls = put_flush, .parts = 1, .window = 1},
    {.name = "get", .calls = get_flush, .parts = 1, .window = 1},
    {.name = "accumulate", .calls = accumulate, .parts = 1, .window = 1},
    {.name = "lock", .calls = lock_put, .parts = 1, .window = 1},
    {.name = "fence", .calls = fence_put, .parts = 1, .window = 1},
    {.name = "barrier", .one = barrier, .parts = 1},
    {.name = "bcast", .one = bcast, .parts = 1},
    {.name = "reduce", .one = reduce, .parts = 1},
    {.name = "allreduce", .one = allreduce, .parts = 1},
    {.name = "scan", .one = scan, .parts = 1},
    {.name = "gather", .one = gather},
    {.name = "scatter", .one = scatter},
    {.name = "allgather", .one = allgather},
    {.name = "alltoall", .one = alltoall},
    {.name = "alltoallv", .one = alltoallv},
    {.name = "reduce_scatter", .one = reduce_scatter},
    {.name = "ibarrier", .one = ibarrier, .parts = 1},
    {.name = "ibcast", .one = ibcast, .parts = 1},
    {.name = "ireduce", .one = ireduce, .parts = 1},
    {.name = "iallreduce", .one = iallreduce, .parts = 1},
    {.name = "iscan", .one = iscan, .parts = 1},
    {.name = "igather", .one = igather},
    {.name = "iscatter", .one = iscatter},
    {.name = "iallgather", .one = iallgather},
    {.name = "ialltoall", .one = ialltoall},
    {.name = "ialltoallv", .one = ialltoallv},
    {.name = "ireduce_scatter", .one = ireduce_scatter},
};
enum { ALL = sizeof all / sizeof *all };

/* Seconds of an operation, at rank 0. */
static double block(int which, int n) {
  double sum = 0, start = now();
  int operations = n;
  if (all[which].one) {
    for (int i = 0; i < n; i++) {
      double t = now();
      all[which].one();
      sum += now() - t;
      MPI_Barrier(WORLD);
    }
    double mine = sum / ranks;
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, WORLD);
  } else {
    operations = all[which].calls(n);
    sum = now() - start;
    MPI_Barrier(WORLD);
  }
  return sum / operations;
}

static void measure(int which, double seconds) {
  double t, v[BLOCKS];
  int plan[2] = {0, 0}; /* calls in a block, blocks */
  /* One call to touch everything, then some for what adapts itself: a share of the time. */
  block(which, 1);
  double start = now();
  block(which, 1);
  t = now() - start;
  plan[0] = (int)(seconds / BLOCKS / t);
  plan[0] = plan[0] < 1 ? 1 : plan[0] > MOST_CALLS ? MOST_CALLS : plan[0];
  MPI_Bcast(plan, 2, MPI_INT, 0, WORLD);
  start = now();
  block(which, plan[0]);
  if (plan[0] > 1) { /* now that it is warm */
    t = (now() - start) / plan[0];
    plan[0] = (int)(seconds / BLOCKS / t);
    plan[0] = plan[0] < 1 ? 1 : plan[0] > MOST_CALLS ? MOST_CALLS : plan[0];
  }
  plan[1] = (int)(seconds / (t * plan[0])) + 1;
  plan[1] = plan[1] < LEAST_BLOCKS ? LEAST_BLOCKS : plan[1] > BLOCKS ? BLOCKS : plan[1];
  MPI_Bcast(plan, 2, MPI_INT, 0, WORLD);
  for (int i = 0; i < plan[1]; i++) v[i] = block(which, plan[0]);
  qsort(v, (size_t)plan[1], sizeof *v, ascending);
  if (rank == 0) printf("point %s %d %.3f\n", all[which].name, size, (v[(plan[1] - 1) / 2] + v[plan[1] / 2]) / 2 * 1e6);
}

static int find(const char *name) {
  for (int i = 0; i < ALL; i++)
    if (!strcmp(all[i].name, name)) return i;
  return -1;
}

/* The memory of other ranks that an operation is about, if it is. */
static void open_window(int which, size_t n) {
  static char *memory;
  if (!all[which].window) return;
  if (!memory) memory = room(n);
  MPI_Win_create(memory, (MPI_Aint)n, 1, MPI_INFO_NULL, WORLD, &win);
}

static void close_window(int which) {
  if (all[which].window) MPI_Win_free(&win);
}

int main(int argc, char **argv) {
  int which = -1, got, many = 0;
  if (argc == 2 && !strcmp(argv[1], "list")) {
    for (int i = 0; i < ALL; i++) printf("%s\n", all[i].name);
    return 0;
  }
  for (int i = 2; i < argc; i++) many |= !strcmp(argv[i], "threads");
  MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &got);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  last = ranks - 1;
  if (ranks < 2) die("want two ranks at least");
  if (many && got < MPI_THREAD_MULTIPLE) die("this MPI has no threads");
  double seconds = argc > 1 ? atof(argv[1]) : 0;
  size_t most = 8;
  for (int i = 2; i < argc; i++) {
    char *end;
    long n = strtol(argv[i], &end, 10);
    if (*end) which = find(argv[i]);
    if (which < 0 || n < 0 || n > 1 << 30) die("want sweep SECONDS OPERATION SIZE... [OPERATION SIZE...]..., or list");
    size_t need = (size_t)n * (size_t)(all[which].parts ? all[which].parts : ranks);
    most = need > most ? need : most;
  }
  if (which < 0 || seconds <= 0) die("want sweep SECONDS OPERATION SIZE..., or sweep list");
  out = room(most), in = room(most);
  counts = room(sizeof(int) * (size_t)ranks), places = room(sizeof(int) * (size_t)ranks);
  which = -1;
  for (int i = 2; i < argc; i++) {
    int next = find(argv[i]);
    if (next >= 0) {
      if (which >= 0) close_window(which);
      which = next;
      open_window(which, most);
      continue;
    }
    size = atoi(argv[i]);
    for (int k = 0; k < ranks; k++) counts[k] = size, places[k] = k * size;
    if (all[which].bulks) beside(all[which].name, all[which].bulks < 0 ? 0 : all[which].bulks);
    else measure(which, seconds);
    fflush(stdout);
  }
  close_window(which);
  MPI_Finalize();
  return 0;
}
