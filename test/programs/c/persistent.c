/* Persistent requests: every mode, Start and Startall, many rounds, with Wait, Test, Cancel,
 * Request_free. */
#include "check.h"

int main(int argc, char **argv) {
  start(&argc, &argv);
  enum { N = 3000, ROUNDS = 20 };
  for (int shift = 0; shift < np; shift++) {
    int to = (me + shift) % np, from = (me + np - shift) % np, *in = malloc(5 * N * sizeof *in),
        *out = malloc(5 * N * sizeof *out), size;
    MPI_Request r[8];
    MPI_Status st[8];
    uint64_t h = 0;
    void *buffer = malloc(size = 2 * (N * (int)sizeof(int) + MPI_BSEND_OVERHEAD));
    MPI_Buffer_attach(buffer, size);
    MPI_Recv_init(in, N, MPI_INT, from, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in + N, N, MPI_INT, MPI_ANY_SOURCE, 20 + from, MPI_COMM_WORLD, &r[1]);
    MPI_Recv_init(in + 2 * N, N, MPI_INT, from, 3, MPI_COMM_WORLD, &r[2]);
    MPI_Recv_init(in + 3 * N, N, MPI_INT, from, 4, MPI_COMM_WORLD, &r[3]);
    MPI_Send_init(out, N, MPI_INT, to, 1, MPI_COMM_WORLD, &r[4]);
    MPI_Ssend_init(out + N, N, MPI_INT, to, 20 + me, MPI_COMM_WORLD, &r[5]);
    MPI_Bsend_init(out + 2 * N, N, MPI_INT, to, 3, MPI_COMM_WORLD, &r[6]);
    MPI_Rsend_init(out + 3 * N, N, MPI_INT, to, 4, MPI_COMM_WORLD, &r[7]);
    for (int round = 0; round < ROUNDS; round++) {
      int left = 8, index, flag, some, indices[8];
      fill(out, 4 * N * sizeof *out, me * 100 + round);
      memset(in, 0xff, 4 * N * sizeof *in);
      MPI_Startall(4, r);
      MPI_Barrier(MPI_COMM_WORLD); /* the ready send needs the receive */
      if (round % 2) MPI_Startall(4, r + 4);
      else
        for (int i = 7; i >= 4; i--) MPI_Start(&r[i]);
      switch (round % 5) {
      case 0: MPI_Waitall(8, r, st); break;
      case 1:
        for (; left > 0; left--) {
          MPI_Waitany(8, r, &index, &st[0]);
          CHECK(index >= 0 && index < 8, "index %d", index);
        }
        break;
      case 2:
        for (flag = 0; !flag;) MPI_Testall(8, r, &flag, st);
        break;
      case 3:
        for (; left > 0; left -= some) MPI_Waitsome(8, r, &some, indices, st);
        break;
      case 4:
        for (int i = 0; i < 8; i++)
          for (flag = 0; !flag;) MPI_Test(&r[i], &flag, &st[i]);
        break;
      }
      if (round % 5 == 1) {
        MPI_Waitany(8, r, &index, &st[0]);
        SAME(index, MPI_UNDEFINED, "Waitany of inactive ones");
      }
      for (int i = 0; i < 8; i++) CHECK(r[i] != MPI_REQUEST_NULL, "persistent request lost");
      if (!filled(in, 4 * N * sizeof *in, from * 100 + round))
        failed(__FILE__, __LINE__, "round %d shift %d: wrong data", round, shift);
      if (round % 5 == 0) {
        SAME(st[1].MPI_SOURCE, from, "source");
        SAME(st[1].MPI_TAG, 20 + from, "tag");
      }
      h = digest(h, in, 4 * N * sizeof *in);
      if (round == 0) { /* Open MPI 4.1 sends the first data of a persistent buffered send repeatedly */
        MPI_Request_free(&r[6]);
        MPI_Send_init(out + 2 * N, N, MPI_INT, to, 3, MPI_COMM_WORLD, &r[6]);
      }
    }
    void *detached;
    MPI_Buffer_detach(&detached, &size);
    free(buffer);
    /* an active receive is cancelled, becomes inactive, and is started again */
    int flag;
    MPI_Start(&r[0]);
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], &st[0]);
    MPI_Test_cancelled(&st[0], &flag);
    SAME(flag, 1, "cancelled");
    CHECK(r[0] != MPI_REQUEST_NULL, "cancelled persistent request lost");
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in, 0xff, N * sizeof *in);
    MPI_Startall(1, &r[0]);
    MPI_Start(&r[4]);
    MPI_Wait(&r[0], &st[0]), MPI_Wait(&r[4], &st[4]);
    CHECK(filled(in, N * sizeof *in, me == from ? me * 100 + ROUNDS - 1 : from * 100 + ROUNDS - 1),
          "started again after a cancel");
    /* an active send is freed */
    if (shift > 0) {
      MPI_Request ack;
      char token = 1, got;
      MPI_Irecv(&got, 1, MPI_CHAR, to, 9, MPI_COMM_WORLD, &ack);
      MPI_Start(&r[0]), MPI_Start(&r[4]);
      MPI_Request_free(&r[4]);
      MPI_Wait(&r[0], &st[0]);
      MPI_Send(&token, 1, MPI_CHAR, from, 9, MPI_COMM_WORLD);
      MPI_Wait(&ack, MPI_STATUS_IGNORE);
    } else MPI_Request_free(&r[4]);
    for (int i = 0; i < 8; i++)
      if (i != 4) MPI_Request_free(&r[i]);
    line("shift %d: %016llx", shift, (unsigned long long)h);
    free(in), free(out);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return finish();
}
