/* Work with several threads of small stacks, and the end right after it: the operations in progress
 * at the end of a rank vary from run to run. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 8 };
#ifdef MPICH_NUMVERSION
enum { STACK = 512 << 10 }; /* natively its MPI_Allreduce needs more than 64 KiB */
#else
enum { STACK = 64 << 10 };
#endif
static MPI_Comm own[THREADS];

static void *work(void *arg) {
  int t = (int)(long)arg, right = (me + 1) % np, left = (me + np - 1) % np;
  for (int round = 0; round < ROUNDS; round++) {
    int x = me + round, sum = -1, n = round % 3 == 2 ? 5000 : 10;
    char *out = malloc(n), *in = malloc(n);
    MPI_Request r;
    fill(out, n, 100 * me + round);
    MPI_Isend(out, n, MPI_CHAR, right, 0, own[t], &r);
    MPI_Recv(in, n, MPI_CHAR, round % 2 ? MPI_ANY_SOURCE : left, 0, own[t], MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(filled(in, n, 100 * left + round), "message");
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, own[t]);
    SAME(sum, np * (np - 1) / 2 + np * round, "sum");
    free(out), free(in);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int got;
  pthread_t threads[THREADS];
  pthread_attr_t small;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &own[t]);
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], &small, work, (void *)(long)t);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  if (argc > 1) /* otherwise they are left to MPI_Finalize */
    for (int t = 0; t < THREADS; t++) MPI_Comm_free(&own[t]);
  line("done");
  return finish();
}
