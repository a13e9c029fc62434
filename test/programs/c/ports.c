/* Two jobs, each of which runs this program, are connected, exchange messages of all sizes and
 * collectives, are parted, and connected again:
 *
 *   ports accept|connect PLACE MESSAGES ROUNDS
 *   ports both NOWHERE MESSAGES ROUNDS        one job, whose halves do it
 *
 * PLACE is a file for the port's name, or name:WORD, under which it is published (port.h). */
#include "check.h"
#include "port.h"

enum { BATCH = 32, LARGEST = 3 << 20 };
static char *out[BATCH], *in[BATCH];

static int size_of(uint64_t m) {
  uint64_t x = mix(m);
  switch (x % 16) {
  case 0: return 0;
  case 1: return (int)((x >> 8) % (256 << 10));
  case 2: return (int)((x >> 12) % (x >> 8 & 15 ? 70000 : LARGEST));
  default: return (int)((x >> 8) % 3000);
  }
}

/* Sends message m from a process of this side to one of the other, and another one back. */
static void messages(MPI_Comm inter, int accepts, int n) {
  int rank, size, others;
  MPI_Comm_rank(inter, &rank), MPI_Comm_size(inter, &size), MPI_Comm_remote_size(inter, &others);
  int accepting = accepts ? size : others, connecting = accepts ? others : size;
  for (int first = 0; first < n; first += BATCH) {
    MPI_Request requests[2 * BATCH];
    int k = 0, mine[BATCH], count = 0, last = first + BATCH < n ? first + BATCH : n;
    for (int m = first; m < last; m++) {
      int a = m % accepting, c = (m / accepting + m) % connecting;
      if (rank != (accepts ? a : c)) continue;
      int peer = accepts ? c : a, to = size_of(2 * (uint64_t)m + !accepts);
      fill(out[count], (size_t)to, 2 * (uint64_t)m + !accepts);
      MPI_Irecv(in[count], LARGEST, MPI_BYTE, m % 7 ? peer : MPI_ANY_SOURCE, m, inter, &requests[k++]);
      if (m % 5) MPI_Isend(out[count], to, MPI_BYTE, peer, m, inter, &requests[k++]);
      else MPI_Issend(out[count], to, MPI_BYTE, peer, m, inter, &requests[k++]);
      mine[count++] = m;
    }
    MPI_Status status[2 * BATCH];
    MPI_Waitall(k, requests, status);
    for (int i = 0; i < count; i++) {
      int m = mine[i], want = size_of(2 * (uint64_t)m + accepts), got;
      MPI_Get_count(&status[2 * i], MPI_BYTE, &got);
      SAME(got, want, "bytes of a message");
      SAME(status[2 * i].MPI_SOURCE, accepts ? (m / accepting + m) % connecting : m % accepting, "its source");
      CHECK(filled(in[i], (size_t)want, 2 * (uint64_t)m + accepts), "message %d", m);
    }
  }
}

/* A receive from any process of the merged communicator `all` is posted before one from the second
 * process of this side, whose rank there is `first` + 1. So it takes that process's first
 * message. */
static void in_order(MPI_Comm all, int rank, int size, int first) {
  int one = 1, two = 2, got[2] = {0, 0};
  MPI_Request r[2];
  if (size < 2 || rank > 1) return;
  if (rank == 1) {
    MPI_Recv(NULL, 0, MPI_INT, first, 8, all, MPI_STATUS_IGNORE);
    MPI_Send(&one, 1, MPI_INT, first, 9, all), MPI_Send(&two, 1, MPI_INT, first, 9, all);
    return;
  }
  MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 9, all, &r[0]);
  MPI_Irecv(&got[1], 1, MPI_INT, first + 1, 9, all, &r[1]);
  MPI_Send(NULL, 0, MPI_INT, first + 1, 8, all);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  SAME(got[0], 1, "message of the receive that was posted first");
  SAME(got[1], 2, "message of the second receive");
}

static void collectives(MPI_Comm inter, int accepts) {
  int rank, size, others, value = -1;
  MPI_Comm_rank(inter, &rank), MPI_Comm_size(inter, &size), MPI_Comm_remote_size(inter, &others);
  MPI_Barrier(inter);
  int root = accepts ? (rank == size - 1 ? MPI_ROOT : MPI_PROC_NULL) : others - 1;
  if (root == MPI_ROOT) value = 4711;
  MPI_Bcast(&value, 1, MPI_INT, root, inter);
  if (!accepts) SAME(value, 4711, "broadcast");
  long long sum, x = rank + (accepts ? 1000 : 1);
  MPI_Allreduce(&x, &sum, 1, MPI_LONG_LONG, MPI_SUM, inter);
  SAME(sum, (long long)others * (accepts ? 1 : 1000) + (long long)others * (others - 1) / 2, "the other group's sum");

  MPI_Comm all, part, half;
  int whole, place_in, relation;
  MPI_Intercomm_merge(inter, !accepts, &all);
  MPI_Comm_size(all, &whole), MPI_Comm_rank(all, &place_in);
  SAME(whole, size + others, "size of the merged communicator");
  SAME(place_in, accepts ? rank : others + rank, "rank there");
  in_order(all, rank, size, accepts ? 0 : others);
  int *ranks = malloc((size_t)whole * sizeof *ranks);
  MPI_Allgather(&place_in, 1, MPI_INT, ranks, 1, MPI_INT, all);
  for (int i = 0; i < whole; i++) SAME(ranks[i], i, "gathered");
  free(ranks);
  double big[20000], total[20000];
  for (int i = 0; i < 20000; i++) big[i] = place_in + i;
  MPI_Allreduce(big, total, 20000, MPI_DOUBLE, MPI_SUM, all);
  for (int i = 0; i < 20000; i++) CHECK(total[i] == whole * (double)i + whole * (whole - 1) / 2.0, "element %d", i);
  MPI_Comm_split(all, place_in % 2, -place_in, &part);
  int n, at, first = place_in;
  MPI_Comm_size(part, &n), MPI_Comm_rank(part, &at);
  SAME(n, (whole + (place_in % 2 ? 0 : 1)) / 2, "size of a part");
  MPI_Bcast(&first, 1, MPI_INT, 0, part);
  SAME(at, (first - place_in) / 2, "rank in a part");
  MPI_Comm_split(all, accepts, 0, &half);
  MPI_Group mine, theirs, his;
  MPI_Comm_group(inter, &mine), MPI_Comm_remote_group(inter, &theirs), MPI_Comm_group(half, &his);
  MPI_Group_compare(mine, his, &relation);
  SAME(relation, MPI_IDENT, "the half that is this job");
  MPI_Group_intersection(mine, theirs, &his);
  SAME(his == MPI_GROUP_EMPTY, 1, "both have nobody in common");
  MPI_Group_free(&mine), MPI_Group_free(&theirs);
  MPI_Comm_free(&half), MPI_Comm_free(&part), MPI_Comm_free(&all);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me), MPI_Comm_size(MPI_COMM_WORLD, &np);
  if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const char *place = argv[2];
  int both = !strcmp(argv[1], "both"), accepts = both ? me % 2 == 0 : !strcmp(argv[1], "accept"), n = atoi(argv[3]),
      rounds = atoi(argv[4]), rank, size;
  for (int i = 0; i < BATCH; i++) out[i] = malloc(LARGEST + 8), in[i] = malloc(LARGEST + 8);
  MPI_Comm from, inter;
  MPI_Comm_split(MPI_COMM_WORLD, accepts, me, &from);
  MPI_Comm_rank(from, &rank), MPI_Comm_size(from, &size);
  if (both) {
    if (me == 0) { /* MPI_MAX_PORT_NAME is 1024 in one library, 256 in the other */
      MPI_Open_port(MPI_INFO_NULL, port);
      MPI_Send(port, 256, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else if (me == 1) {
      MPI_Recv(port, 256, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else if (rank == 0) {
    if (accepts) tell_port(place);
    else find_port(place);
  }
  for (int round = 0; round < rounds; round++) {
    MPI_Comm group = round % 2 ? MPI_COMM_SELF : from; /* every other time only the first two processes */
    if (group == MPI_COMM_SELF && rank) continue;
    SAME(connect_jobs(accepts, group, &inter), MPI_SUCCESS, "connecting");
    int flag;
    MPI_Comm_test_inter(inter, &flag);
    SAME(flag, 1, "an intercommunicator");
    messages(inter, accepts, group == from ? n : n / 10);
    collectives(inter, accepts);
    MPI_Comm_disconnect(&inter);
    SAME(inter == MPI_COMM_NULL, 1, "no communicator any more");
  }
  if (accepts && rank == 0) forget_port(place);
  MPI_Comm_free(&from);
  line("%d rounds of %d messages", rounds, n);
  return finish();
}
