/* Messages with a text and a tag that an eavesdropper can easily find, of all kinds: small ones,
 * those that wait for a receive, large ones, in both directions, on a communicator of their own.
 * Every byte is checked. */
#include "check.h"

#define TAG 0x5ea1ed
static const char text[] = "attack at dawn! ";
static const int sizes[] = {16, 3000, 40000, 700000, 3000000};

static void write_text(char *p, int n, int rank) {
  for (int i = 0; i < n; i++) p[i] = text[i % 16];
  p[n - 1] = rank;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int rounds = argc > 1 ? atoi(argv[1]) : 3;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &np);
  enum { most = 3000000 };
  char *out = malloc(most), *in = malloc(most), *want = malloc(most);
  for (int round = 0; round < rounds; round++)
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      int n = sizes[k], left = (me + np - 1) % np, right = (me + 1) % np;
      MPI_Request request;
      MPI_Status status;
      write_text(out, n, me);
      write_text(want, n, left);
      memset(in, 0, n);
      if (round % 2) MPI_Barrier(comm);
      MPI_Irecv(in, n, MPI_CHAR, left, TAG, comm, &request);
      if (round % 3 == 2) MPI_Ssend(out, n, MPI_CHAR, right, TAG, comm);
      else MPI_Send(out, n, MPI_CHAR, right, TAG, comm);
      MPI_Wait(&request, &status);
      SAME(status.MPI_TAG, TAG, "the tag");
      CHECK(memcmp(in, want, n) == 0, "%d bytes, round %d", n, round);
      long sum = 0, mine = me + k;
      MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
      SAME(sum, np * (np - 1) / 2 + (long)k * np, "the sum");
      line("%d bytes, round %d: %016llx", n, round, (unsigned long long)digest(0, in, n));
    }
  MPI_Comm_free(&comm);
  return finish();
}
