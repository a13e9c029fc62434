/* Cancel of receives and sends, Request_free of active requests. */
#include "check.h"

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (int p = 0; p < np; p++) {
    int other = (p - me + np) % np; /* pairs of a round robin: the partner's partner is this rank */
    int x = -1, y = me + 1000, flag, n;
    MPI_Request r, s;
    MPI_Status st;
    /* A receive that nothing matches is cancelled and receives nothing afterwards. */
    for (int wild = 0; wild < 3; wild++) {
      MPI_Irecv(&x, 1, MPI_INT, wild == 1 ? MPI_ANY_SOURCE : other, wild == 2 ? MPI_ANY_TAG : 11, MPI_COMM_WORLD, &r);
      MPI_Cancel(&r);
      MPI_Wait(&r, &st);
      MPI_Test_cancelled(&st, &flag);
      SAME(flag, 1, "cancelled");
      CHECK(r == MPI_REQUEST_NULL, "request left");
      MPI_Barrier(MPI_COMM_WORLD);
      x = -1;
      MPI_Isend(&y, 1, MPI_INT, other, 11, MPI_COMM_WORLD, &s);
      MPI_Recv(&x, 1, MPI_INT, other, 11, MPI_COMM_WORLD, &st);
      MPI_Wait(&s, MPI_STATUS_IGNORE);
      SAME(x, other + 1000, "received after a cancelled receive");
      MPI_Test_cancelled(&st, &flag);
      SAME(flag, 0, "not cancelled");
      /* All ranks must be done before the next wildcard receive is posted. */
      MPI_Barrier(MPI_COMM_WORLD);
    }
    /* Cancelling one of several outstanding receives leaves the order of the others. */
    if (other != me) {
      int v[3] = {-1, -1, -1};
      MPI_Request q[3];
      for (int i = 0; i < 3; i++)
        MPI_Irecv(&v[i], 1, MPI_INT, i == 1 ? MPI_ANY_SOURCE : other, 13 + 100 * (me + other), MPI_COMM_WORLD, &q[i]);
      MPI_Cancel(&q[1]);
      MPI_Wait(&q[1], &st);
      MPI_Test_cancelled(&st, &flag);
      SAME(flag, 1, "the middle one cancelled");
      MPI_Sendrecv(&y, 1, MPI_INT, other, 12, &x, 1, MPI_INT, other, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < 2; i++) {
        int w = 10 * me + i;
        MPI_Send(&w, 1, MPI_INT, other, 13 + 100 * (me + other), MPI_COMM_WORLD);
      }
      MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
      SAME(v[0], 10 * other, "first");
      SAME(v[1], -1, "cancelled one");
      SAME(v[2], 10 * other + 1, "third");
    }
    /* A receive behind one from MPI_ANY_SOURCE, which proceeds once that one is cancelled, can be
     * cancelled too. */
    MPI_Request behind;
    int z = -1;
    MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &r);
    MPI_Irecv(&z, 1, MPI_INT, other, 21, MPI_COMM_WORLD, &behind);
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Cancel(&behind);
    MPI_Wait(&behind, &st);
    MPI_Test_cancelled(&st, &flag);
    SAME(flag, 1, "cancelled behind one for anybody");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(&y, 1, MPI_INT, other, 21, MPI_COMM_WORLD, &s);
    MPI_Recv(&x, 1, MPI_INT, other, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    SAME(x, other + 1000, "received after both");
    SAME(z, -1, "in the cancelled one");
    MPI_Barrier(MPI_COMM_WORLD);
    /* A receive that has matched cannot be cancelled: the synchronous send has completed, so it has
     * matched. */
    if (other != me) {
      x = -1;
      MPI_Irecv(&x, 1, MPI_INT, other, 14, MPI_COMM_WORLD, &r);
      MPI_Issend(&y, 1, MPI_INT, other, 14, MPI_COMM_WORLD, &s);
      MPI_Wait(&s, MPI_STATUS_IGNORE);
      int ready = 0;
      MPI_Sendrecv(&y, 1, MPI_INT, other, 15, &ready, 1, MPI_INT, other, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Cancel(&r);
      MPI_Wait(&r, &st);
      MPI_Test_cancelled(&st, &flag);
      MPI_Get_count(&st, MPI_INT, &n);
      SAME(flag, 0, "matched receive cancelled");
      SAME(n, 1, "count");
      SAME(x, other + 1000, "data of the matched receive");
    }
    /* Cancelling a send succeeds or not. The sender knows which, and the receiver gets exactly the
     * messages that were not cancelled. */
    if (other != me) {
      int size = p % 2 ? 200000 : 10;
      char *out = malloc(size), *in = malloc(size);
      fill(out, size, me);
      MPI_Isend(out, size, MPI_CHAR, other, 16, MPI_COMM_WORLD, &s);
      MPI_Cancel(&s);
      MPI_Request t;
      int gone, theirs;
      /* The send may complete only when the receiver receives. So the result must be known without
       * that, or the receive must come first. */
      MPI_Irecv(in, size, MPI_CHAR, other, 16, MPI_COMM_WORLD, &t);
      MPI_Wait(&s, &st);
      MPI_Test_cancelled(&st, &gone);
      MPI_Sendrecv(&gone, 1, MPI_INT, other, 17, &theirs, 1, MPI_INT, other, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (theirs) MPI_Cancel(&t);
      MPI_Wait(&t, &st);
      MPI_Test_cancelled(&st, &flag);
      SAME(flag, theirs, "receive cancelled exactly if its send was");
      if (!theirs) CHECK(filled(in, size, other), "data of the send that was not cancelled");
      free(out), free(in);
    }
    /* An active send is freed; the message arrives all the same. The reply shows that the buffer
     * may be reused. */
    int *out = malloc(50000 * sizeof *out), *in = malloc(50000 * sizeof *in);
    fill(out, 50000 * sizeof *out, me + 7);
    MPI_Irecv(in, 50000, MPI_INT, other, 18, MPI_COMM_WORLD, &r);
    MPI_Isend(out, 50000, MPI_INT, other, 18, MPI_COMM_WORLD, &s);
    MPI_Request_free(&s);
    CHECK(s == MPI_REQUEST_NULL, "Request_free left the handle");
    MPI_Wait(&r, &st);
    CHECK(filled(in, 50000 * sizeof *in, other + 7), "data of a freed send");
    if (other != me)
      MPI_Sendrecv(&x, 1, MPI_INT, other, 19, &y, 1, MPI_INT, other, 19, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    y = me + 1000;
    free(out), free(in);
    /* A receive is freed before its message arrives; the message after it is for the next
     * receive. */
    if (other != me) {
      static int hidden;
      int w[2] = {me, me + 1};
      z = -1;
      MPI_Irecv(&hidden, 1, MPI_INT, other, 20, MPI_COMM_WORLD, &r);
      MPI_Request_free(&r);
      MPI_Send(&w[0], 1, MPI_INT, other, 20, MPI_COMM_WORLD);
      MPI_Send(&w[1], 1, MPI_INT, other, 20, MPI_COMM_WORLD);
      MPI_Recv(&z, 1, MPI_INT, other, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      SAME(z, other + 1, "message after the one of a freed receive");
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  line("done");
  return finish();
}
