/* Threads: `threads LEVEL` with funneled, serialized or multiple, or `threads duplicates` (multiple
 * too). With multiple, several threads of every rank send, receive, probe and do collectives at
 * once, each on a communicator of its own and all on one with a tag each. If the library grants
 * less than requested the program uses the granted level and prints only whether it succeeded.
 * Compiled with -DPOLLED it waits as MMPI does. */
#include "check.h"
#include <pthread.h>
#ifdef POLLED
#include "polled.h"
#endif

enum { THREADS = 3, ROUNDS = 60 };
static MPI_Comm own[THREADS];
static long sums[THREADS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void work(int t, int round, MPI_Comm comm, int tag) {
  int n = round % 10 == 3 ? 30000 : 1 + round * 7, right = (me + 1) % np, left = (me + np - 1) % np;
  int *out = malloc(n * sizeof *out), *in = malloc((n + 1) * sizeof *in), x = me + t + round, sum = -1;
  MPI_Request r;
  MPI_Status st;
  fill(out, n * sizeof *out, me * 1000 + t * 100 + round);
  MPI_Isend(out, n, MPI_INT, right, tag, comm, &r);
  if (round % 3 == 0) {
    int probed;
    MPI_Probe(left, tag, comm, &st);
    MPI_Get_count(&st, MPI_INT, &probed);
    SAME(probed, n, "probed count");
  }
  if (round % 3 == 1) {
    MPI_Message m;
    MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &m, &st);
    MPI_Mrecv(in, n, MPI_INT, &m, &st);
  } else MPI_Recv(in, n, MPI_INT, round % 2 ? MPI_ANY_SOURCE : left, tag, comm, &st);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (!filled(in, n * sizeof *in, left * 1000 + t * 100 + round))
    failed(__FILE__, __LINE__, "thread %d round %d: wrong data", t, round);
  MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, own[t]);
  SAME(sum, np * (np - 1) / 2 + np * (t + round), "sum of a thread");
  sums[t] += sum + in[0] % 1000;
  free(out), free(in);
}

/* A request handle that one thread has completed is given to another thread at once: each status
 * must still name its own sender. Messages go around the processes of a host, and so of one
 * cluster, so that many complete in a short time. */
static int right_here, left_here;

static void neighbours(void) {
  MPI_Comm host;
  int n, i;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &n);
  MPI_Comm_rank(host, &i);
  int *ranks = malloc(n * sizeof *ranks);
  MPI_Allgather(&me, 1, MPI_INT, ranks, 1, MPI_INT, host);
  right_here = ranks[(i + 1) % n], left_here = ranks[(i + n - 1) % n];
  free(ranks);
  MPI_Comm_free(&host);
}

static void sources(int t) {
  for (int round = 0; round < 40 * ROUNDS; round++) {
    int in = -1, flag = 0, some, indices[2], over = 0;
    MPI_Request r[2];
    MPI_Status st[2], now[2];
    MPI_Irecv(&in, 1, MPI_INT, left_here, 200 + t, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(&round, 1, MPI_INT, right_here, 200 + t, MPI_COMM_WORLD, &r[1]);
    switch (round % 5) {
    case 0: MPI_Wait(&r[1], &st[1]), MPI_Wait(&r[0], &st[0]); break;
    case 1: MPI_Waitall(2, r, st); break;
    case 2:
      while (!flag) MPI_Test(&r[0], &flag, &st[0]);
      MPI_Wait(&r[1], &st[1]);
      break;
    case 3:
      while (!flag) MPI_Testall(2, r, &flag, st);
      break;
    case 4:
      for (; over < 2; over += some) {
        MPI_Waitsome(2, r, &some, indices, now);
        for (int i = 0; i < some; i++) st[indices[i]] = now[i];
      }
    }
    SAME(st[0].MPI_SOURCE, left_here, "source");
    SAME(in, round, "what came");
  }
}

/* Does the same with communicators: one thread frees those of all processes, and the others get the
 * handles for their own. */
static volatile int made;
static void communicators(int t) {
  for (int i = 0; t == 0 && i < ROUNDS / 2; i++) {
    MPI_Comm all;
    MPI_Comm_dup(own[0], &all);
    MPI_Comm_free(&all);
  }
  made += t == 0;
  while (!made) {
    MPI_Comm mine;
    int size, rank;
    MPI_Comm_dup(MPI_COMM_SELF, &mine);
    MPI_Comm_size(mine, &size);
    MPI_Comm_rank(mine, &rank);
    SAME(size, 1, "size of a copy of MPI_COMM_SELF");
    SAME(rank, 0, "rank there");
    MPI_Comm_free(&mine);
  }
}

/* Runs collectives that wait for a duplication, which any thread may complete: that thread starts
 * them, while their own thread waits for them. Natively Open MPI 4.1 mixes them up, hangs or
 * aborts. */
static void *duplicates(void *arg) {
  int t = (int)(long)arg;
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Comm copy;
    MPI_Request r[4];
    int sum = -1, root = me == 0 ? round : -1;
    MPI_Comm_idup(own[t], &copy, &r[0]);
    MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, own[t], &r[1]);
    MPI_Ibcast(&root, 1, MPI_INT, 0, own[t], &r[2]);
    MPI_Ibarrier(own[t], &r[3]);
    for (int i = 3; i >= 0; i--) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    SAME(sum, np * (np - 1) / 2, "sum beside a duplication");
    SAME(root, round, "broadcast beside a duplication");
    MPI_Comm_free(&copy);
  }
  return NULL;
}

static pthread_barrier_t all_threads;

static void *multiple(void *arg) {
  int t = (int)(long)arg;
  for (int round = 0; round < ROUNDS; round++) {
    work(t, round, own[t], 1);
    work(t, round, MPI_COMM_WORLD, 100 + t);
  }
  sources(t);
  /* a thread that makes communicators continuously would leave the others little time */
  pthread_barrier_wait(&all_threads);
  communicators(t);
  return NULL;
}

/* Each thread waits for its number; the order is the same at every rank. */
static int ticket;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *serialized(void *arg) {
  int t = (int)(long)arg;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_mutex_lock(&turn);
    while (ticket % THREADS != t) pthread_cond_wait(&changed, &turn);
    work(t, round, round % 2 ? own[t] : MPI_COMM_WORLD, 100 + t);
    ticket++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&turn);
  }
  return NULL;
}

static volatile long computed;
static void *compute(void *arg) {
  for (long i = 0; i < 3000000; i++) computed += i % 3;
  return arg;
}

int main(int argc, char **argv) {
  const char *level = argc > 1 ? argv[1] : "funneled";
  int duplicating = !strcmp(level, "duplicates"),
      want = duplicating || !strcmp(level, "multiple") ? MPI_THREAD_MULTIPLE
             : !strcmp(level, "serialized")            ? MPI_THREAD_SERIALIZED
                                                       : MPI_THREAD_FUNNELED,
      got, asked, main_thread = 0;
  MPI_Init_thread(&argc, &argv, want, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  MPI_Query_thread(&asked);
  SAME(asked, got, "Query_thread");
  MPI_Is_thread_main(&main_thread);
  SAME(main_thread, 1, "Is_thread_main");
  int lowest;
  MPI_Allreduce(&got, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest > want) lowest = want;
  neighbours();
  pthread_t threads[THREADS];
  pthread_barrier_init(&all_threads, NULL, THREADS);
  for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &own[t]);
  if (lowest >= MPI_THREAD_SERIALIZED) {
    for (int t = 0; t < THREADS; t++)
      pthread_create(&threads[t], NULL,
                     lowest < MPI_THREAD_MULTIPLE ? serialized
                     : duplicating                ? duplicates
                                                  : multiple,
                     (void *)(long)t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  } else {
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, compute, NULL);
    for (int round = 0; round < ROUNDS; round++) work(0, round, MPI_COMM_WORLD, 100);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  }
  for (int t = 0; t < THREADS; t++) MPI_Comm_free(&own[t]);
  line("%s: %s", level, lowest == want ? "granted" : "not granted");
  return finish();
}
