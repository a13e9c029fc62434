/* Messages of a process to itself, and to and from MPI_PROC_NULL. */
#include "check.h"

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
  for (int c = 0; c < 3; c++) {
    int rank, n = -1, out[5000], in[5000];
    MPI_Request r[4];
    MPI_Status st[4];
    MPI_Comm_rank(comms[c], &rank);
    fill(out, sizeof out, c);
    MPI_Irecv(in, 5000, MPI_INT, rank, 1, comms[c], &r[0]);
    MPI_Send(out, 5000, MPI_INT, rank, 1, comms[c]);
    MPI_Wait(&r[0], &st[0]);
    CHECK(filled(in, sizeof in, c), "to self");
    SAME(st[0].MPI_SOURCE, rank, "source");
    /* wildcards, in order */
    for (int i = 0; i < 4; i++) MPI_Isend(&out[i], 1, MPI_INT, rank, 5 + i % 2, comms[c], &r[i]);
    for (int i = 0; i < 4; i++) {
      MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &st[0]);
      SAME(in[0], out[i], "own messages in order");
      SAME(st[0].MPI_TAG, 5 + i % 2, "tag");
    }
    MPI_Waitall(4, r, st);
    MPI_Barrier(comms[c]); /* keeps later messages of others from these wildcards */
    MPI_Sendrecv(out, 100, MPI_INT, rank, 8, in, 200, MPI_INT, MPI_ANY_SOURCE, 8, comms[c], &st[0]);
    MPI_Get_count(&st[0], MPI_INT, &n);
    SAME(n, 100, "count of a Sendrecv with self");
    in[0] = 42;
    MPI_Sendrecv_replace(in, 1, MPI_INT, rank, 8, rank, 8, comms[c], &st[0]);
    SAME(in[0], 42, "replaced by itself");
    /* PROC_NULL */
    in[0] = 4711;
    MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 1, comms[c], &st[0]);
    MPI_Get_count(&st[0], MPI_INT, &n);
    SAME(in[0], 4711, "buffer of a receive from PROC_NULL");
    SAME(n, 0, "count");
    SAME(st[0].MPI_SOURCE, MPI_PROC_NULL, "source");
    SAME(st[0].MPI_TAG, MPI_ANY_TAG, "tag");
    MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 1, comms[c]);
    MPI_Ssend(out, 1, MPI_INT, MPI_PROC_NULL, 1, comms[c]);
    MPI_Isend(out, 1, MPI_INT, MPI_PROC_NULL, 1, comms[c], &r[0]);
    MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, comms[c], &r[1]);
    MPI_Waitall(2, r, st);
    MPI_Get_count(&st[1], MPI_INT, &n);
    SAME(n, 0, "count by Waitall");
    MPI_Sendrecv(out, 1, MPI_INT, MPI_PROC_NULL, 1, in, 1, MPI_INT, MPI_PROC_NULL, 1, comms[c], &st[0]);
    SAME(in[0], 4711, "buffer of a Sendrecv with PROC_NULL");
    /* a line of ranks with PROC_NULL at both ends */
    int size, left, right, v = rank, w = -1;
    MPI_Comm_size(comms[c], &size);
    left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&v, 1, MPI_INT, right, 3, &w, 1, MPI_INT, left, 3, comms[c], &st[0]);
    SAME(w, rank - 1, "from the left");
    MPI_Sendrecv_replace(&v, 1, MPI_INT, left, 3, right, 3, comms[c], &st[0]);
    SAME(v, right == MPI_PROC_NULL ? rank : rank + 1, "from the right");
  }
  MPI_Comm_free(&comms[2]);
  line("done");
  return finish();
}
