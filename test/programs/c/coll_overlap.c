/* Small collectives in progress on several communicators of the same processes at once. Each
 * communicator has another order of ranks, so another rank 0 in every cluster; every process starts
 * them communicator by communicator in an order of its own; some communicators are freed and made
 * again. Then large ones follow, the first on communicators just made: an allgather brings blocks
 * of this cluster and of others by stages that overlap. */
#include "check.h"

enum { COMMS = 5, ROUNDS = 40, KINDS = 5, NP = 64 };

typedef struct {
  int kind, root, sum, one, all[NP], out[NP];
  MPI_Request requests[2];
} operation;

static int value(int comm, int round, int from, int to) { return ((comm * 64 + round) * NP + from) * NP + to; }

/* Begins two collectives on each communicator: an allreduce and another one. */
static void begin(operation *o, MPI_Comm comm, int c, int round) {
  int rank;
  static int in[COMMS];
  MPI_Comm_rank(comm, &rank);
  o->kind = (round + c) % KINDS, o->root = (round * 3 + c) % np;
  in[c] = value(c, round, rank, 0);
  MPI_Iallreduce(&in[c], &o->sum, 1, MPI_INT, MPI_SUM, comm, &o->requests[0]);
  o->one = value(c, round, rank, np);
  for (int p = 0; p < np; p++) o->out[p] = value(c, round, rank, p), o->all[p] = -1;
  switch (o->kind) {
  case 0: MPI_Ibarrier(comm, &o->requests[1]); break;
  case 1: MPI_Ibcast(&o->one, 1, MPI_INT, o->root, comm, &o->requests[1]); break;
  case 2: MPI_Iallgather(&o->one, 1, MPI_INT, o->all, 1, MPI_INT, comm, &o->requests[1]); break;
  case 3: MPI_Ialltoall(o->out, 1, MPI_INT, o->all, 1, MPI_INT, comm, &o->requests[1]); break;
  case 4: MPI_Igather(&o->one, 1, MPI_INT, o->all, 1, MPI_INT, o->root, comm, &o->requests[1]); break;
  }
}

static uint64_t end(const operation *o, MPI_Comm comm, int c, int round) {
  int rank, sum = 0;
  MPI_Comm_rank(comm, &rank);
  for (int p = 0; p < np; p++) sum += value(c, round, p, 0);
  SAME(o->sum, sum, "allreduce");
  for (int p = 0; p < np; p++) {
    int all = o->kind == 2 || (o->kind == 4 && rank == o->root) ? value(c, round, p, np)
              : o->kind == 3                                    ? value(c, round, p, rank)
                                                                : -1;
    if (o->kind >= 2) SAME(o->all[p], all, o->kind == 2 ? "allgather" : o->kind == 3 ? "alltoall" : "gather");
  }
  if (o->kind == 1) SAME(o->one, value(c, round, o->root, np), "bcast");
  return mix(mix(o->sum) ^ (uint64_t)o->one ^ digest(0, o->all, sizeof(int) * np));
}

static void large_first(int round) {
  enum { N = 16 << 10 };
  MPI_Comm comm;
  MPI_Request requests[2];
  int rank, *in = malloc(sizeof(int) * N), *all = malloc(sizeof(int) * N * np), *sums = malloc(sizeof(int) * N);
  MPI_Comm_split(MPI_COMM_WORLD, 0, (me * 3 + round) % np, &comm);
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < N; i++) in[i] = rank * N + i + round;
  MPI_Iallgather(in, N, MPI_INT, all, N, MPI_INT, comm, &requests[0]);
  MPI_Iallreduce(in, sums, N, MPI_INT, MPI_SUM, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < N * np; i++) SAME(all[i], i + round, "large allgather");
  for (int i = 0; i < N; i++) SAME(sums[i], np * (np - 1) / 2 * N + np * (i + round), "large allreduce");
  line("large %d: %016llx", round,
       (unsigned long long)digest(digest(0, all, sizeof(int) * N * np), sums, sizeof(int) * N));
  MPI_Comm_free(&comm);
  free(in), free(all), free(sums);
}

int main(int argc, char **argv) {
  static operation o[COMMS];
  MPI_Comm comms[COMMS];
  start(&argc, &argv);
  if (np > NP - 1) return fprintf(stderr, "at most %d ranks\n", NP - 1), MPI_Abort(MPI_COMM_WORLD, 2), 2;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  for (int c = 1; c < COMMS; c++) MPI_Comm_split(MPI_COMM_WORLD, 0, c % 2 ? -me : (me + c) % np, &comms[c]);
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Request all[2 * COMMS];
    for (int k = 0; k < COMMS; k++) {
      int c = (k * (1 + me % 2) + me + round) % COMMS;
      begin(&o[c], comms[c], c, round);
    }
    for (int c = 0; c < COMMS; c++) all[2 * c] = o[c].requests[0], all[2 * c + 1] = o[c].requests[1];
    MPI_Waitall(2 * COMMS, all, MPI_STATUSES_IGNORE);
    uint64_t h = 0;
    for (int c = 0; c < COMMS; c++) h = mix(h ^ end(&o[c], comms[c], c, round));
    line("round %d: %016llx", round, (unsigned long long)h);
    if (round % 8 == 7) { /* the next communicator has another rank 0 */
      int c = 1 + round / 8 % (COMMS - 1);
      MPI_Comm_free(&comms[c]);
      MPI_Comm_split(MPI_COMM_WORLD, 0, (me * 5 + round) % (2 * np + 1), &comms[c]);
    }
  }
  for (int c = 0; c < COMMS; c++) MPI_Comm_free(&comms[c]);
  for (int round = 0; round < 12; round++) large_first(round);
  return finish();
}
